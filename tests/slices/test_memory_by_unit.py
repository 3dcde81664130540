"""Memory of limits by unit: the states without each group of units do not exist at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from thinning import some

import streammetrics as sm

N = 30_000


def rows(n=N, groups=3, users=2_000):
    """Rows whose scores all differ, so that a state grows with the number of rows."""
    rng = np.random.default_rng(5)
    y, score = rng.integers(0, 2, n), rng.permutation(n) / n
    user, group = rng.integers(0, users, n), rng.integers(0, groups, n)
    return {"y_true": y, "y_score": score, "y_pred": (score > 0.5) * 1, "u": user, "g": group}


def suite():
    return sm.MetricSet({"auc": sm.ROCAUC(), "recall": sm.Recall()})


def peak(read):
    """Return the largest number of bytes allocated at once while a function runs."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def slices():
    return sm.Slices(suite(), by=[["g"], []], unit="u").update(rows())


# All 64 states without a group of units take more than 60 times the memory of the state (merged
# counts are wider). They are made by halving: about log2(64) = 6 exist at once. `worst` reads all
# slices side by side, each compared with the merged others. The limits are twice what was measured.
READS = {
    "compute": (20, lambda slices: slices.compute(confidence=0.95)),
    "worst": (50, lambda slices: slices.worst("auc")),
    "gap": (20, lambda slices: slices.gap("auc", by="g")),
    "ratio": (20, lambda slices: slices.ratio("auc", by="g", method="to_overall")),
    "metric of all rows": (20, lambda slices: slices["auc"].confidence()),
    "metric of a slice": (6, lambda slices: slices[{"g": 1}]["auc"].confidence()),
}


@pytest.mark.parametrize(("most", "read"), some(READS.values()), ids=READS)
def test_limits_by_unit_take_memory_in_proportion_to_the_state(slices, most, read):
    assert peak(lambda: read(slices)) < most * slices.nbytes


def test_limits_of_units_left_out_by_merging_take_memory_in_proportion_to_the_state():
    data = rows(n=3_000, users=100)  # each is left out alone
    units = sm.MetricSet({"partial": sm.ROCAUC(max_fpr=0.3)}, unit="u")
    units.update({name: data[name] for name in ("y_true", "y_score", "u")})
    assert peak(units.confidence) < 26 * units.nbytes


def test_the_worst_slices_by_rows_take_memory_in_proportion_to_the_state():
    data = rows(groups=60)
    many = sm.Slices(suite(), by=[["g"]]).update({k: v for k, v in data.items() if k != "u"})
    assert peak(lambda: many.worst("auc")) < 35 * many.nbytes


@pytest.mark.parametrize("read", ["worst", "gap", "ratio"])
def test_only_the_statistics_of_the_metric_are_merged(slices, read):
    options = {} if read == "worst" else {"by": "g"}
    assert peak(lambda: getattr(slices, read)("recall", **options)) < 10 * slices.nbytes
