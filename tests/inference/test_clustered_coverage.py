"""The study of clustered rows and of decisions in `benchmarks/coverage.py`, with fewer samples."""

from __future__ import annotations

import pytest
from benchmarks.coverage import CLUSTERED, HIGH, clustered, gates, looks, power, unpaired

pytestmark = pytest.mark.long
NO_LIMIT = float("inf")


@pytest.mark.parametrize(
    ("name", "samples"), [("Accuracy", 600), ("LogLoss", 400), ("ROCAUC", 200), ("NDCG(k=5)", 300)]
)
def test_limits_of_100_units_hold_in_about_95_percent(name, samples):
    shares = clustered(CLUSTERED[name], 100, samples, NO_LIMIT)[:2]
    assert all(0.91 <= share <= 0.99 for share in shares)


@pytest.mark.parametrize("name", ["Accuracy", "LogLoss"])
def test_limits_of_a_difference_of_different_rows_hold_in_about_95_percent(name):
    assert 0.91 <= unpaired(CLUSTERED[name], 100, 300, NO_LIMIT)[0] <= 0.99


def test_limits_of_30_uneven_units_hold_in_about_95_percent():
    shares = clustered(HIGH, 30, 500, NO_LIMIT)[:2]
    assert all(0.92 <= share <= 0.97 for share in shares)


def test_a_gate_calls_equal_models_worse_in_at_most_5_percent():
    assert gates(CLUSTERED["Accuracy"], 100, 200, NO_LIMIT)[0] <= 0.05


def test_power_is_as_promised():
    promised, found, _ = power(200, 200, NO_LIMIT)
    assert found == pytest.approx(promised, abs=0.08)


def test_limits_at_all_times_seldom_miss():
    assert looks(150, NO_LIMIT)[0] <= 0.05
