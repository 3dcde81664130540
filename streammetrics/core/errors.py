"""Errors and warnings of the package; all errors have one base class."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_PYTHON = {"bins": "sm.Bins({!r}, edges)", "periods": "sm.Periods({!r}, 'day')"}


class Hint:
    """Advice on an error, with parameters as data that the command line spells in its own way.

    Args:
        text: The advice, with ``{name}`` for each parameter.
        **parameters: Their values; ``...`` stands for any value. `bins` and `periods` name columns
            to cut.

    >>> str(Hint("{nan_policy} leaves such rows out", nan_policy="omit"))
    "nan_policy='omit' leaves such rows out"

    """

    def __init__(self, text: str, **parameters: object) -> None:
        self.text, self.parameters = text, parameters

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hint) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.text)

    def spelled(self, parameter: Callable[[str, object], str]) -> str:
        """Format the hint; `parameter` formats each parameter from its name and value."""
        spelled = {name: parameter(name, value) for name, value in self.parameters.items()}
        return self.text.format_map(spelled)

    def __str__(self) -> str:
        return self.spelled(_in_python)


def _in_python(name: str, value: object) -> str:
    if name in _PYTHON:
        return _PYTHON[name].format(value)
    return f"{name}={value!r}".replace("Ellipsis", "...")


class StreamMetricsError(Exception):
    """Base class of all errors that streammetrics raises deliberately.

    `problem` is the message without the hint. `hint` is advice that names parameters, if any.
    """

    def __init__(self, message: str = "", hint: Hint | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def problem(self) -> str:
        """The message without the hint."""
        return super().__str__()

    def __str__(self) -> str:
        return self.problem if self.hint is None else f"{self.problem}; {self.hint}"


class InvalidBatchError(StreamMetricsError, ValueError):
    """A batch is invalid; the metric is unchanged.

    `column` is the user's name of the offending column, and `row` its first offending row, counted
    from 0 in the batch. Either is ``None`` if there is no single column, or if the whole column is
    invalid.
    """

    def __init__(
        self,
        message: str,
        column: str | None = None,
        row: int | None = None,
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.column, self.row = column, row

    def after(self, rows: int, unit: str) -> InvalidBatchError:
        """Return the error with its row counted from the start of a `unit`, `rows` rows earlier."""
        if self.row is None:
            return self
        at = self.row + rows
        text = self.problem.replace(f"in row {self.row}", f"in row {at} of the {unit}", 1)
        return InvalidBatchError(text, self.column, at, self.hint)

    def within(self, where: str) -> InvalidBatchError:
        """Return the error with the location of the batch prepended."""
        return InvalidBatchError(f"{where}: {self.problem}", self.column, self.row, self.hint)


class IncompatibleMetricsError(StreamMetricsError, ValueError):
    """States cannot be merged: metrics or configurations differ, or rows would count twice."""


class NoConfidenceError(StreamMetricsError, ValueError):
    """A metric has no confidence interval, or its state lacks the data for one."""


class StateFormatError(StreamMetricsError, ValueError):
    """Bytes are not a state that this version can read."""


class FloatingPointModeError(StreamMetricsError, RuntimeError):
    """The thread does not round to nearest, or flushes subnormal numbers to zero."""


class UndefinedMetricWarning(UserWarning):
    """A metric is NaN because it is undefined for the rows seen."""


class EstimateWarning(UserWarning):
    """A value is an estimate from a sample; ``bounds()`` returns guaranteed limits."""


def an(name: str) -> str:
    """Prefix a class name with its article: an Accuracy, an MSE, an ndarray, but a ROCAUC."""
    vowel = name[:1] in "aeioAEIO"
    spelt = re.match("[FHLMNRSX][B-DF-HJ-NP-TV-Z0-9]|n[b-df-hj-np-tv-z]", name)  # "em", "en", ...
    return f"an {name}" if vowel or spelt else f"a {name}"


_INSIDE = (str(Path(__file__).parents[1]), contextlib.__file__)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the first caller outside the package, at any call depth."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_EXPECTED: ContextVar[bool] = ContextVar("expected", default=False)


@contextlib.contextmanager
def undefined_expected() -> Iterator[None]:
    """Do not warn of undefined values, in this thread alone.

    `warnings.catch_warnings` would change, and later restore, the filters of all threads.
    """
    before = _EXPECTED.set(True)
    try:
        yield
    finally:
        _EXPECTED.reset(before)


def warn_undefined(message: str, stacklevel: int) -> None:
    """Warn that a value is undefined, with the location of a caller, unless this is expected."""
    if not _EXPECTED.get():
        warnings.warn(message, UndefinedMetricWarning, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def needs(package: str, extra: str = "engines") -> Iterator[None]:
    """Add installation instructions to the error of a failing import."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{package} is needed: pip install {package!r}, or 'streammetrics[{extra}]'"
        ) from error
