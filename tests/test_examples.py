"""Every example runs, from another folder and with warnings as errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import check_example

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
EXAMPLES = [path for path in EXAMPLES if not path.name.startswith("engine_")]  # tests/engines


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example, tmp_path):
    check_example(example, tmp_path)
