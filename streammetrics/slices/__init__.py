"""Metrics by slice: the groups of rows for which a model does well or badly."""
