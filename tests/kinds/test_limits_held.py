"""What is held at its limits: rows of a cell, signs, the last long score, the nearest sides."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

import streammetrics as sm
from kinds.rows import plan_of, state_of, statistics_of
from kinds.test_many_states import sound
from streammetrics.core.arithmetic.cells import _below
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.keys import cell_ids
from streammetrics.core.counting import GroupCodes
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.fields.sums import Width
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.results.table import Table
from streammetrics.core.state.arrays import narrowed
from streammetrics.statistics.buffered import GroupedRows
from streammetrics.statistics.histograms import deviation

MOST = 1 << 31


@pytest.mark.parametrize("cell", [0, 3])
def test_cells_of_as_many_rows_as_can_be_are_those_of_one_state(cell):
    plan = plan_of(sm.ROCAUC())
    columns = {"y_true": np.arange(8) // 2 % 2, "y_score": np.arange(8) % 2 / 8}
    arrays = StateTable.of(plan, [state_of(plan, columns) for _ in range(3)]).arrays()
    for rows in (-1, 0, *range(MOST - 9, MOST + 2), 1 << 40, 1 << 62):
        counts = arrays["0/counts"].astype(np.int64)
        counts[cell] = rows
        sound(plan, narrowed({**arrays, "0/counts": counts}), 3)


@pytest.mark.parametrize("name", ["counts", "scores", "levels", "cells", "sizes", "plain"])
def test_arrays_of_other_lengths_beside_right_ones_are_refused(name):
    plan = plan_of(sm.ROCAUC())
    states = [state_of(plan, {"y_true": [0, 1], "y_score": [0.25, 0.5]}) for _ in range(3)]
    arrays = StateTable.of(plan, states).arrays()
    for change in (
        lambda a: np.repeat(a, 2, axis=0), lambda a: a[:1], lambda a: a[..., None], lambda a: a[:0],
    ):  # fmt: skip
        wrong = {**arrays, f"0/{name}": change(arrays[f"0/{name}"])}
        if wrong[f"0/{name}"].shape != arrays[f"0/{name}"].shape:
            assert sound(plan, wrong, 3)


@pytest.mark.parametrize("wrong", [-1, 1 << 62])
def test_numbers_of_columns_are_checked_in_every_state(wrong):
    field = Width("columns")
    told = {"": np.array([1, 2, 1])}
    assert field.groups_taken(told, 3, None).tolist() == [1, 2, 1]
    for place in range(3):
        told[""][place] = wrong
        with pytest.raises(sm.StateFormatError, match="are not numbers of columns"):
            field.groups_taken(told, 3, None)
        told[""][place] = 2


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("size", [1, 3 << 40])
def test_amounts_of_all_forms_know_their_signs(sign, size):
    number = sign * size
    counts = np.array([1, number])
    sums = [ExactSum.of(np.array([float(number)])), ExactSum.grouped(
        np.array([0, 1]), 2, counts.astype(float)
    )]  # fmt: skip
    forms = [
        WeightedCount.of_counts(counts),
        *map(WeightedCount.of_exact, sums),
        *map(WeightedCount.of_weights, sums),
    ]
    for amount in forms:
        assert amount.any_negative == (sign < 0)
        assert np.sign(np.asarray(amount.signs()).reshape(-1)[-1]) == sign
        if amount.weights is not None and amount.weights.shape == ():
            assert bool(amount) == bool(sign)


@pytest.mark.parametrize(
    ("score", "long"),
    [
        (2.0**53, True), (2.0**63, True), (2.0**64, True), (1.5 * 2.0**64, False),
        (-(2.0**53), True), (-(2.0**63), True), (-1.5 * 2.0**63, False), (-(2.0**64), False),
        (2.0**52, False), (-(2.0**52), False), (1.0, False), (-1.0, False),
    ],
)  # fmt: skip
def test_cells_that_no_integer_of_64_bits_falls_into_never_had_tails(score, long):
    cell = cell_ids(np.array([score]), 4)
    if long:
        assert _below(cell, 4, tailed=True) == 2
        return
    with pytest.raises(sm.StateFormatError, match="no cell of a histogram can hold"):
        _below(cell, 4, tailed=True)


@pytest.mark.parametrize("slopes", [(1, 9), (9, 1), (1, 1), (0, 1), (1, 0)])
def test_least_and_most_deviations_are_those_of_rows_at_the_sides_of_their_cells(slopes):
    values = np.random.default_rng(0).normal(size=200) * 3
    (held,) = statistics_of(sm.Quantile(q=0.5, max_bins=12).update(values))
    (histogram,) = held.histograms
    up, down = map(Fraction, slopes)

    def loss(value, at):
        return max(up * (Fraction(value) - at), down * (at - Fraction(value)), 0)

    for at in (Fraction(-2), Fraction(1, 3), Fraction(5)):
        low, _, high = deviation(histogram, (at, at), up, down)
        assert low <= sum(loss(value, at) for value in values.tolist()) <= high
        least = most = Fraction(0)
        for block in histogram.cells():
            for first, last, count in zip(
                block.low.tolist(), block.high.tolist(), block.counts[0].tolist(), strict=True
            ):
                inside = first <= at <= last
                ends = loss(first, at), loss(last, at)
                least += count * (0 if inside else min(ends))
                most += count * max(ends)
        assert low == pytest.approx(float(least), rel=1e-9)
        assert high == pytest.approx(float(most), rel=1e-9)


def test_a_row_of_one_against_one_is_counted_once_however_many_pairs_it_is_in():
    rng = np.random.default_rng(1)
    scores = rng.dirichlet(np.ones(4), 30)
    metric = sm.ROCAUC(multi_class="ovo").update(rng.integers(0, 4, 30), scores)
    (held,) = statistics_of(metric)
    assert held.amount == 30


@pytest.mark.parametrize("weight", [None, np.array([0.5, 1.5, 2.5, 3.5])])
@pytest.mark.parametrize("places", [[0, 1], [1, -1], [-1, 0], [-1, -1]])
def test_rows_that_wait_for_a_group_that_is_cut_go_nowhere(places, weight):
    codes, values = np.array([0, 0, 1, 1]), np.array([5, 6, 7, 8])
    moved = GroupedRows.of(GroupCodes(codes, 2), (values,), weight).moved(np.array(places), 2)
    kept = np.array([places[code] >= 0 for code in codes])
    assert moved.codes.tolist() == [places[code] for code in codes[kept]]
    assert moved.columns[0].tolist() == values[kept].tolist()
    assert (moved.weight is None) == (weight is None)
    if weight is not None:
        assert moved.weight.tolist() == weight[kept].tolist()


def test_a_set_of_no_metrics_holds_nothing():
    empty = sm.MetricSet({})
    assert (empty.n_rows, empty.n_omitted, empty.nbytes) == (0, 0, 0)


def test_what_is_not_there_is_an_empty_field():
    table = Table({"of": ["a", "b"]}, {"x": [1.5, float("nan")], "y": [None, 2]})
    assert table.csv() == "of,x,y\na,1.5,\nb,,2\n"
    assert len(Table({}, {})) == 0


def test_columns_are_named_as_they_are_called_in_words_on_their_shapes():
    suite = sm.MetricSet({"kl": sm.KLDivergence()}, columns={"y_true": "truth", "y_score": "guess"})
    with pytest.raises(sm.InvalidBatchError, match=r"^truth has shape \(1, 2\) and guess \(1, 3\)"):
        suite.update(truth=[[0.5, 0.5]], guess=[[0.25, 0.25, 0.5]])


def test_labels_that_are_many_are_shown_in_part():
    labels = tuple(f"label-{n}" for n in range(40))
    metric = sm.F1(multilabel=True, average="micro", labels=labels)
    shown = re.escape(f"labels={repr(labels)[:60]}")
    with pytest.raises(sm.InvalidBatchError, match=f"{shown}$"):
        metric.update([["none"]], [["none"]])
