"""Recommendation: coverage of the catalogue, novelty, diversity and popularity."""
