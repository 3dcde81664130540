"""Exact sums and sorted histograms: what kernels compute, as values that can be merged."""
