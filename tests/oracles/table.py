"""The oracle table: one row or more for every metric."""

from __future__ import annotations

import importlib
import pkgutil

import oracles

ORACLES = [
    oracle
    for module in sorted(pkgutil.iter_modules(oracles.__path__), key=lambda info: info.name)
    if module.name not in {"base", "table"}
    for oracle in importlib.import_module(f"oracles.{module.name}").ORACLES
]
