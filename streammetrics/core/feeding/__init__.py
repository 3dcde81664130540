"""How validated rows reach the statistics, and what the state of these is at one moment."""
