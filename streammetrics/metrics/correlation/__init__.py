"""How far two columns of numbers agree."""

from streammetrics.metrics.correlation import rank
from streammetrics.metrics.correlation.rank import *  # noqa: F403 - each module lists its public names

__all__: list[str] = []
__all__ += rank.__all__
