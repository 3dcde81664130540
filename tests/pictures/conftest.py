"""Tests of pictures need the extra `pictures`; `.ci/run` installs it, a default run has no need."""

from __future__ import annotations

import importlib.util
import warnings

import pytest

NEEDED = ("matplotlib", "jinja2", "PIL", "selenium")
if not all(map(importlib.util.find_spec, NEEDED)):
    collect_ignore_glob = ["test_*.py"]
else:
    import matplotlib as mpl

    mpl.use("agg")


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    from matplotlib import pyplot as plt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Matplotlib's own imports
        yield
    plt.close("all")
