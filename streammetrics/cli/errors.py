"""What a mistake on the command line is told with."""

from streammetrics.core.errors import StreamMetricsError


class CommandError(StreamMetricsError):
    """A mistake in the arguments: its message is the one line that is printed."""
