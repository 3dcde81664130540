"""All families of metrics whose intervals are known; importing it makes them so."""

from streammetrics.inference import means, scores, tables

__all__ = ["means", "scores", "tables"]
