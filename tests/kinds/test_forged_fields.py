"""Fields that do not fit each other are no state, each of them being one of some rows."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, plan_of, state_of, statistics_of
from streammetrics.core.field import parted
from streammetrics.core.state.arrays import same
from streammetrics.statistics.boxes import BoxScores
from streammetrics.statistics.matches import MatchTable
from streammetrics.statistics.pairs import SurvivalPairs
from streammetrics.statistics.tables import TopKHits


def statistics():
    """Return a statistic of every class with several fields, of some rows and of none."""
    found = {}
    for oracle in FIRST:
        plan = plan_of(oracle.metric)
        full = state_of(plan, plain_rows(oracle, 12)).statistics
        for statistic, empty in zip(full, plan.start.statistics, strict=True):
            if len(statistic.fields) > 1:
                found.setdefault(type(statistic).__name__, (statistic, empty))
    return list(found.values())


def with_field(statistic, other, name):
    """Return the arrays of a statistic but for a field, which is another's."""
    parts = {n: parted(s.fields, s.arrays()) for n, s in (("mine", statistic), ("other", other))}
    arrays = {}
    for each, field in statistic.fields.items():
        for key, array in parts["other" if each == name else "mine"][each].items():
            arrays[key if field.inline else f"{each}/{key}" if key else each] = array
    return arrays


def is_legal(statistic, kind, name):
    """Whether there are rows of which a state is so."""
    if isinstance(statistic, TopKHits):
        return (kind, name) in {("full", "hits"), ("empty", "total")}
    if isinstance(statistic, SurvivalPairs):  # pairs of events, and of events with censored times
        return name in {"events", "censored"}
    if isinstance(statistic, BoxScores):  # nothing need be predicted
        return (kind, name) in {("full", "outcomes"), ("empty", "counts")}
    if isinstance(statistic, MatchTable):  # wins and ties are of different matches
        return True
    return (kind, name) == ("full", "total")  # a sum may be 0


@pytest.mark.parametrize("statistic", statistics(), ids=lambda pair: type(pair[0]).__name__)
def test_a_field_of_other_rows_is_refused(statistic):
    for kind, (mine, other) in (("full", statistic), ("empty", statistic[::-1])):
        for name in mine.fields:
            arrays = with_field(mine, other, name)
            if same(arrays, mine.arrays()) or is_legal(mine, kind, name):
                mine.restored(arrays).check()
                continue
            with pytest.raises(
                sm.StateFormatError, match="rows|sums|total|weight|points|boxes|fit|has"
            ):
                mine.restored(arrays)


def test_a_cluster_without_points_has_no_sum():
    centroids = sm.DaviesBouldin(centroids=[[0.0], [5.0], [9.0]])
    (sums,) = statistics_of(centroids.update([[0.5], [4.0], [4.5]], [0, 1, 1]))
    arrays = sums.arrays()
    sums.restored(arrays).check()
    with pytest.raises(sm.StateFormatError, match="a cluster without points has a sum"):
        sums.restored({**arrays, "counts": np.array([1, 0, 0])}).check()


def test_what_is_kept_of_labels_is_of_some_rows_of_each():
    (sums,) = statistics_of(sm.CalinskiHarabasz().update([[0.5], [4.0], [4.5]], [0, 1, 1]))
    arrays = sums.arrays()
    for counts in ([0, 3], [1, -2], [0, 0]):
        with pytest.raises(sm.StateFormatError, match="counts of labels are not positive"):
            sums.restored({**arrays, "counts": np.array(counts)})


@pytest.mark.parametrize("metric", [sm.ExpectedCost(cost=((0, 1), (2, 0))), sm.F1(labels=[0, 1])])
def test_a_table_of_other_labels_than_those_given_is_no_state(metric):
    (table,) = metric.statistics()
    for rows in ({"y_true": [0, 2], "y_pred": [1, 1]}, {"y_true": [1, 1], "y_pred": [0, 2]}):
        (seen,) = statistics_of(sm.Accuracy().update(**rows))
        with pytest.raises(sm.StateFormatError, match=r"not among \(0, 1\)"):
            table.restored(seen.arrays())
