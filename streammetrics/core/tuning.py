"""Numbers that only decide how the work is cut: no state, value, bound or error shows them.

A comment says what a number was chosen for; most keep what is worked on in a cache of 2 MB. What
can be seen, such as the most rows that a statistic takes, is a limit and stands where it is
checked.
"""

# Batches: what comes in.
BATCH_ROWS = 1 << 20  # of a large batch taken at a time
KEYED_ROWS = 1 << 17  # the same of rows by key, which are ordered in a cache
KEYED_EACH = 4  # ... for each key, where that is more: something is done for each of them
STAGED_ROWS = 1 << 14  # kept until they are worth a call of every statistic
PANE_ROWS = 1 << 10  # the same of a pane of `Live`, where no call should take long
PANE_BYTES = 1 << 16  # of a statistic of it that still takes rows: half a millisecond to make small
SMALL_STATE = 1 << 12  # bytes of a pane's statistic, up to which less room is not worth the work
STAGED_LEAST = STAGED_ROWS >> 9  # that a batch counts as, since 512 of them are long enough a list

# What is known of configurations and files that were seen before.
KNOWN_LAYOUTS = 1024
KNOWN_OPENINGS = 256
OPENING_CHARACTERS = 1 << 14  # an opening that is longer is not worth keeping

# Exact sums.
FEW_ROWS = 128  # up to which Python's integers are quicker, twice to four times

# Histograms.
CELLS_READ = 1 << 16  # at a time
BUFFERED_ROWS = 1 << 18  # at most before they are counted, past level 0
SORTED_CELLS = 1 << 17  # of several histograms, at once
BUFFERS = 1 << 13  # of rows, at most
PASS_ROWS = 1 << 16  # worth a pass over the cells
JOINED_ROWS = 1 << 14  # of a waiting chunk worth joining to the next

# Tables, rankings, pairs and clusters.
RANKED_ROWS = 1 << 20  # at a time
PENDING_RANKINGS = 1 << 20  # rows kept unsorted at least, so that sorting is worth its overhead
CENTROID_DISTANCES = 1 << 15  # at a time, so that they stay in the cache
DISTANCE_ROWS = 256  # of a block, so that a tile of two has 512 KB
ALONE_PRODUCTS = 1 << 18  # up to which BLAS starts no threads, which wait for each other
THIN_ROWS = 8  # below which such a small product is slow
MEAN_DISTANCES = 1 << 23  # of the table of them held at a time
HASHED_COORDINATES = 1 << 15  # at a time, so that they stay in the cache

# Boxes.
OVERLAPS = 1 << 17  # computed at a time, so that they stay near the cache

# Windows of panes, and ledgers.
MERGED_PARTS = 16  # states that are merged in one go cost what two cost
