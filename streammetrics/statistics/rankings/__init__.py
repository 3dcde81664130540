"""Queries, their documents, judgments and results."""
