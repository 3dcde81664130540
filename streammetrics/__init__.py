"""Exact, mergeable metrics for data that does not fit in memory, is spread out, or never ends.

    >>> import streammetrics as sm

A metric takes batches, merges with others of its kind, and can be read at any time:

    >>> auc = sm.ROCAUC()
    >>> _ = auc.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> auc.compute(), auc.exact
    (0.75, True)
    >>> other = sm.ROCAUC().update([1, 0], [0.9, 0.3])
    >>> sm.merge([auc, other]).compute()
    0.8888888888888888

Several metrics are fed together, each statistic once a batch:

    >>> suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()})
    >>> _ = suite.update({"y_true": [0, 1], "y_score": [0.25, 0.75]})
    >>> suite.compute()
    {'f1': 1.0, 'loss': 0.2876820724517809}

The state is a function of the multiset of rows: any batches, order, shards and merge tree give the
same `to_bytes()`, and the same value to the last bit. A value is exact, or `bounds()` certainly
holds the exact one.
"""

from streammetrics import metrics as _metrics
from streammetrics.core.errors import (
    EstimateWarning,
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    StreamMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.metric import Interval, Metric, merge
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.reading import from_bytes
from streammetrics.engines.local import evaluate
from streammetrics.ledger.ledger import Ledger
from streammetrics.metrics import *  # noqa: F403 - each module lists its public names

__version__ = "0.1.0"

__all__ = [
    "EstimateWarning",
    "IncompatibleMetricsError",
    "Interval",
    "InvalidBatchError",
    "Ledger",
    "Metric",
    "MetricSet",
    "StateFormatError",
    "StreamMetricsError",
    "UndefinedMetricWarning",
    "evaluate",
    "from_bytes",
    "merge",
]
__all__ += _metrics.__all__
