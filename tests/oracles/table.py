"""The oracle table: one row or more for every metric."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest

import oracles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracles.base import Oracle

ORACLES = [
    oracle
    for module in sorted(pkgutil.iter_modules(oracles.__path__), key=lambda info: info.name)
    if module.name not in {"base", "table"}
    for oracle in importlib.import_module(f"oracles.{module.name}").ORACLES
]


def thinned(rows: Sequence[Oracle], every: int = 3) -> list[Any]:
    """Return all of them as parameters of a test, of which a default run takes one in `every`."""
    long = pytest.mark.long
    return [
        pytest.param(oracle, id=oracle.id, marks=[long] if place % every else [])
        for place, oracle in enumerate(rows)
    ]
