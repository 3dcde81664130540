"""Classification: predicted labels, or scores at a threshold, evaluated against true labels."""
