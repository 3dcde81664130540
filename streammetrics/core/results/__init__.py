"""Values made of several numbers, with labels for each number."""
