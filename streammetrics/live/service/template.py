"""The configuration that `streammetrics live init` writes, every key with what it means."""

TEMPLATE = """\
# What streammetrics watches. `streammetrics live check` reads it whole, `live serve` runs it.

title = "Live metrics"

[metrics]  # any of `streammetrics metrics`, under names of your own
auc = "ROCAUC"
loss = "LogLoss"
accuracy = "Accuracy(threshold=0.5)"

[columns]  # what events and files call them; those that are called so anyway need no line
y_true = "label"
y_score = "score"
# sample_weight = "weight"
# id = "id"                  # of a prediction, by which its label is found
# time = "time"              # seconds since 1970, or ISO 8601 with a zone
# label_time = "label_time"  # in files of labels; without such a column, "time"
# version = "version"        # of a label: a larger one replaces the others

[live]
store = "live.db"  # survives restarts, shared by workers; beside this file. Without: memory only
tiers = [["1min", "3h"], ["1h", "15d"], ["1d", "400d"]]  # length of a pane, how far back
label_ttl = "1d"       # a label counts that is known so long after its prediction
label_lateness = "1d"  # and may take so much longer to arrive
# by = [["country"], ["age:18:30:50"]]  # slices: columns of events, numbers in bins
# labels = [0, 1]      # the classes of the label; by default 0 and 1 where a score judges two
# types = { country = "text" }  # or "integers", "booleans", "dates"; a number: values a row
# target_range = [0, 100]  # of a regression: other targets are refused
# default_label = 0    # what a label that never came means; without: nothing
# max_pending = 10_000_000
# max_ahead = "10min"  # times further ahead of the clock are refused
# durable = false      # true: every call waits for the disk

[alerts]  # rules as in Python: Above, Below, BurnRate, Change, Coverage, Drift, Silence
# auc_is_low = 'Below("auc", 0.80, window="1h", min_rows=500)'
# nothing_comes = { rule = 'Silence("10min")', severity = "ticket", for = "5min" }  # in Prometheus

[page]
window = "1h"   # what "now" is: a whole number of panes
every = "5min"  # how far apart the points of a line are

[server]
host = "127.0.0.1"  # another address needs a token
port = 8000         # 0: any free one, which `live serve` prints
workers = 1         # processes; several need a store
# token_env = "STREAMMETRICS_TOKEN"  # the variable that holds the bearer token
# clock = "wall"    # or "events": it is as late as the newest event, for replays
# body = "16MB"     # of a request at most
# queue = 64        # requests with events that wait; more are answered 429
# timeout = "30s"   # that a request may take to arrive
# connections = 1000  # more: those that have waited longest for their client are closed
"""
