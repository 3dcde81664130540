"""Reports in one file: what was measured on what, how sure that is, and pictures of it."""
