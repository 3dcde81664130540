"""Certain intervals of metrics over all values that missing labels may have."""
