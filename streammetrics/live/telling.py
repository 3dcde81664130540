"""Warnings that point at whoever called, however deep inside something was noticed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

_INSIDE = (str(Path(__file__).parents[1]), contextlib.__file__)


def tell(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line, outside of this package, from which it was called."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
