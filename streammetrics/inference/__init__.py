"""Confidence intervals of metrics, computed from their states."""
