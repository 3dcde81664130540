"""streammetrics."""

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
from streammetrics.core.state import from_bytes
from streammetrics.metrics import classification
from streammetrics.metrics.classification import *  # noqa: F403 - each module lists its public names

__version__ = "0.1.0"

__all__ = [
    "EstimateWarning",
    "IncompatibleMetricsError",
    "Interval",
    "InvalidBatchError",
    "Metric",
    "MetricSet",
    "StateFormatError",
    "StreamMetricsError",
    "UndefinedMetricWarning",
    "from_bytes",
    "merge",
]
__all__ += classification.__all__
