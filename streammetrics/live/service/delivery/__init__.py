"""Alerts delivered by HTTP: receivers, silences, and the queue."""
