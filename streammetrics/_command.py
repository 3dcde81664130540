"""Ctrl-C and SIGTERM end a command with one line and an exit code, also while it still loads.

The package is imported before the first line of the command runs, and NumPy takes its time, so
this is the first thing that the package imports. In a library it does nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time

INTERRUPTED = 130  # 128 and the number of the signal, as shells have it
TERMINATED = 143

_PATIENCE = 5.0  # seconds for what cleans up, in which a second SIGTERM changes nothing
_raised = 0.0  # when SIGTERM came
_interrupted = False  # whether Ctrl-C came
_code: int | None = None  # the exit code of a process that `end_at_exit` ends
_foreign = False  # whether threads that Python does not know may still call it


def _is_command() -> bool:
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # what is run is being looked for
        return "streammetrics" in sys.orig_argv
    return os.path.splitext(os.path.basename(program))[0] == "streammetrics"


def leave_at_signals() -> None:
    """End the process at a signal, where there is nothing yet, or nothing more, to clean up."""
    if signal.getsignal(signal.SIGINT) in {signal.default_int_handler, _interrupt}:
        signal.signal(signal.SIGINT, _leave)
    is_worker = "--multiprocessing-fork" in sys.orig_argv  # whose parent prints the line
    if signal.getsignal(signal.SIGTERM) in {signal.SIG_DFL, _raise} and not is_worker:
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _: object) -> None:
    os.write(2, _LINES[number])
    os._exit(128 + number)


def raise_at_signals() -> None:
    """Let Ctrl-C be a KeyboardInterrupt again, and SIGTERM one of its kind: both clean up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) is _leave:
        signal.signal(signal.SIGTERM, _raise)


def _interrupt(*_: object) -> None:
    global _interrupted  # noqa: PLW0603 - a handler has no other memory
    _interrupted = True
    raise KeyboardInterrupt


class _Terminated(KeyboardInterrupt):
    """SIGTERM. While it compiles a module, Python discards every other exception of a handler."""


def _raise(number: int, _: object) -> None:
    global _raised  # noqa: PLW0603 - a handler has no other memory
    if not _raised:
        _raised = time.monotonic()
        os.write(2, _LINES[number])
        raise _Terminated
    if time.monotonic() - _raised > _PATIENCE:  # else what cleans up goes on
        os._exit(128 + number)


def was_terminated() -> bool:
    """Whether SIGTERM came, even if its exception was discarded, as in a finalizer."""
    return _raised > 0


def was_stopped() -> bool:
    """Whether any signal came: what fails after it, as a module half imported, is no bug."""
    return _interrupted or was_terminated()


def end_at_exit(code: int) -> None:
    """End this process with an exit code after all exit handlers, if daemon threads still run.

    The interpreter is not finalized then. While it is, Python ends each daemon thread that needs
    it, and if that thread is inside C++ code, as of NumPy or Arrow, the process aborts or hangs.
    """
    global _code  # noqa: PLW0603 - an exit handler has no other memory
    _code = code


def expect_foreign_threads() -> None:
    """Treat threads of a library that may call Python until the end as daemon threads."""
    global _foreign  # noqa: PLW0603 - an exit handler has no other memory
    _foreign = True


def _end() -> None:
    if _code is None or not (_foreign or threading.active_count() > 1):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # it is closed
            stream.flush()
    os._exit(_code)


_LINES: dict[int, bytes] = {signal.SIGINT: b"interrupted\n", signal.SIGTERM: b"terminated\n"}
# Whether this process was started as ``streammetrics`` or ``-m streammetrics``.
IS_COMMAND = _is_command()
if IS_COMMAND:
    leave_at_signals()
atexit.register(_end)  # before any other of this package, so that it is called last
