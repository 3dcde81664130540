"""Ctrl-C while the command line still loads: one line and an exit code, like any time later.

The package is imported before the first line of the command runs, and NumPy takes its time, so
this is the first thing that the package imports. In a library it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130  # 128 and the number of the signal, as shells have it


def _is_command() -> bool:
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # what is run is being looked for
        return not {"streammetrics", "streammetrics.cli"}.isdisjoint(sys.orig_argv)
    return os.path.splitext(os.path.basename(program))[0] == "streammetrics"


def leave_at_interrupt() -> None:
    """End the process at Ctrl-C, where there is nothing yet, or nothing more, to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def raise_at_interrupt() -> None:
    """Let Ctrl-C be a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Whether this process was started as ``streammetrics`` or ``-m streammetrics``.
IS_COMMAND = _is_command()
if IS_COMMAND:
    leave_at_interrupt()
