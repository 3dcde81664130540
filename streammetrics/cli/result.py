"""Results and errors of commands, and output to standard error."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.results.table import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class CommandError(StreamMetricsError):
    """A mistake in the arguments; its message is printed as one line."""


@dataclass(frozen=True)
class CommandResult:
    """The text for standard output, the exit code, and a line for standard error.

    `finish` does what cannot be undone, after the text is printed.
    """

    text: str = ""
    code: int = 0
    error: str = ""
    finish: Callable[[], None] | None = None


@contextlib.contextmanager
def blaming(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Make a mistake of errors: its message begins with the option, or the file, to blame."""
    try:
        yield
    except errors as error:
        why = getattr(error, "strerror", None) or (
            error.args[0] if isinstance(error, KeyError) else error
        )
        raise CommandError(f"{what}: {why}" if what else str(why)) from error


MISTAKE = 2  # a user error: in the arguments or data, or a file that cannot be read or written
NO_ROWS = 1  # the exit code if nothing was measured
NOTHING = "no rows: nothing was measured"


def say(line: str) -> None:
    """Write one line to standard error."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # standard error is closed as well
            text = printable(" ".join(line.split())) + "\n"
            print(text, end="", file=sys.stderr, flush=True)  # in one piece, among processes
