"""Rows in: anything array-like, named, converted and validated once."""
