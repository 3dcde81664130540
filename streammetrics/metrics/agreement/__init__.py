"""Association of two labelings, and agreement of several raters."""
