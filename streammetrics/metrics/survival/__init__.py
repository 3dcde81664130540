"""Survival: predictions of when something happens, of which not all is seen to happen."""
