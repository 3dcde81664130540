"""The command line: prediction files in, values out."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from streammetrics._command import (
    INTERRUPTED,
    IS_COMMAND,
    TERMINATED,
    end_at_exit,
    leave_at_signals,
    raise_at_signals,
    was_terminated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0 means success, 1 that there were no rows, 2 a mistake; docs/cli.md lists all codes.
    """
    code = _main(arguments)
    if IS_COMMAND:
        end_at_exit(code)
    return code


def _main(arguments: Sequence[str] | None) -> int:
    try:
        raise_at_signals()
        # Worker processes import this module through the console script: no slow imports above.
        missing = [name for name in ("pyarrow", "typer", "rich") if find_spec(name) is None]
        if missing:
            print(
                f"error: the command line needs {', '.join(missing)}: "
                "pip install 'streammetrics[cli]'",
                file=sys.stderr,
            )
            return 2
        from streammetrics.cli.exit import run_command  # noqa: PLC0415 - needs the extra

        code = run_command(arguments)
        if IS_COMMAND:  # the output is complete: nothing can be lost any more
            leave_at_signals()
    except KeyboardInterrupt:
        if not was_terminated():
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
    return TERMINATED if was_terminated() else code
