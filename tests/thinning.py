"""Parameters of tests of which a default run takes some, and `.ci/run` all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def some(values: Iterable[Any], every: int = 3) -> list[Any]:
    """Return the values as parameters, of which a default run takes one in `every`.

    A tuple is of several parameters.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.long] if place % every else [],
        )
        for place, value in enumerate(values)
    ]


def drawn(few: int, many: int, *strategies: Any) -> Callable[[Callable[..., None]], Any]:
    """Make a law of drawn arguments a test with a `few` examples, and a long one with `many`."""

    def made(law: Callable[..., None]) -> Any:
        @pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.long)])
        def test(examples: int) -> None:
            settings(max_examples=examples)(given(*strategies)(law))()

        test.__doc__, test.__name__, test.__module__ = law.__doc__, law.__name__, law.__module__
        return test

    return made
