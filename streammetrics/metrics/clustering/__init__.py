"""Labelings judged against a truth, or against the points themselves."""
