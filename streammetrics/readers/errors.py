"""What is said of a file that cannot be read."""

from streammetrics.core.errors import StreamMetricsError


class ReadError(StreamMetricsError):
    """A file is not there, or not what its name says; the message is one line that names it."""
