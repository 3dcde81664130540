"""Registers the rules of all families of metrics, by importing their modules."""

from streammetrics.inference import means, methods, scores, strengths, tables

__all__ = ["means", "methods", "scores", "strengths", "tables"]
