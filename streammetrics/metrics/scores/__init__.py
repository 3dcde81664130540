"""Scores and probabilities judged against labels."""
