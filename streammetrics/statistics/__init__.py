"""Mergeable statistics: one commutative monoid per file."""
