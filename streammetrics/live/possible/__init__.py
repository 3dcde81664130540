"""What the missing labels could do: certain intervals over everything that they may be."""
