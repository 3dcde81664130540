"""The command line: prediction files in, values out."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 2 for a mistake, 130 for Ctrl-C."""
    # Worker processes import this module through the console script, so nothing heavy above.
    missing = [name for name in ("pyarrow", "typer", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"error: the command line needs {', '.join(missing)}: pip install 'streammetrics[cli]'",
            file=sys.stderr,
        )
        return 2
    from streammetrics.cli.app import run_command  # noqa: PLC0415 - needs the extra

    return run_command(arguments)
