"""How far two columns of numbers agree."""
