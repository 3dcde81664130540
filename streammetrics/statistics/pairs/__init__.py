"""Pairs of numbers and how they are ordered."""
