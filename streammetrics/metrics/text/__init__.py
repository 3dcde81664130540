"""Texts against references: errors of recognition, overlap of translations, answers."""
