"""What is said of a file that cannot be read, and names near a mistyped one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTED = 20


class ReadError(StreamMetricsError):
    """A file is not there, or not what its name says; the message is one line that names it."""


def near(name: str, names: Iterable[str], what: str = "there are") -> str:
    """Return the names to choose from, as the end of a message, those like `name` first."""
    names = list(names)
    by_lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    text = ""
    if close:
        text = f"; did you mean {' or '.join(repr(by_lower[key]) for key in close)}?"
    if not names:
        return f"{text}; {what} none"
    shown = ", ".join(names[:_LISTED])
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{text or ';'} {what[:1].upper() + what[1:] if text else what}: {shown}{more}"
