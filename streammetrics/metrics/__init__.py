"""The metrics, one folder per task; each is computed from statistics in a few lines."""
