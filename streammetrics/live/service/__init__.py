"""A live state as a service: its configuration, its endpoints and its page."""
