"""What is read from the statistics: one task a room, each metric a few lines."""

from streammetrics.metrics import (
    aggregation,
    classification,
    clustering,
    correlation,
    ranking,
    regression,
    scores,
)
from streammetrics.metrics.aggregation import *  # noqa: F403 - each room lists its public names
from streammetrics.metrics.classification import *  # noqa: F403
from streammetrics.metrics.clustering import *  # noqa: F403
from streammetrics.metrics.correlation import *  # noqa: F403
from streammetrics.metrics.ranking import *  # noqa: F403
from streammetrics.metrics.regression import *  # noqa: F403
from streammetrics.metrics.scores import *  # noqa: F403

__all__: list[str] = []
__all__ += aggregation.__all__
__all__ += classification.__all__
__all__ += clustering.__all__
__all__ += correlation.__all__
__all__ += ranking.__all__
__all__ += regression.__all__
__all__ += scores.__all__
