"""Which model is better: several on the same rows, or two states of different rows."""
