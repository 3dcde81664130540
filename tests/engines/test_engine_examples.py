"""Every engine has its example, which runs with warnings as errors."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path.stem
    for path in (ROOT / "streammetrics" / "engines").glob("[a-z]*.py")
    if path.stem not in {"local", "processes", "shards"}
)


@pytest.mark.parametrize("engine", MODULES)
def test_example(engine, tmp_path):
    try:
        importlib.import_module(f"streammetrics.engines.{engine}")
    except ImportError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"engine_{engine}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
