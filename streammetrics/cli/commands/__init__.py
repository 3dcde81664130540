"""The commands: their arguments, and what is done with them."""
