"""Performance constants; none of them affects states, values, bounds or errors.

The comments give units and reasons. Most constants keep the working set within a cache of 2 MB.
Limits with a visible effect, such as the most rows that a statistic accepts, are defined where they
are checked.
"""

# Batches.
BATCH_ROWS = 1 << 20  # rows of a large batch processed at a time
KEYED_ROWS = 1 << 18  # the same for rows by key, which are sorted in the cache
KEYED_EACH = 4  # the same per key, if that is more: each key has a fixed cost
STAGED_ROWS = 1 << 14  # rows buffered before the statistics are updated
PANE_ROWS = 1 << 10  # the same for a pane of `Live`, to bound the latency
PANE_BYTES = 1 << 16  # size at which a statistic in the newest pane is compacted, in 0.5 ms
SMALL_STATE = 1 << 12  # bytes up to which a statistic in a pane is not worth compacting
STAGED_LEAST = STAGED_ROWS >> 9  # least size of a buffered batch, to limit their number to 512

# Caches of configurations and of file openings: number of entries.
KNOWN_LAYOUTS = 1024
KNOWN_OPENINGS = 256
OPENING_CHARACTERS = 1 << 14  # longest opening to cache

# Exact sums.
FEW_ROWS = 128  # rows up to which Python's integers are two to four times faster

# Histograms.
CELLS_READ = 1 << 16  # cells processed at a time
BUFFERED_ROWS = 1 << 18  # most rows buffered before they are counted, past level 0
SORTED_CELLS = 1 << 17  # cells of several histograms sorted at a time
BUFFERS = 1 << 13  # most buffered chunks
PASS_ROWS = 1 << 16  # rows that justify a pass over the cells
JOINED_ROWS = 1 << 14  # largest pending chunk that is joined to the next

# Tables, rankings, pairs and clusters.
RANKED_ROWS = 1 << 20  # rows processed at a time
PENDING_RANKINGS = 1 << 20  # rows kept unsorted, at least, to amortize sorting
CENTROID_DISTANCES = 1 << 15  # distances computed at a time, to stay in the cache
DISTANCE_ROWS = 256  # rows of a block; a tile of two blocks has 512 KB
ALONE_PRODUCTS = 1 << 18  # size up to which BLAS starts no threads, which would cost more
THIN_ROWS = 8  # rows below which a product of that size is slow
MEAN_DISTANCES = 1 << 23  # distances of the table for means held at a time
HASHED_COORDINATES = 1 << 15  # coordinates hashed at a time, to stay in the cache

# Boxes.
OVERLAPS = 1 << 17  # overlaps computed at a time, to stay near the cache

# Windows of panes, and ledgers.
MERGED_PARTS = 16  # states merged at once for the cost of two
