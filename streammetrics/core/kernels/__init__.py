"""The performance-critical loops: compiled from C, defined in `reference`."""

from streammetrics.core.kernels.active import active as kernels

__all__ = ["kernels"]
