"""The machinery: knows no metric."""
