"""Numbers judged against numbers."""

from streammetrics.metrics.regression import losses, moments, quantiles
from streammetrics.metrics.regression.losses import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.regression.moments import *  # noqa: F403
from streammetrics.metrics.regression.quantiles import *  # noqa: F403

__all__: list[str] = []
__all__ += losses.__all__
__all__ += moments.__all__
__all__ += quantiles.__all__
