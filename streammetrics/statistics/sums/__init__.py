"""Exact sums, moments, extremes and values of numbers."""
