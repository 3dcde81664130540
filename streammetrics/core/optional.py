"""What a module says where a package that it needs is not installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needs(package: str, extra: str = "engines") -> Iterator[None]:
    """Name the package to install in the error of an import that fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{package} is needed: pip install {package!r}, or 'streammetrics[{extra}]'"
        ) from error
