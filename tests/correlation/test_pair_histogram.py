"""The state of pairs is what its definition says, and nothing else is read back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.arithmetic.keys import cell_ids
from streammetrics.core.errors import StateFormatError
from streammetrics.statistics.pairs import PairHistogram

HOSTILE = [-np.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1e-300, 0.25, 0.5, 1 - 2**-53, 1.0]
VALUES = st.sampled_from([*HOSTILE, 1 + 2**-52, 3.0, 1e308, np.inf])
PAIRS = st.lists(st.tuples(VALUES, VALUES), max_size=30)


def defined(pairs, max_pairs):
    """The arrays of a state by its definition."""
    pairs = np.array(pairs, float).reshape(-1, 2) + 0.0
    for level in range(65):
        ids = pairs
        if level:
            ids = np.stack([cell_ids(np.ascontiguousarray(side), level) for side in pairs.T], 1)
        axes = [np.unique(side) for side in ids.T]
        places = [np.searchsorted(axis, side) for axis, side in zip(axes, ids.T, strict=True)]
        codes, counts = np.unique((places[0] << 32) | places[1], return_counts=True)
        if codes.size <= max_pairs:
            break
    values = []
    for axis, place, side in zip(axes, places, pairs.T, strict=True):
        held = [np.unique(side[place == cell]) for cell in range(axis.size)]
        values.append(np.array([one[0] if one.size == 1 else np.nan for one in held], float))
    none = np.empty(0, np.int64)
    return {
        "level": np.array([level]),
        "x_cells": axes[0] if level else none,
        "x_values": values[0],
        "y_cells": axes[1] if level else none,
        "y_values": values[1],
        "pairs": codes,
        "counts": counts,
    }


def fed(pairs, max_pairs):
    histogram = PairHistogram(max_pairs=max_pairs)
    x, y = np.array(pairs, float).reshape(-1, 2).T
    histogram.update(np.ascontiguousarray(x), np.ascontiguousarray(y), weight=None)
    return histogram


def same(arrays, expected):
    assert list(arrays) == list(expected)
    for name, array in expected.items():
        assert arrays[name].tobytes() == array.tobytes(), name
        assert arrays[name].dtype == array.dtype, name


@given(PAIRS, st.sampled_from([4, 5, 8, 16, 100]), st.randoms())
def test_any_history_gives_what_the_definition_says(pairs, max_pairs, random):
    expected = defined(pairs, max_pairs)
    same(fed(pairs, max_pairs).arrays(), expected)
    random.shuffle(pairs)
    cuts = sorted(random.randrange(len(pairs) + 1) for _ in range(4))
    edges = [0, *cuts, len(pairs)]
    shards = [fed(pairs[a:b], max_pairs) for a, b in itertools.pairwise(edges)]
    for shard in shards:
        if random.random() < 0.5:
            shard.cells()
    while len(shards) > 1:
        shard = shards.pop(random.randrange(len(shards)))
        shards[random.randrange(len(shards))].merge(shard)
    same(shards[0].arrays(), expected)
    back = PairHistogram.from_arrays({"max_pairs": max_pairs}, expected)
    same(back.arrays(), expected)


def test_many_rows_in_many_batches():
    rng = np.random.default_rng(0)
    x = rng.normal(size=150_000)
    y = x + rng.random(150_000)
    pairs = np.stack([x, y], 1)
    whole = fed(pairs, 1000)
    assert not whole.exact
    assert whole.cells().codes.size <= 1000
    parts = PairHistogram(max_pairs=1000)
    for part in np.array_split(pairs[::-1], 7):
        parts.update(part[:, 0].copy(), part[:, 1].copy(), weight=None)
    same(parts.arrays(), whole.arrays())
    assert whole.nbytes < 1000 * 32


def test_a_fork_is_a_snapshot():
    histogram = fed([(1, 2), (3, 4)], 100)
    fork = histogram.fork()
    fork.update(np.array([5.0]), np.array([6.0]), weight=None)
    same(histogram.arrays(), defined([(1, 2), (3, 4)], 100))
    same(fork.arrays(), defined([(1, 2), (3, 4), (5, 6)], 100))


def test_budget():
    for wrong in (3, 2**28):
        with pytest.raises(ValueError, match="max_pairs"):
            PairHistogram(max_pairs=wrong)


PLAIN = defined([(1, 2), (1, 3), (2, 3)], 100)
WIDE = defined([(v, v) for v in (1.0, 1.5, 2.0, 3.0, 5.0, -1.0, 0.5)], 4)


def altered(arrays, name, index, value):
    array = arrays[name].copy()
    array[index] = value
    return {**arrays, name: array}


@pytest.mark.parametrize(
    "arrays",
    [
        {name: array for name, array in PLAIN.items() if name != "pairs"},
        {**PLAIN, "more": np.zeros(1)},
        {**PLAIN, "counts": PLAIN["counts"].astype(np.int32)},
        {**PLAIN, "counts": PLAIN["counts"][:-1]},
        {**PLAIN, "level": np.zeros(2, np.int64)},
        altered(PLAIN, "level", 0, 65),
        altered(PLAIN, "level", 0, 1),
        altered(PLAIN, "counts", 0, 0),
        altered(PLAIN, "counts", 0, 2**60),
        altered(PLAIN, "pairs", 0, -1),
        altered(PLAIN, "pairs", 0, 1),
        altered(PLAIN, "pairs", 2, 2 << 32),
        altered(PLAIN, "pairs", 2, 2),
        altered(PLAIN, "x_values", 0, 2.0),
        altered(PLAIN, "x_values", 0, -0.0),
        altered(PLAIN, "x_values", 0, np.nan),
        altered(PLAIN, "x_values", 0, -np.nan),
        altered(WIDE, "x_cells", 0, WIDE["x_cells"][1]),
        altered(WIDE, "x_cells", 0, -(2**62)),
        altered(WIDE, "x_values", 0, 7.0),
        altered(WIDE, "counts", np.argmax(WIDE["counts"]), 1),
        {**PLAIN, "x_values": np.array([1.0, 2.0, 3.0])},
    ],
)
def test_what_is_no_state_is_refused(arrays):
    for good in (PLAIN, WIDE):
        PairHistogram.from_arrays({"max_pairs": 4}, good)
    with pytest.raises(StateFormatError, match="pair|array 'counts'"):
        PairHistogram.from_arrays({"max_pairs": 4}, arrays)


def test_a_level_that_is_too_high_is_refused():
    with pytest.raises(StateFormatError, match="level below"):
        PairHistogram.from_arrays({"max_pairs": 100}, WIDE)
    with pytest.raises(StateFormatError, match="of 4"):
        PairHistogram.from_arrays({"max_pairs": 4}, defined([(i, i) for i in range(5)], 5))
