"""What is read from the statistics: one task a room, each metric a few lines."""
