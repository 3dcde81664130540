"""Every engine has its example, which runs with warnings as errors."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from scripts import check_example

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path.stem
    for path in (ROOT / "streammetrics" / "engines").glob("[a-z]*.py")
    if path.stem
    not in {"committed", "counted", "local", "offload", "processes", "shards", "threads", "worker"}
)


@pytest.mark.parametrize("engine", MODULES)
def test_example(engine, tmp_path):
    try:
        importlib.import_module(f"streammetrics.engines.{engine}")
    except ImportError as error:
        pytest.skip(str(error))
    check_example(ROOT / "examples" / f"engine_{engine}.py", tmp_path)
