"""Texts compared with references: recognition, translation, answers and tagged spans."""
