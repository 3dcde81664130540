"""The kernels in use: the compiled ones, or the reference implementation if none are compiled.

``STREAMMETRICS_KERNELS`` selects ``reference``, ``baseline`` or ``avx2``. The 1 in ``kernels 1`` is
the version of the results; it changes whenever any result changes by a byte.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics.core.kernels import reference

if TYPE_CHECKING:
    from types import ModuleType

_REASON = Path(__file__).with_name("reason.txt")


def _chosen() -> tuple[ModuleType, str]:
    """Return the module of kernels, and the description that `kernels` returns."""
    wanted = os.environ.get("STREAMMETRICS_KERNELS", "")
    if wanted not in ("", "reference", "baseline", "avx2"):
        raise ImportError(f"STREAMMETRICS_KERNELS={wanted}: choose reference, baseline or avx2")
    if wanted == "reference":
        return reference, "reference (STREAMMETRICS_KERNELS is set)"
    try:
        compiled = import_module("streammetrics.core.kernels._kernels")
    except ImportError as error:
        if wanted:
            raise ImportError(
                f"STREAMMETRICS_KERNELS={wanted}: there are no compiled kernels"
            ) from error
        reason = _REASON.read_text("utf-8").strip() if _REASON.exists() else str(error)
        return reference, f"reference ({reason})"
    variants = compiled.variants()
    if wanted and wanted not in variants:
        raise ImportError(
            f"STREAMMETRICS_KERNELS={wanted}: this processor has {', '.join(variants)}"
        )
    variant = wanted or variants[-1]
    compiled.use(variant)
    return compiled, f"kernels 1 ({variant})"


active, _description = _chosen()


def kernels() -> str:
    """Return which kernels are in use: ``kernels 1 (avx2)``, or ``reference`` with the reason.

    All of them give the same bytes. ``STREAMMETRICS_KERNELS`` selects one.

    >>> import streammetrics as sm
    >>> sm.kernels().split()[0] in ("kernels", "reference")
    True
    """
    return _description
