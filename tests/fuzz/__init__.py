"""Attacks on states and ledgers: structure-aware, re-checksummed, reproducible from a seed."""
