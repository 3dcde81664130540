"""What is read from the statistics: one task a file, each metric a few lines."""
