"""Forecasting: prediction intervals, predictive distributions and scaled errors."""
