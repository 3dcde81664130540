"""The floating-point mode that statistics require, checked on every use.

A thread can change two properties of IEEE arithmetic: the rounding mode and, on most processors,
whether subnormal numbers are flushed to zero. Exact sums require the default of both. A library
call such as ``torch.set_flush_denormal(True)`` changes the mode for the rest of the thread. It is
therefore checked where arithmetic begins: in the thread of each update, merge and read.
"""

from __future__ import annotations

import numpy as np

from streammetrics.core.errors import FloatingPointModeError

_UNIT = 5e-324  # the smallest subnormal number


def check_arithmetic(
    three: float = 3 * _UNIT, five: float = 5 * _UNIT, half: float = 0.5, large: float = 2.0**1000
) -> None:
    """Raise unless this thread rounds to nearest and keeps subnormal numbers.

    Halves of 3 and 5 units both round to 2 units. In another rounding mode they round to 1 or 3
    units; if subnormal numbers are flushed, to 0. The constants are arguments so that the
    interpreter cannot fold them. The check takes about 70 ns.

    Raises:
        FloatingPointModeError: The thread's mode is not the default one.
    """
    if (three * half + five * half) * large == 2.0**-72:
        return
    if five * half * large == 0.0:
        raise FloatingPointModeError(
            "this thread takes numbers below 2.2e-308 for 0, as a library has set it, so that sums "
            "would not be exact; call torch.set_flush_denormal(False), or use another thread"
        )
    raise FloatingPointModeError(
        "this thread does not round to the nearest number, so that sums would not be exact; "
        "set the rounding mode FE_TONEAREST, or use another thread"
    )


# Decorator for functions in which NumPy neither warns nor raises, whatever ``np.errstate`` is set.
# As a decorator it costs half as much as a context manager.
quiet = np.errstate(all="ignore")


def own_arithmetic() -> np.errstate:
    """Call `check_arithmetic`; return a context in which NumPy neither warns nor raises.

    Batches are validated beforehand, and readouts check their divisors. An overflow or underflow
    inside the context is therefore either intended or handled. Code that needs floating-point
    exceptions sets its own context.

    Raises:
        FloatingPointModeError: The thread's floating-point mode is not the default one.
    """
    check_arithmetic()
    return np.errstate(all="ignore")
