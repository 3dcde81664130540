"""Code that runs in a signal's handler, in the middle of other code."""

from __future__ import annotations

import contextlib
import signal


@contextlib.contextmanager
def alarms(action, seconds):
    """Call `action()` from a timer's handler, `seconds` after the block begins and after each call.

    Python calls a handler between two instructions, so one may run after the timer was stopped. It
    must not start the timer then: the signal would come without a handler and end the process.
    """
    running = True

    def handle(*_):
        action()
        if running:
            signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
