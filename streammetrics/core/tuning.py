"""Numbers that only decide how the work is cut: no state, value, bound or error shows them.

A comment says what a number was chosen for; most keep what is worked on in a cache of 2 MB. What
can be seen, such as the most rows that a statistic takes, is a limit and stands where it is
checked.
"""

# Batches: what comes in.
BATCH_ROWS = 1 << 16  # of a large batch taken at a time: two columns of float64 stay in the cache
KEYED_ROWS = 1 << 17  # the same of rows by key, as there is something to do for each of many keys
STAGED_ROWS = 1 << 14  # kept until they are worth a call of every statistic
PANE_ROWS = 1 << 10  # the same of a pane of `Live`, where no call should take long
PANE_BYTES = 1 << 16  # of a statistic of it that still takes rows: half a millisecond to make small
SMALL_STATE = 1 << 12  # bytes of a pane's statistic, up to which less room is not worth the work
STAGED_LEAST = STAGED_ROWS >> 9  # that a batch counts as, since 512 of them are long enough a list
SHORT_COLUMN = 1024  # rows up to which two reductions are quicker than one pass that tells more
STRING_ROWS = 1 << 14  # compared at once, so that the gathered copies stay in the cache
KEYS_MET = 1 << 14  # numbered at once, so that what is made of them stays in the cache
FEW_LABELS = 64  # integers below are placed as they are, though the lowest may not occur
NEAR_LABELS = 1 << 16  # integers this near to each other are placed by subtraction

# What is known of configurations and files that were seen before.
KNOWN_LAYOUTS = 1024
KNOWN_OPENINGS = 256
OPENING_CHARACTERS = 1 << 14  # an opening that is longer is not worth keeping

# Exact sums.
MASKED_GROUPS = 16  # whose weights are added up as products with masks: at least twice as quick
WEIGHTED_SUMS = 4  # made together: their folds and those of weights are as many as are kept
FEW_ROWS = 128  # up to which Python's integers are quicker, twice to four times
FLOAT_ROWS = 64  # up to which floats are added up one by one as soon as folded
FOLDED_ROWS = 1 << 11  # up to which a sum needs no scratch buffers, nor BLAS threads for its folds
WIDE_ROWS = 64  # of a block, however wide they are
CLUSTER_ELEMENTS = 1 << 15  # of a block: its folds stay in the cache
DIGIT_ROWS = 1 << 13  # of a table worked on at a time, so that they stay in the cache
PENDING_ADDITIONS = 256  # each below 2**54, so that so many cannot overflow int64
PENDING_PARTS = 8  # places that wait for their carries
INTEGER_ROWS = 1 << 20  # multiplied at a time
KEPT_PRODUCTS = 48  # rows of a table of products that the next call uses again
KEPT_BUFFERS = 24  # that a thread keeps for the next call

# Histograms.
KEY_ROWS = 1 << 15  # worked on at a time, so that scratch stays in the cache
CELLS_READ = 1 << 16  # at a time
COUNTED_ROWS = 1 << 20  # at a time: bounds the scratch memory of an add
PASS_ROWS = 1 << 16  # worth a pass over the cells
JOINED_ROWS = 1 << 14  # of a waiting chunk worth joining to the next
UNITED_HISTOGRAMS = 4  # whose cells are sorted together: more would leave the cache
ADDRESS_BITS = 5  # by which a table of marks is longer than cells may be many
ROW_ADDRESS_BITS = 3  # the same of a table that rows are marked in: most are beyond the cache
INDEXED_HISTOGRAMS = 64  # that an index is made for: worth it, and soon looked over

# Tables, rankings, pairs and clusters.
FEW_CELLS = 32  # of a table, up to which Python adds up sooner than NumPy is called
DENSE_CELLS = 1 << 16  # counted by direct address: 512 KB of counts stay in the cache
RANKED_ROWS = 1 << 20  # at a time
PENDING_RANKINGS = 1 << 20  # rows kept unsorted at least, so that sorting is worth its overhead
GRID_ENTRIES = 1 << 17  # worked on at a time, so that they stay in the cache
COMPARED_ENTRIES = 32  # each with each: quicker than sorting so few
CENTROID_DISTANCES = 1 << 15  # at a time, so that they stay in the cache
DISTANCE_ROWS = 256  # of a block, so that a tile of two has 512 KB
ALONE_PRODUCTS = 1 << 18  # up to which BLAS starts no threads, which wait for each other
THIN_ROWS = 8  # below which such a small product is slow
MEAN_DISTANCES = 1 << 23  # of the table of them held at a time
HASHED_COORDINATES = 1 << 15  # at a time, so that they stay in the cache

# Boxes.
OVERLAPS = 1 << 17  # computed at a time, so that they stay near the cache

# Windows of panes, and ledgers.
OPENED_STATES = 1 << 9  # of a ledger at a time: more would keep the garbage collector busy
MERGED_PARTS = 16  # states that are merged in one go cost what two cost
