"""Ranking: the results of queries evaluated against relevance judgments."""
