"""Clusterings evaluated against true labels, or against the points themselves."""
