"""States of many groups that are read from arrays: checked together, and shared where equal."""

from __future__ import annotations

import numpy as np
import pytest
from kinds.rows import plan_of

import streammetrics as sm
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import Batch
from streammetrics.core.state.arrays import same
from streammetrics.core.statistic import GroupedStates
from streammetrics.statistics.grouped import grouped_plan
from streammetrics.statistics.histograms import ScoreHistogram
from streammetrics.statistics.keys import KEY
from streammetrics.statistics.probabilities import ProbabilityLossSpread, ProbabilityLossSum


def fed(of, sizes, seed=0):
    """Return a statistic for each size, after as many rows."""
    dice, states = np.random.default_rng(seed), []
    for n in sizes:
        state = of.fork()
        if n:
            scores = np.round(dice.random(n), 2)
            state.update((dice.random(n) < scores).astype(np.uint8), scores, weight=None)
        states.append(state)
    return states


def arrays_of(of, sizes):
    return GroupedStates.of_states(of, fed(of, sizes)).arrays()


STATISTICS = [
    ProbabilityLossSum(loss="log"),
    ProbabilityLossSpread(loss="log"),
    ScoreHistogram(max_bins=8),
    ScoreHistogram(max_bins=1024),
]


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 40), (1, 1, 1), (0, 0)])
@pytest.mark.parametrize("of", STATISTICS)
def test_groups_are_read_as_one_by_one(of, sizes):
    states = fed(of, sizes)
    arrays = GroupedStates.of_states(of, states).arrays()
    found = GroupedStates.restored(of, arrays, len(sizes))
    assert same(found.arrays(), arrays)
    for one, state in zip(found.each(), states, strict=True):
        assert one.is_same(state)


def negative(digits):
    """Return digits of sums that are below 0."""
    return np.concatenate([digits[:, :-1], digits[:, -1:] - 2**30], axis=1)


def changed(arrays, name, values):
    return {**arrays, name: np.asarray(values, arrays[name].dtype)}


@pytest.mark.parametrize(
    ("of", "name", "change", "text"),
    [
        (STATISTICS[0], "total/digits", negative, "do not fit each other"),
        (STATISTICS[0], "columns", lambda a: 0 * a, "do not fit each other"),
        (STATISTICS[1], "powers/seen", lambda a: ~a, "which groups have rows"),
        (STATISTICS[1], "squared_weight/digits", lambda a: [[0], [9]], "no sums of squares"),
        (STATISTICS[1], "powers/squares/digits", negative, "squares are negative"),
        (STATISTICS[3], "scores", lambda a: a[::-1], "ascending"),
        (STATISTICS[3], "counts", lambda a: -a, "counts|negative|below"),
        (STATISTICS[3], "sizes", lambda a: a + 1, "sizes"),
        (STATISTICS[3], "widths", lambda a: a + 1, "widths"),
        (STATISTICS[3], "plain", lambda a: ~a, "histogram"),
    ],
)
def test_one_bad_group_is_refused(of, name, change, text):
    arrays = arrays_of(of, (3, 5))
    assert name in arrays, sorted(arrays)
    with pytest.raises(sm.StateFormatError, match=text):
        GroupedStates.restored(of, changed(arrays, name, change(arrays[name])), 2)


def test_arrays_of_no_histogram_are_refused():
    arrays = arrays_of(STATISTICS[3], (3, 5))
    with pytest.raises(sm.StateFormatError, match="do not fit each other"):
        GroupedStates.restored(STATISTICS[3], {**arrays, "more": arrays["scores"]}, 2)


def sliced():
    suite = sm.MetricSet({"loss": sm.LogLoss(), "auc": sm.ROCAUC(max_bins=64)})
    return sm.Live(suite, by=[["country"]])


def rows(n, first=1_700_000_000, seed=0):
    dice = np.random.default_rng(seed)
    scores = np.round(dice.random(n), 3)
    return {
        "time": first + np.arange(n) * 7,
        "y_true": (dice.random(n) < scores).astype(int),
        "y_score": scores,
        "country": dice.choice(["DE", "FR", "ES"], n),
    }


def test_states_that_share_panes_do_not_change_each_other():
    blob = sliced().observe(**rows(300)).to_bytes()
    one, two, whole = sm.from_bytes(blob), sm.from_bytes(blob), sliced().observe(**rows(300))
    panes = [each._shared.current.panes.rows[0].states.values() for each in (one, two)]
    shared = [a.statistics[0] is b.statistics[0] for a, b in zip(*panes, strict=True)]
    assert all(shared)  # one object, as nobody writes to it
    more = rows(200, 1_700_000_500, 1)
    assert one.observe(**more).to_bytes() == whole.observe(**more).to_bytes()
    assert two.to_bytes() == blob
    assert one.merge(two).n_rows == 800
    assert two.to_bytes() == blob


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_many_are_merged_as_one_after_the_other(n):
    first, *others = map(_grouped, range(n + 1))
    before = [other.arrays() for other in others]
    one, two = first.fork(), first.fork()
    one.merge_all(others)
    for other in others:
        two.merge(other)
    assert same(one.arrays(), two.arrays())
    assert one.rows.sum() == 40 * (n + 1)
    assert all(map(same, [other.arrays() for other in others], before))


def _grouped(seed):
    """Return the statistic of some rows by key."""
    accumulator = Accumulator(grouped_plan(plan_of(sm.ROCAUC(max_bins=64))))
    given = rows(40, seed=seed)
    accumulator.update(
        Batch({name: given[name] for name in ("y_true", "y_score")} | {KEY: given["country"]})
    )
    return accumulator.flush().statistics[0]
