"""Shards that count once."""
