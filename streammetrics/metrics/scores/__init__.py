"""Scores and probabilities evaluated against labels."""
