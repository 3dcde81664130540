"""Input rows: naming, conversion and validation of anything array-like."""
