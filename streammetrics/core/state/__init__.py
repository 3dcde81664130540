"""The container: bytes and arrays."""
