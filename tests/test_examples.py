"""Every example runs, from another folder and with warnings as errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
EXAMPLES = [path for path in EXAMPLES if not path.name.startswith("engine_")]  # tests/engines


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
