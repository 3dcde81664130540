"""Prediction files of every format, and a way to run commands in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from streammetrics.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def run(command: Callable[..., Result]) -> Callable[..., Result]:
    """Run a command of `streammetrics live`."""
    return lambda *arguments: command("live", *arguments)


@pytest.fixture
def mistake(command: Callable[..., Result]) -> Callable[..., str]:
    """Run a command that has to fail, and return its one line."""

    def run(*arguments: object) -> str:
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err.removeprefix("error: ").rstrip("\n")

    return run


@pytest.fixture
def binary() -> pa.Table:
    rng = np.random.default_rng(7)
    label = rng.integers(0, 2, 3000)
    score = np.round(1 / (1 + np.exp(-(rng.normal(size=3000) + label))), 3)
    return pa.table(
        {"label": label, "score": score, "weight": rng.random(3000), "text": ["a,b"] * 3000}
    )
