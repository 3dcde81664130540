"""States that a file holds in columns: opened or written together they are what each is alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, layout_of, plain_rows, state_of, taken
from streammetrics.core.feeding.described import described, each_described, each_filled, filled
from streammetrics.core.state.arrays import Stack, same

N = 6
ODD = (0, 1, -1, 2, 3, 32, 1 << 31, 1 << 40, -(1 << 62))


def stacked(layout, rows, size):
    """Return states of parts of rows, and those arrays of one of them in which all are alike."""
    parts = (np.arange(part * size, (part + 1) * size) for part in range(N))
    states = [state_of(layout, taken(rows, part)) for part in parts]
    told = [described(state) for state in states]
    shapes = [
        [(name, a.dtype, a.shape) for name, a in sorted(arrays.items())] for _, arrays in told
    ]
    common = [k for k in range(N) if shapes[k] == shapes[0]]
    feeds = [states[k].feeds for k in common]
    names = told[0][1]
    return feeds, {name: np.stack([told[k][1][name] for k in common]) for name in names}


def alone(layout, feeds, stacks):
    """Return the states opened one by one, or None where one of them is not such as is written."""
    states = []
    for place, feed in enumerate(feeds):
        arrays = {name: stack[place, ...] for name, stack in stacks.items()}
        try:
            states.append(filled(layout, tuple(map(tuple, feed)), arrays))
        except sm.StateFormatError:
            return None
        if not same(described(states[-1])[1], arrays):
            return None
    return states


def together(layout, feeds, stacks):
    """Return the states opened at once, or None where that is refused."""
    try:
        every = {name: Stack.equal(stack, stack.shape[1:]) for name, stack in stacks.items()}
        return each_filled(layout, feeds, every)
    except sm.StateFormatError:
        return None


def agree(layout, feeds, stacks):
    """Check that both ways give the same states, or refuse; return whether they refuse."""
    one, other = alone(layout, feeds, stacks), together(layout, feeds, stacks)
    assert (one is None) == (other is None)
    for mine, theirs in zip(one or [], other or [], strict=True):
        assert mine.feeds == theirs.feeds
        assert same(described(mine)[1], described(theirs)[1])
    return one is None


def changed(stacks, rng):
    """Return the arrays with one entry changed, one dropped, or one of another type or shape."""
    name = sorted(stacks)[int(rng.integers(len(stacks)))]
    stack, kind = stacks[name].copy(), int(rng.integers(8))
    if kind == 6:
        return {key: value for key, value in stacks.items() if key != name}
    if kind == 7 or not stack.size:
        return stacks | {name: stack.astype(np.int32) if rng.integers(2) else stack[..., None]}
    place = int(rng.integers(stack.size))
    odd = ODD[int(rng.integers(len(ODD)))]
    if stack.dtype.kind == "f":
        stack.reshape(-1)[place] = rng.choice([np.nan, -0.0, np.inf, -1.0, 0.5])
    else:
        with np.errstate(over="ignore"):
            stack.reshape(-1)[place] += np.array(odd).astype(stack.dtype)
    return stacks | {name: stack}


def sample(oracle, size=8):
    """Return states of an oracle's metric, of so many rows each."""
    rows = plain_rows(oracle, N * size)
    n = next(map(len, rows.values()))
    return stacked(layout_of(oracle.metric), taken(rows, np.arange(N * size) % n), size)


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_states_opened_together_are_those_opened_alone(oracle):
    assert not agree(layout_of(oracle.metric), *sample(oracle))


def unstacked(stacks, n):
    """Return the arrays of each of n states."""
    found = [{} for _ in range(n)]
    for name, (data, shapes) in stacks.items():
        ends = np.cumsum(shapes.prod(axis=1, dtype=int))[:-1]
        for mine, part, shape in zip(found, np.split(data, ends), shapes.tolist(), strict=True):
            mine[name] = part.reshape(shape)
    return found


@pytest.mark.parametrize(
    "weights", [None, (1.0, 2.0, 3.0), (0.5, 1.5)], ids=["none", "whole", "halves"]
)
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_states_described_together_are_those_described_alone(oracle, weights):
    layout, rows = layout_of(oracle.metric), plain_rows(oracle, N * 4)
    n = next(map(len, rows.values()))
    if weights:
        if any(schema.unweighted for schema in layout.schemas):
            return
        rows["sample_weight"] = np.resize(weights, n)
    states = [state_of(layout, taken(rows, np.arange(2 * k + 1) % n)) for k in range(N)]
    stacks = each_described(states)
    assert stacks is None or all(
        map(same, unstacked(stacks, N), [described(state)[1] for state in states])
    )


