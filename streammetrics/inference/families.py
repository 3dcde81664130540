"""Registers the rules of all families of metrics, by importing their modules."""

from streammetrics.inference import means, methods, scores, tables

__all__ = ["means", "methods", "scores", "tables"]
