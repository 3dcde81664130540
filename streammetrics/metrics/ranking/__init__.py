"""Results of queries judged against relevance."""
