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


def distinct(rows: Sequence[Oracle], *, readouts: bool = False) -> list[Oracle]:
    """Return those of which a state comes about in its own way: of statistics, and kinds of rows.

    Of metrics that read the same statistics the state is the same. Where values are read as well,
    `readouts` tells the classes of metrics apart.
    """
    found: dict[Any, Oracle] = {}
    for oracle in rows:
        read = tuple(statistic._key for statistic in oracle.metric.statistics())
        found.setdefault((read, oracle.rows, type(oracle.metric) if readouts else None), oracle)
    return list(found.values())


def thinned(rows: Sequence[Oracle], *, columns: bool = True, every: int = 1) -> list[Any]:
    """Return all of them as parameters of a test, of which a default run takes some.

    What the test looks at depends on the statistics of a metric and, unless `columns` is false, on
    the kind of rows: a default run takes the first oracle of each, or of each in `every`.
    """
    seen, parameters = set(), []
    for oracle in rows:
        kind = (*map(type, oracle.metric.statistics()), oracle.rows if columns else None)
        marks = [pytest.mark.long] if kind in seen or len(seen) % every else []
        seen.add(kind)
        parameters.append(pytest.param(oracle, id=oracle.id, marks=marks))
    return parameters
