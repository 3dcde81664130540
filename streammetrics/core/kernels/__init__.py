"""The hot loops: compiled in C, defined in `reference`."""

from streammetrics.core.kernels.active import active as kernels
from streammetrics.core.kernels.active import describe

__all__ = ["describe", "kernels"]
