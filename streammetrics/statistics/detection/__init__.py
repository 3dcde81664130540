"""Objects found in images: what of boxes is remembered."""
