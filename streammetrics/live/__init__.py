"""Metrics over time: panes, windows, late labels, and a state that survives."""
