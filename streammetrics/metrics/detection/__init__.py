"""Objects found in images."""
