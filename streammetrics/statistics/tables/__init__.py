"""Counts by label: of pairs, at a threshold, among the top k."""
