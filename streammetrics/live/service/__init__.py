"""A live state as an HTTP service: configuration, endpoints and page."""
