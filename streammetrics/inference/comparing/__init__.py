"""Comparison of models: on the same rows, or two states of different rows."""
