"""Agreement of raters: what is refused, what is undefined, and published values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.testing import check_laws

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
        ([[1, 2], [0.5, 2]], "ratings holds numbers that are not whole in 1 row, first in row 1"),
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
    assert np.isnan(sm.KrippendorffAlpha().update([[3, 0], [3, 0]]).compute())
    assert np.isnan(sm.CramersV().update([1, 1], [1, 2]).compute())
    assert np.isnan(sm.TheilsU().update([1, 1], [1, 2]).compute())


NAN = float("nan")
KINDS = [
    sm.FleissKappa, sm.GwetAC1, sm.KrippendorffAlpha,
    lambda **more: sm.KrippendorffAlpha(level="ordinal", **more),
    lambda **more: sm.KrippendorffAlpha(level="interval", **more),
]  # fmt: skip
# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011): three coders, of whom each left
# some of 15 units out; nobody coded the second and the fourteenth.
CODERS = [
    [NAN, NAN, NAN, NAN, NAN, 3, 4, 1, 2, 1, 1, 3, 3, NAN, 3],
    [1, NAN, 2, 1, 3, 3, 4, 3, NAN, NAN, NAN, NAN, NAN, NAN, NAN],
    [NAN, NAN, 2, 1, 3, 4, 4, NAN, 2, 1, 1, 3, 3, NAN, 4],
]


def counts_of(codes, size):
    return (np.asarray(codes)[:, :, None] == np.arange(size)).sum(axis=1)


def test_the_published_alpha_of_coders_who_left_units_out():
    codes = np.array(CODERS).T
    for level, value in (("nominal", 0.691), ("interval", 0.811)):
        alpha = sm.KrippendorffAlpha(level=level, from_raters=True).update(codes)
        assert round(alpha.compute(), 3) == value
        check_laws(alpha.copy().reset(), {"ratings": codes}, trials=2)


@pytest.mark.parametrize("metric", KINDS)
def test_codes_of_raters_have_the_value_of_their_counts(metric):
    """For every table of three items and two or three raters, and an item that nobody rated."""
    for raters in (2, 3):
        for rows in itertools.combinations_with_replacement(
            itertools.product(range(2), repeat=raters), 3
        ):
            codes = np.array([*rows, [0] * raters, [1] * raters], np.float64)
            counts = metric().update(counts_of(codes, 2))
            rated = metric(from_raters=True).update(codes)
            assert rated.compute() == counts.compute()
            alone = np.vstack([codes, np.full((1, raters), NAN)])
            found = metric(from_raters=True, nan_policy="omit").update(alone)
            assert found.compute() == counts.compute()
            none = metric().update(np.vstack([counts_of(codes, 2), [[0, 0]]]))
            assert none.compute() == counts.compute()


@pytest.mark.parametrize(
    ("ratings", "first"),
    [([[1, 2, 3], [2, 2, 1]], "row 1"), ([[0, 0, 0], [0, 3, 0], [0, 1, 0]], "row 2")],
)
def test_kappa_of_codes_taken_for_counts_is_refused(ratings, first):
    said = rf"adds up to another number .* {first} .* take from_raters=True"
    with pytest.raises(sm.InvalidBatchError, match=said):
        sm.FleissKappa().update(ratings)
    with pytest.raises(sm.InvalidBatchError, match="ratings of an item: .*from_raters=True"):
        sm.FleissKappa().update(ratings[:-1]).update(ratings[-1:])
    shards = [sm.FleissKappa().update([row]) for row in ratings[-2:]]
    with pytest.raises(sm.IncompatibleMetricsError, match="ratings of an item"):
        sm.merge(shards)


@pytest.mark.parametrize(("metric", "value"), [(sm.GwetAC1, 0.404), (sm.KrippendorffAlpha, 0.432)])
def test_codes_are_not_counts_unless_that_is_said(metric, value):
    ratings = [[1, 1, 2], [2, 2, 2], [1, 3, 3], [1, 1, 1], [3, 3, 2]]
    said = r"adds up to another number .* in 4 rows, first in row 1 .*from_raters=True.*=False"
    with pytest.raises(sm.InvalidBatchError, match=said):
        metric().update(ratings)
    with pytest.raises(sm.InvalidBatchError, match="ratings of an item: .*from_raters=False"):
        metric().update(ratings[:1]).update(ratings[1:2])
    assert round(metric(from_raters=True).update(ratings).compute(), 3) == value
    assert metric(from_raters=False).update(ratings).n_rows == len(ratings)
    equal = [[3, 0], [0, 3], [0, 0], [1, 2]]
    assert metric().update(equal).compute() == metric(from_raters=False).update(equal).compute()


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, -1]], r"is outside \[0, 1023\].*numbered from 0"),
        ([[0, 1024]], r"is outside \[0, 1023\]"),
        ([[0, 0.5]], "numbers that are not whole"),
        ([[0, np.inf]], "is infinite"),
    ],
)
def test_codes_that_cannot_be_are_refused(codes, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        sm.FleissKappa(from_raters=True).update(codes)


def test_an_item_that_a_rater_left_out_is_missing_of_kappa_alone():
    codes = [[1, 1, None], [2, 2, 2], [1, 3, 3]]
    with pytest.raises(sm.InvalidBatchError, match=r"missing .* in 1 row, first in row 0.*omit"):
        sm.FleissKappa(from_raters=True).update(codes)
    kappa = sm.FleissKappa(from_raters=True, nan_policy="omit").update(codes)
    assert kappa.n_omitted == 1
    assert kappa.compute() == sm.FleissKappa(from_raters=True).update(codes[1:]).compute()
    for metric in (sm.GwetAC1, sm.KrippendorffAlpha):
        assert metric(from_raters=True).update(codes).n_rows == 3


@pytest.mark.parametrize("from_raters", [False, True])
def test_names_of_categories_are_to_be_made_codes(from_raters):
    names = np.array([["a", "a", "b"], ["b", "b", "b"]])
    codes = np.unique(names, return_inverse=True)[1].reshape(names.shape)
    kappa = sm.FleissKappa(from_raters=from_raters)
    for ratings in (names, names.tolist()):
        with pytest.raises(sm.InvalidBatchError, match=r"integer codes.*return_inverse=True\)\[1"):
            kappa.update(ratings)
    sm.FleissKappa(from_raters=True).update(codes)


def test_products_that_no_items_have_are_no_state():
    codes = sm.FleissKappa(from_raters=True).update([[0, 1], [1, 1]]).statistics()[0]
    key = (2 << 40) | (1 << 20)
    for keys, sums in ([[key], [4]], [[2 << 40], [3]], [[5], [1]], [[(2 << 40) | 5000], [4]]):
        with pytest.raises(sm.StateFormatError, match="not those of any ratings"):
            codes.restored({"labels": np.array(keys), "pairs": np.array(sums)})


def test_items_of_other_categories_do_not_join():
    with pytest.raises(sm.InvalidBatchError, match="columns of numbers: 3 here, 2 in rows seen"):
        sm.FleissKappa().update([[1, 2]]).update([[1, 1, 1]])
