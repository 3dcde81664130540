"""Reports for people: the terminal and tables."""
