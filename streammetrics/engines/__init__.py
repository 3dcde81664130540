"""Where metrics run: one machine, Dask, Spark, Ray, Beam and torch.distributed.

Every engine does the same: an empty copy of the set goes to each worker, takes the rows of its
shard, and the states come back and merge. A state is a function of the multiset of rows, so the
result has the same bytes on any engine, in any number of partitions, after any retry.

A module needs its engine installed; `streammetrics.evaluate`, for one machine, needs none.
"""
