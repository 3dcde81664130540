"""How far two samples of values are apart."""
