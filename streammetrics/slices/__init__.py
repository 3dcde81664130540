"""The same metrics by key: for whom a model is good, and for whom it is not."""
