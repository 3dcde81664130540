"""HTML reports in one self-contained file."""
