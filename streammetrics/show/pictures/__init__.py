"""Plots of results with Matplotlib."""
