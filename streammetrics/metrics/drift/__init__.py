"""Drift: distances between the distributions of a reference and a current sample."""
