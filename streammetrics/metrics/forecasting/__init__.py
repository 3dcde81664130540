"""Forecasts: intervals, predictive distributions, and errors by the scale of a series."""
