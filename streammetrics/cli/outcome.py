"""What a command hands back: its printing is done in one place, where a full disk is noticed."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass

from streammetrics.core.results.table import printable


def say(line: str) -> None:
    """Write a line to standard error."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # there is nowhere left to say it
            print(printable(" ".join(line.split())), file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Outcome:
    """What goes to standard output, the exit code, and one line for standard error."""

    text: str = ""
    code: int = 0
    error: str = ""
