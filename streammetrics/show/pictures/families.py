"""Registers all kinds of pictures; Matplotlib is imported only when one is drawn."""

from streammetrics.show.pictures import curves, values

__all__ = ["curves", "values"]