VARIED = {
    "mean": (sm.Mean(), lambda r, k: {
        "values": r.normal(size=k % 5) * 10.0 ** r.integers(-99, 99),
    }),
    "weighted": (sm.Mean(), lambda r, k: {
        "values": r.normal(size=4), "sample_weight": r.random(4) if k % 3 else None,
    }),
    "F1": (sm.F1(threshold=0.5), lambda r, k: {
        "y_true": r.integers(0, 2, k % 3), "y_score": r.random(k % 3),
    }),
    "set": (sm.MetricSet({"mae": sm.MAE(), "r2": sm.R2()}), lambda r, _: {
        "y_true": r.random(3), "y_pred": r.random(3),
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIED)
def test_a_ledger_of_states_written_together_is_that_of_states_written_one_by_one(name):
    metric, rows = VARIED[name]
    rng, whole = np.random.default_rng(7), sm.Ledger(metric.copy())
    parts = [sm.Ledger(metric.copy()), sm.Ledger(metric.copy())]
    for shard in range(520):
        state = metric.copy().feed({k: v for k, v in rows(rng, shard).items() if v is not None})
        whole.add(shard, state)
        parts[shard % 2].add(shard, state)
    read = [sm.from_bytes(part.to_bytes()) for part in parts]  # whose states are written alone
    assert sm.merge(read).to_bytes() == whole.to_bytes()


@pytest.mark.long
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_what_is_refused_alone_is_refused_together(oracle):
    rng = np.random.default_rng(5)
    layout, (feeds, stacks) = layout_of(oracle.metric), sample(oracle)
    assert sum(agree(layout, feeds, changed(stacks, rng)) for _ in range(24))


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_a_number_that_is_refused_alone_is_refused_together(oracle):
    """In every array, the first number of a state that is not the first."""
    layout, (feeds, stacks) = layout_of(oracle.metric), sample(oracle)
    for name, stack in stacks.items():
        if len(stack) > 1 and stack[1].size:
            for odd in (-1.0, np.nan) if stack.dtype.kind == "f" else (-1, 1, -(1 << 62)):
                other = stack.copy()
                with np.errstate(over="ignore"):
                    other[1].reshape(-1)[0] += np.array(odd).astype(stack.dtype)
                agree(layout, feeds, stacks | {name: other})


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "c"], ["a,", "b"]])
def test_states_of_texts_and_of_weights_are_opened_together(labels):
    metrics = [sm.Accuracy(), sm.ROCAUC(pos_label=labels[0]), sm.LogLoss(pos_label=labels[0])]
    layout = layout_of(sm.MetricSet({type(metric).__name__: metric for metric in metrics}))
    rng = np.random.default_rng(6)
    rows = {
        "y_true": np.array([labels[0], labels[-1]])[rng.integers(0, 2, N * 8)],
        "y_pred": np.array(["a", "b"])[rng.integers(0, 2, N * 8)],
        "y_score": rng.random(N * 8),
        "sample_weight": rng.random(N * 8).round(2) + 0.01,
    }
    feeds, stacks = stacked(layout, rows, 8)
    assert not agree(layout, feeds, stacks)
    assert sum(agree(layout, feeds, changed(stacks, rng)) for _ in range(24))


def test_texts_of_one_length_are_told_apart_and_spelled_as_they_are_written():
    layout = layout_of(sm.Accuracy())
    columns = [{"y_true": list(pair), "y_pred": list(pair)} for pair in ("ab", "cd", "ac")]
    states = [state_of(layout, rows) for rows in columns]
    told = [described(state)[1] for state in states]
    feeds = [state.feeds for state in states]
    stacks = {name: np.stack([arrays[name] for arrays in told]) for name in told[0]}
    assert not agree(layout, feeds, stacks)
    name = "0/row_labels"
    for text in ('["a" ]   ', '[ "a","b"]', '["b","a"] '):
        raw = np.frombuffer(text[: stacks[name].shape[1]].encode(), np.uint8)
        assert agree(layout, feeds, stacks | {name: np.tile(raw, (3, 1))})


def _varied_histograms(rng):
    """Return states of scores of other numbers and levels, one after the other."""
    metric = sm.MetricSet({"auc": sm.ROCAUC(max_bins=16), "loss": sm.LogLoss()})
    layout, scores = (
        layout_of(metric),
        {"y_score": rng.random(400), "y_true": rng.integers(0, 2, 400)},
    )
    sizes = [3, 40, 1, 40, 7, 90, 16, 17, 3]
    starts = np.cumsum([0, *sizes])
    parts = [np.arange(start, end) for start, end in pairwise(starts)]
    return layout, [state_of(layout, taken(scores, part)) for part in parts]


def _stacks(told):
    """Return the arrays of states stacked, whatever their shapes."""
    return {name: Stack.of([mine[name] for mine in told], told[0][name].dtype) for name in told[0]}


def test_histograms_of_any_sizes_and_levels_are_opened_together():
    layout, states = _varied_histograms(np.random.default_rng(8))
    told = [described(state)[1] for state in states]
    stacks = each_described(states)
    assert all(map(same, unstacked(stacks, len(states)), told))
    found = each_filled(layout, [state.feeds for state in states], stacks)
    assert all(same(described(mine)[1], arrays) for mine, arrays in zip(found, told, strict=True))
    merged = [layout.merged(every[0], every[1:]) for every in (found, states)]
    assert same(*[described(state)[1] for state in merged])


def test_histograms_of_any_sizes_are_refused_together_where_one_is():
    rng = np.random.default_rng(9)
    layout, states = _varied_histograms(rng)
    feeds = [state.feeds for state in states]
    names = ["level", "cells", "scores", "counts"]
    odd = {"level": (1, 2, -1, 64), "cells": (1, -1, 1 << 40), "counts": (-1, 1, 1 << 40)}
    refused = 0
    for draw in range(120):
        told = [dict(described(state)[1]) for state in states]
        mine, key = told[rng.integers(len(told))], f"0/0/{names[draw % 4]}"
        array = mine[key] = mine[key].copy()
        if array.size:
            place = rng.integers(array.size)
            if array.dtype.kind == "f":
                array[place] = rng.choice([np.nan, -0.0, 0.5, array[0]])
            else:
                array.reshape(-1)[place] += rng.choice(odd[names[draw % 4]])
        one = _opened_alone(layout, feeds, told)
        try:
            many = each_filled(layout, feeds, _stacks(told))
        except sm.StateFormatError:
            many = None
        assert (one is None) == (many is None)
        refused += one is None
    assert 40 < refused < 120


def _opened_alone(layout, feeds, told):
    try:
        states = [filled(layout, tuple(map(tuple, f)), a) for f, a in zip(feeds, told, strict=True)]
    except sm.StateFormatError:
        return None
    written = [described(state)[1] for state in states]
    return states if all(map(same, written, told)) else None
