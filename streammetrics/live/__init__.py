"""Metrics over time: panes, windows, late labels, and a persistent state."""
