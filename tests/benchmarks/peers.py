"""Peers that may not be there: what cannot be imported is told in the table, and the rest runs."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from typing import Any

MODULES: dict[str, Any] = {}  # all that were asked for

# numba, which ranx needs, asks for a package `coverage` and would find the study beside this file.
sys.modules["coverage"] = None  # type: ignore[assignment]  # the import system's word for "none"


class MissingPeer(Exception):
    """What was to be measured is of a peer that cannot be imported here."""


class Missing:
    """Stands for a module that cannot be imported, and for all that is made with it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


def peer(name: str) -> Any:
    """Return a module, or what stands for it."""
    if name not in MODULES:
        try:
            MODULES[name] = importlib.import_module(name)
        except Exception as error:  # a broken install raises anything
            MODULES[name] = Missing(f"{name} cannot be imported: {type(error).__name__}: {error}")
    return MODULES[name]


def versions() -> list[str]:
    """Return the names and versions of the distributions that peers came from."""
    found = metadata.packages_distributions()
    modules = (name for name, module in MODULES.items() if not isinstance(module, Missing))
    names = {each for name in modules for each in found.get(name.partition(".")[0], ())}
    return [f"{name} {metadata.version(name)}" for name in sorted(names, key=str.lower)]
