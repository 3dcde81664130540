"""What a picture draws of many points has every extreme, and lies near all of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.show.pictures.canvas import thinned

RNG = np.random.default_rng(3)
X = np.sort(RNG.random(200_000))
NOISY = np.sin(20 * X) + 0.05 * RNG.normal(size=X.size)
NOISY[77_777], NOISY[123_456] = 9.0, -9.0


def test_extremes_stay():
    kept = thinned(X, NOISY)
    assert {0, X.size - 1, 77_777, 123_456} <= set(kept.tolist())
    assert len(kept) <= 400
    assert (np.diff(kept) > 0).all()


def test_smooth_line_is_near_all_points():
    y = X**3
    kept = thinned(X, y)
    assert len(kept) < 100
    assert np.abs(np.interp(X, X[kept], y[kept]) - y).max() < 3e-3


def test_descending_and_flat_points_are_thinned_as_well():
    assert len(thinned(X[::-1], NOISY[::-1])) <= 400
    assert thinned(X, np.ones_like(X)).tolist() == [0, X.size - 1]
    assert thinned(X[:5], NOISY[:5]).tolist() == [0, 1, 2, 3, 4]


def test_plotting_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'streammetrics\[plot\]'"):
        sm.ROCCurve().update([0, 1], [0.2, 0.6]).compute().plot()
