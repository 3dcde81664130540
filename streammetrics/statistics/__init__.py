"""What is remembered of the rows seen: one commutative monoid a file."""
