"""Numbers judged against numbers."""
