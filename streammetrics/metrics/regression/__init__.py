"""Regression: predicted numbers evaluated against targets."""
