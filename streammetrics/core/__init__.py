"""The framework: states, statistics, metrics and sets in general, but no particular metric."""
