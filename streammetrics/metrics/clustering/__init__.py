"""Labelings judged against a truth, or against the points themselves."""

from streammetrics.metrics.clustering import entropy, internal, pairs
from streammetrics.metrics.clustering.entropy import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.clustering.internal import *  # noqa: F403
from streammetrics.metrics.clustering.pairs import *  # noqa: F403

__all__: list[str] = []
__all__ += entropy.__all__
__all__ += internal.__all__
__all__ += pairs.__all__
