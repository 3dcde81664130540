"""Every metric says why it is undefined, whatever the rows lack."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from oracles.table import ORACLES
from thinning import some

import streammetrics as sm

VAGUE = "do not define it"


def filled(column, cell):
    """Return a column whose cells are all the same; one of lists keeps their lengths."""
    if isinstance(column, list):
        return [cell] * len(column)
    return np.repeat(np.asarray([cell]), len(column), axis=0)


def poor_rows(rows):
    """Return rows that lack what a metric may need: one class, a constant column, empty lists."""
    names = [n for n, column in rows.items() if n != "sample_weight" and column is not None]
    for n in (1, 2):
        yield {**rows, **{name: rows[name][:n] for name in rows if rows[name] is not None}}
    for n in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, n):
            yield {**rows, **{name: filled(rows[name], rows[name][0]) for name in chosen}}
            cells = {name: rows[name][0] for name in chosen}
            numbers = {name: np.asarray(cell) for name, cell in cells.items()}
            if all(cell.dtype.kind in "biuf" for cell in numbers.values()):
                for value in (0, 1):
                    same = {name: np.full_like(cell, value) for name, cell in numbers.items()}
                    yield {**rows, **{name: filled(rows[name], same[name]) for name in chosen}}
            elif all(isinstance(cell, list) for cell in cells.values()):
                yield {**rows, **{name: [[]] * len(rows[name]) for name in chosen}}
                yield {**rows, **{name: [["O"] * len(c) for c in rows[name]] for name in chosen}}


def warned(metric):
    """Return what reading a metric warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metric.compute()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("oracle", some(ORACLES), ids=lambda oracle: oracle.id)
def test_an_undefined_value_says_why(oracle):
    assert not any(VAGUE in words for words in warned(oracle.metric.copy()))
    for rows in poor_rows(oracle.rows(np.random.default_rng(1), min(oracle.n, 16))):
        metric = oracle.metric.copy()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                metric.update(**rows)
            words = warned(metric)
        except (ValueError, TypeError):  # rows that the metric refuses
            continue
        assert not any(VAGUE in one for one in words), rows


def test_a_slice_says_why_as_the_metric_does():
    slices = sm.Slices(sm.MetricSet({"auc": sm.ROCAUC()}), by="k")
    slices.update(y_true=[1, 1, 0], y_score=[0.1, 0.2, 0.3], k=["a", "b", "b"])
    why = "'auc' is nan in 1 of 2 slices, first of k=a: only one class was seen"
    with pytest.warns(sm.UndefinedMetricWarning, match=why):
        slices.compute()


def test_a_class_that_counts_as_0_in_a_slice_is_not_called_nan():
    slices = sm.Slices(sm.MetricSet({"f": sm.Precision(average="macro")}), by="k")
    slices.update(y_true=[0, 1], y_pred=[0, 0], k=["a", "a"])
    with pytest.warns(sm.UndefinedMetricWarning, match="'f' counts the class 1 as 0") as caught:
        slices.compute()
    assert "nan in" not in str(caught[0].message)
