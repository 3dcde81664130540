"""Metrics by their names, and the inputs of a set by theirs."""
