"""Survival analysis: predictions of the times of events, some of which are censored."""
