"""What scores leave behind: their histogram, and the losses of probabilities."""
