"""The hot loops: compiled in C, defined in `reference`."""

from streammetrics.core.kernels.active import active as kernels

__all__ = ["kernels"]
