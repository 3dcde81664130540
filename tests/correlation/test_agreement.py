"""Agreement of raters: what is refused, what is undefined, and published values."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm

# Fleiss 1971, Table 1 as it is on Wikipedia: 14 raters put 10 items into 5 categories.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def test_the_published_kappa():
    assert sm.FleissKappa().update(FLEISS).compute() == pytest.approx(0.20993070442195522)


@pytest.mark.parametrize("metric", [sm.FleissKappa, sm.GwetAC1, sm.KrippendorffAlpha])
@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ([[1, 2], [0.5, 2]], "ratings holds what is no whole number in 1 row, first in row 1"),
        ([[1, 2], [0, 0], [0, 0]], "ratings has no ratings in 2 rows, first in row 1"),
        ([[1, -2]], r"ratings is outside \[0, .* in 1 row, first in row 0"),
    ],
)
def test_ratings_that_cannot_be_are_refused(metric, ratings, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric().update(ratings)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_where_nobody_can_agree_it_is_undefined():
    for metric in (sm.FleissKappa(), sm.GwetAC1(), sm.KrippendorffAlpha()):
        assert np.isnan(metric.copy().update([[1, 0], [0, 1]]).compute())
    assert np.isnan(sm.KrippendorffAlpha().update([[2, 0], [3, 0]]).compute())
    assert np.isnan(sm.CramersV().update([1, 1], [1, 2]).compute())
    assert np.isnan(sm.TheilsU().update([1, 1], [1, 2]).compute())


def test_items_of_other_categories_do_not_join():
    with pytest.raises(sm.InvalidBatchError, match="columns of numbers: 3 here, 2 in rows seen"):
        sm.FleissKappa().update([[1, 2]]).update([[1, 1, 1]])
