"""Sums kept as exact integers: digits, folds, products, reductions."""
