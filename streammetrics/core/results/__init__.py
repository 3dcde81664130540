"""Values of several numbers, and what each of them is of."""
