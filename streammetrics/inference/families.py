"""All families of metrics whose intervals are known; importing it makes them so."""

from streammetrics.inference import tables

__all__ = ["tables"]
