"""Every array of every kind of state, forged in turn: other shapes, and sums beyond float64."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from kinds.rows import FIRST
from oracles.table import ORACLES
from thinning import some

import streammetrics as sm
from fuzz import states
from fuzz.seedlings import seedlings
from streammetrics.core.arithmetic.exact import ExactSum, to_integer
from streammetrics.core.state.arrays import narrowed

BLOCKS = 6
FAR = 1 << 1100  # in units of one: the square root of none beyond it is a float64 either


@cache
def grown():
    """Return one of every metric, and all that hold some."""
    first = {id(oracle) for oracle in FIRST}
    every = seedlings()
    return [
        seedling
        for place, seedling in enumerate(every)
        if place >= len(ORACLES) or id(ORACLES[place]) in first
    ]


def shapes(shape, data, width):
    """Yield other shapes of an array, with the bytes that fill them."""
    n = len(data) // width
    yield from ((other, data) for other in ([n], [n, 1]) if other != shape)
    if n:
        yield [0], b""
    if n and shape:
        yield [], data[:width]


def blown(arrays, head, sign):
    """Return arrays with the first of the sums that `head` names larger than float64 can hold."""
    (kind, shape, data), (unit_kind, _, unit) = (arrays[head + n] for n in ("digits", "exponent"))
    rows = np.frombuffer(data, states.TYPES[kind]).astype(np.int64).reshape(shape)
    low = int.from_bytes(unit, "little", signed=True)
    first, *others = (to_integer(row) << max(low, 0) for row in rows)
    low = min(low, 0)
    values = [first + sign * (FAR << -low), *others]
    sums = ExactSum.row_of([ExactSum.single(value, low) for value in values]).arrays()
    if unit_kind != "I64":  # as over groups
        sums = narrowed(sums)
    written = {
        head + name: [f"I{8 * array.itemsize}", list(array.shape), array.tobytes()]
        for name, array in sums.items()
    }
    return {**arrays, **written}


@pytest.mark.parametrize("block", some(range(BLOCKS), every=6))
def test_arrays_of_other_shapes_are_refused(block):
    for seedling in grown()[block::BLOCKS]:
        meta, arrays = states.parts(seedling.blobs[1])
        for name, (kind, shape, data) in list(arrays.items())[:20]:
            for other, filled in shapes(shape, data, np.dtype(states.TYPES[kind]).itemsize):
                forged = {**arrays, name: [kind, other, filled]}
                taken = states.attempt(states.written(meta, forged, in_order=True), seedling)
                assert not taken or isinstance(seedling.empty, sm.Live)


@pytest.mark.parametrize("block", some(range(BLOCKS), every=6))
def test_sums_beyond_float64_are_refused_or_read(block):
    became = set()
    for seedling in grown()[block::BLOCKS]:
        meta, arrays = states.parts(seedling.blobs[1])
        heads = [name.removesuffix("digits") for name in arrays if name.endswith("digits")]
        for head in heads[:8]:
            _, shape, _ = arrays[head + "digits"]
            if len(shape) == 2 and shape[0] and head + "exponent" in arrays:
                for sign in (1, -1):
                    forged = blown(arrays, head, sign)
                    blob = states.written(meta, forged, in_order=True)
                    became.add(states.attempt(blob, seedling))
    assert became == {True, False}
