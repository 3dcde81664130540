"""Error messages for optional packages that are not installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needs(package: str, extra: str = "engines") -> Iterator[None]:
    """Add installation instructions to the error of a failing import."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{package} is needed: pip install {package!r}, or 'streammetrics[{extra}]'"
        ) from error
