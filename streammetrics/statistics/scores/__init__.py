"""Statistics of scores: their histogram, and the losses of probabilities."""
