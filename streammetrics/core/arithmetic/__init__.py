"""Exact sums and sorted histograms: the results of kernels as mergeable values."""
