"""Labels judged against labels, or a score against a threshold."""

from streammetrics.metrics.classification import overall, ratios
from streammetrics.metrics.classification.overall import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.classification.ratios import *  # noqa: F403

__all__: list[str] = []
__all__ += overall.__all__
__all__ += ratios.__all__
