"""Results of queries judged against relevance."""

from streammetrics.metrics.ranking import base, binary, graded
from streammetrics.metrics.ranking.base import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.ranking.binary import *  # noqa: F403
from streammetrics.metrics.ranking.graded import *  # noqa: F403

__all__: list[str] = []
__all__ += base.__all__
__all__ += binary.__all__
__all__ += graded.__all__
