"""Rank correlation of two columns of numbers."""
