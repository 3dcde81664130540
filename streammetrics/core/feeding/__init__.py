"""From validated rows to the states of statistics."""
