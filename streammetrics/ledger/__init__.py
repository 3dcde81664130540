"""Merging of shards with retries: each shard counts once."""
