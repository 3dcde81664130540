"""Floating-point arithmetic as statistics need it, whatever the caller or a library has set.

The IEEE standard leaves two things to a thread: how results are rounded, and, on most processors,
whether numbers below the normal ones count as 0. Exact sums need the default of both. Who changes
it, as ``torch.set_flush_denormal(True)`` does, changes it for a thread and all it calls, so it is
looked at where arithmetic begins: in the thread of each update, merge and reading.
"""

from __future__ import annotations

import numpy as np

from streammetrics.core.errors import FloatingPointModeError

_UNIT = 5e-324  # the smallest number


def check_arithmetic(
    three: float = 3 * _UNIT, five: float = 5 * _UNIT, half: float = 0.5, large: float = 2.0**1000
) -> None:
    """Raise unless this thread rounds to the nearest, and keeps numbers below the normal ones.

    Halves of 3 and of 5 units are both rounded to 2 units, to 1 or 3 in another mode, and to 0
    where such numbers are none. They are arguments so that the interpreter computes with them each
    time. Takes some 70 ns.

    Raises:
        FloatingPointModeError: It does not.
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


# For functions in which NumPy neither warns nor raises, whatever ``np.errstate`` says: as a
# decorator it costs half of what the context does.
quiet = np.errstate(all="ignore")


def own_arithmetic() -> np.errstate:
    """Return a context in which NumPy neither warns nor raises, after `check_arithmetic`.

    Batches are validated before, and a readout looks for what it cannot divide: so what overflows
    or underflows there is meant, or mended. Code that asks for the processor's flags sets its own.

    Raises:
        FloatingPointModeError: This thread does not compute as IEEE has it by default.
    """
    check_arithmetic()
    return np.errstate(all="ignore")
