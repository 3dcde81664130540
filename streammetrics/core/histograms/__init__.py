"""The canonical sorted histogram and its cells."""
