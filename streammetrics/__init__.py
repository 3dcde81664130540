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

from streammetrics.core.errors import (
    EstimateWarning,
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    StreamMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.ledger import Ledger
from streammetrics.core.metric import Interval, Metric, merge
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.state import from_bytes
from streammetrics.engines.local import evaluate
from streammetrics.metrics import (
    aggregation,
    calibration,
    class_ratios,
    classification,
    clustering,
    clustering_entropy,
    clustering_internal,
    correlation,
    curves,
    error_sizes,
    probability,
    ranking,
    ranking_base,
    ranking_graded,
    regression,
    thresholds,
    variance,
)
from streammetrics.metrics.aggregation import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.calibration import *  # noqa: F403
from streammetrics.metrics.class_ratios import *  # noqa: F403
from streammetrics.metrics.classification import *  # noqa: F403
from streammetrics.metrics.clustering import *  # noqa: F403
from streammetrics.metrics.clustering_entropy import *  # noqa: F403
from streammetrics.metrics.clustering_internal import *  # noqa: F403
from streammetrics.metrics.correlation import *  # noqa: F403
from streammetrics.metrics.curves import *  # noqa: F403
from streammetrics.metrics.error_sizes import *  # noqa: F403
from streammetrics.metrics.probability import *  # noqa: F403
from streammetrics.metrics.ranking import *  # noqa: F403
from streammetrics.metrics.ranking_base import *  # noqa: F403
from streammetrics.metrics.ranking_graded import *  # noqa: F403
from streammetrics.metrics.regression import *  # noqa: F403
from streammetrics.metrics.thresholds import *  # noqa: F403
from streammetrics.metrics.variance import *  # noqa: F403

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
__all__ += aggregation.__all__
__all__ += calibration.__all__
__all__ += class_ratios.__all__
__all__ += classification.__all__
__all__ += clustering.__all__
__all__ += clustering_entropy.__all__
__all__ += clustering_internal.__all__
__all__ += correlation.__all__
__all__ += curves.__all__
__all__ += error_sizes.__all__
__all__ += probability.__all__
__all__ += ranking.__all__
__all__ += ranking_base.__all__
__all__ += ranking_graded.__all__
__all__ += regression.__all__
__all__ += thresholds.__all__
__all__ += variance.__all__
