"""Scores and probabilities judged against labels."""

from streammetrics.metrics.scores import calibration, curves, losses, thresholds
from streammetrics.metrics.scores.calibration import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.scores.curves import *  # noqa: F403
from streammetrics.metrics.scores.losses import *  # noqa: F403
from streammetrics.metrics.scores.thresholds import *  # noqa: F403

__all__: list[str] = []
__all__ += calibration.__all__
__all__ += curves.__all__
__all__ += losses.__all__
__all__ += thresholds.__all__
