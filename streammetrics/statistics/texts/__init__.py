"""Texts against references: statistics of a few integers."""
