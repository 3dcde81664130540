"""Exact sums over the rows of columns: plain, by group, and of products.

Each function goes through the rows in blocks, splits a block into folds and adds the sums of the
folds, which have no rounding error, to `streammetrics.core.exact.totals.Totals`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise, product

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import Floats
from streammetrics.core.exact.folds import (
    DIGIT,
    ONES,
    SHORT,
    Fold,
    exponents_of,
    extremes,
    folds,
    short_weight,
    spread,
    sums,
    terms,
)
from streammetrics.core.exact.products import PIECE, STACKED_BLOCK, FoldStack, Products, StackLayout
from streammetrics.core.exact.totals import Totals
from streammetrics.core.exact.workspace import BLOCK, Workspace
from streammetrics.core.types import Array, Places

LARGEST = 2.0**1023  # what squares are cut to
_SMALLEST = 5e-324
_TAME = 2.0**500  # squares of numbers between its inverse and this neither over- nor underflow


def tables(columns: Sequence[Array], weight: Array | None = None) -> list[Array]:
    """Return columns ``(n, *shape)`` as ``(n,)`` or ``(n, d)``; raises if shapes differ."""
    shape = columns[0].shape
    if any(column.shape != shape for column in columns):
        raise ValueError(f"columns differ in shape: {[column.shape for column in columns]}")
    if weight is not None and weight.shape != shape[:1]:
        raise ValueError(f"{shape[0]} rows have a weight of shape {weight.shape}")
    if len(shape) <= 2:
        return list(columns)
    return [column.reshape(shape[0], math.prod(shape[1:])) for column in columns]


def _blocks(
    shape: tuple[int, ...], elements: int
) -> Iterator[tuple[slice, tuple[int, ...], Workspace]]:
    """Yield slices of rows with about so many elements each, their shape, and scratch space."""
    width = math.prod(shape[1:])
    step = max(tuning.WIDE_ROWS, elements // max(1, width))
    with Workspace(min(step, shape[0]) * width) as work:
        for start in range(0, shape[0] if width else 0, step):
            work.reset()
            rows = slice(start, min(start + step, shape[0]))
            yield rows, (rows.stop - start, *shape[1:]), work


def _load_weight(
    weight: Array | None, rows: slice, shape: tuple[int, ...], work: Workspace
) -> Floats | None:
    """Return the weights of some rows, repeated along the columns of a block of a shape."""
    if weight is None:
        return None
    block = work.load(weight, rows)
    if len(shape) == 1:
        return block
    wide = work.take(shape)
    np.copyto(wide, block[:, None])
    return wide


def _bits(rows: int, factors: int) -> int:
    """Return the bits of a fold with which sums of products of factors stay below 2**53 units."""
    return min(50, (53 - (rows - 1).bit_length()) // factors)


def _column_sums(values: Floats, by: Floats = ONES) -> Floats:
    """Return the sums of columns times numbers, of which there may be more than rows."""
    # A product with ones takes half the time of a sum, in pieces so short that BLAS starts no
    # threads, for which it may have to wait.
    rows, width = values.shape
    step = max(1, PIECE // max(width, 1))
    whole = rows - rows % step
    pieces = by[:whole].reshape(-1, 1, step) @ values[:whole].reshape(-1, step, width)
    total: Floats = pieces.sum(axis=(0, 1)) + by[whole:rows] @ values[whole:]
    return total


def _weighted_folds(x: Floats, w: Floats | None, bits: int, work: Workspace) -> Iterator[Fold]:
    """Yield folds of ``x * w``, each in the same array as the one before."""
    values = work.take(x.shape)
    for term, shift in terms(x, w, work):
        for fold in folds(term, bits, work, lambda _: values):
            yield fold._replace(shift=fold.shift + shift)


def add_sums(totals: Totals, values: Array, weight: Array | None) -> None:
    """Add the sums over axis 0 of ``values`` ``(n,)`` or ``(n, d)``, times weights ``(n,)``."""
    if values.ndim == 1 and weight is not None:
        add_moments([], {(0, 1): totals}, [values, weight], None)
        return
    if weight is not None and values.dtype == np.bool_:
        _add_masked(totals, values, weight)
        return
    for rows, shape, work in _blocks(values.shape, BLOCK):
        if values.ndim == 1:
            for whole, unit in sums(work.load(values, rows), work):
                totals.add_integer(whole, unit)
            continue
        w = _load_weight(weight, rows, shape, work)
        for fold in _weighted_folds(work.load(values, rows), w, _bits(shape[0], 1), work):
            totals.add(_column_sums(fold.values), fold.unit, fold.shift)


def _add_masked(totals: Totals, masks: Array, weight: Array) -> None:
    """Add the sums of the weights ``(n,)`` of rows that are set in each of the masks ``(n, d)``."""
    for rows, shape, work in _blocks(weight.shape, PIECE):
        block = masks[rows].astype(np.float64)
        for fold in folds(work.load(weight, rows), _bits(shape[0], 1), work, work.take):
            totals.add(_column_sums(block, fold.values), fold.unit, fold.shift)


def add_powers(
    totals: Mapping[int, Totals],
    terms: Callable[..., Floats],
    columns: Sequence[Array],
) -> tuple[float, float]:
    """Add the sums of powers of terms to `totals` by exponent; return the terms' `extremes`.

    Exponents are 1, 2, 4, ...: each power but the first is the `squares` of the one before.
    `terms` makes a new array, or a view, of each block of rows.
    """
    lowest, highest, end = math.inf, 0.0, max(totals)
    for rows, shape, work in _blocks((len(columns[0]),), BLOCK):
        values = terms(*[column[rows] for column in columns])
        low, high = extremes(values, work.take(shape))
        lowest, highest = min(lowest, low or math.inf), max(highest, high)
        power = 1
        while power <= end:
            if power > 1:
                ours = values if values.flags.owndata else None  # and no view of a column
                values, low, high = squares(values, low, high, out=ours)
            if power in totals:
                for whole, unit in sums(values, work, exponents_of(low, high)):
                    totals[power].add_integer(whole, unit)
            power *= 2
    return (lowest if highest else 0.0), highest


def powered(
    values: Floats, low: float, high: float, powers: Collection[int]
) -> list[tuple[int, Floats, float, float]]:
    """Return the powers of values, each with its exponent before it and its `extremes` behind.

    `low` and `high` are those of the values; exponents are as of `add_powers`.
    """
    found, power = [], 1
    for exponent in sorted(powers):
        while power < exponent:
            values, low, high = squares(values, low, high)
            power *= 2
        found.append((power, values, low, high))
    return found


def squares(
    values: Floats, low: float, high: float, out: Floats | None = None
) -> tuple[Floats, float, float]:
    """Return the squares as float64, cut to `LARGEST`, and their extremes.

    `low` and `high` are the `extremes` of the values. A square that underflows is rounded, maybe
    to 0: the lower extreme is then the smallest float, of which all are multiples.
    """
    if low > 1 / _TAME and high < _TAME:
        return np.multiply(values, values, out=out), low * low, high * high
    with np.errstate(over="ignore", under="ignore"):
        found = np.multiply(values, values, out=out)
    np.minimum(found, LARGEST, out=found)
    high = min(high * high, LARGEST)
    return found, min(low * low or _SMALLEST, high), high


def add_groups(totals: Totals, index: Places, values: Array, weight: Array | None) -> None:
    """Add each of `values` ``(n,)`` to the entry that `index` ``(n,)`` names.

    Values ``(n, k)``, without weights, stand for the exact sum of each row.
    """
    (size,) = totals.shape
    if index.size and not 0 <= index.min() <= index.max() < size:
        raise IndexError(f"groups {index.min()} to {index.max()} of {size}")
    for rows, _, work in _blocks(index.shape, BLOCK):
        w = None if weight is None else work.load(weight, rows)
        for column in values[rows].reshape(rows.stop - rows.start, -1).T:
            for term, shift in terms(work.load(column, slice(None)), w, work):
                for part, digits, place, bits in spread(term, work):
                    here = index[rows] if part is None else index[rows][part]
                    totals.add_at(here, digits, place + shift // DIGIT, bits)


def add_moments(
    first: Sequence[Totals],
    second: Mapping[tuple[int, int], Totals],
    columns: Sequence[Array],
    weight: Array | None,
) -> None:
    """Add the sums of columns ``(n,)`` to `first`, if any, and those of products to `second`."""
    left_columns = max(i for i, _ in second) + 1
    right_from = min(j for _, j in second)
    products = Products(first, second, right_from)
    with FoldStack(min(len(columns[0]), STACKED_BLOCK)) as stack:
        for rows, shape, work in _blocks(columns[0].shape, STACKED_BLOCK):
            stack.levels.clear()
            bits = _bits(min(shape[0], PIECE), 2)
            blocks = [work.load(column, rows) for column in columns]
            w = None if weight is None else work.load(weight, rows)
            short = None if w is None else short_weight(w, work)
            if not first and len(blocks) == 2 and w is None:
                short = short_weight(blocks[1], work)
                if short is not None:  # leaves more bits to the other factor
                    bits = 2 * bits - SHORT
                left = [0, stack.push(blocks[0], None, bits, work)]
                right = [left[-1]]
                if short is None:
                    right.append(stack.push(blocks[1], None, bits, work))
                else:
                    right.append(stack.push_row(blocks[1], short, 0))
            elif w is None:
                bounds = [0, *(stack.push(x, None, bits, work) for x in blocks)]
                left, right = bounds[: left_columns + 1], bounds[right_from:]
            elif short is not None:
                bits -= (SHORT + 1) // 2
                left = [0, *(stack.push(x, None, bits, work) for x in blocks)]
                right = [left[-1]]
                for a, b in pairwise(left[right_from:]):
                    right.append(stack.push_scaled(a, b, w, short))
            else:
                left = [0, *(stack.push(x, w, bits, work) for x in blocks[:left_columns])]
                right = [left[-1]]
                right += [stack.push(x, None, bits, work) for x in blocks[right_from:]]
            # Without the row of ones, NumPy could see that the product is symmetric and have BLAS
            # compute it by a routine that is several times slower.
            if w is not None and short is not None:
                stack.push_row(w, short, 0)
            else:
                stack.push_row(ONES[: shape[0]], 0, 0)
            dots = stack.products(left[-1], right[0], shape[0])
            products.add(StackLayout(tuple(stack.levels), tuple(left), tuple(right)), dots)
    products.flush()


def add_weighted(
    once: Sequence[Totals], twice: Sequence[Totals], columns: Sequence[Array], weight: Floats
) -> None:
    """Add sums of columns ``(n,)`` times weights to `once`, and times their squares to `twice`.

    The last of each gets the sum of the weights, or of their squares, alone. Weights are split
    into folds once for all columns.
    """
    last = len(once)
    sides = {(i, last): totals for i, totals in enumerate(once)}
    sides |= {(i, last + 1): totals for i, totals in enumerate(twice)}
    products = Products([], sides, last)
    bits = _bits(PIECE, 2)
    with FoldStack(min(len(weight), STACKED_BLOCK)) as stack:
        for rows, shape, work in _blocks(weight.shape, STACKED_BLOCK):
            stack.levels.clear()
            left = [0]
            for x in columns:
                if x.dtype == np.bool_:  # which is one fold
                    left.append(stack.push_row(x[rows], 0, 0))
                else:
                    left.append(stack.push(work.load(x, rows), None, bits, work))
            left.append(stack.push_row(ONES[: shape[0]], 0, 0))
            w = work.load(weight, rows)
            right = [left[-1], stack.push(w, None, bits, work), stack.push_square(w, bits, work)]
            dots = stack.products(left[-1], right[0], shape[0])
            products.add(StackLayout(tuple(stack.levels), tuple(left), tuple(right)), dots)
    products.flush()


def add_wide_moments(
    first: Sequence[Totals],
    second: Mapping[tuple[int, int], Totals],
    columns: Sequence[Array],
    weight: Array | None,
) -> None:
    """Add the same as `add_moments`, of columns ``(n, d)``: sums are of shape ``(d,)``."""
    for rows, shape, work in _blocks(columns[0].shape, STACKED_BLOCK):
        bits = _bits(shape[0], 2)
        w = _load_weight(weight, rows, shape, work)
        blocks = [work.load(column, rows) for column in columns]
        plain = [list(folds(x, bits, work, work.take)) for x in blocks]
        weighted = plain
        if w is not None:
            weighted = [
                [
                    fold._replace(shift=fold.shift + shift)
                    for term, shift in terms(x, w, work)
                    for fold in folds(term, bits, work, work.take)
                ]
                for x in blocks
            ]
        for totals, parts in zip(first, weighted, strict=False):
            for a in parts:
                totals.add(_column_sums(a.values), a.unit, a.shift)
        for (i, j), totals in second.items():
            for a, b in product(weighted[i], plain[j]):
                dots = np.einsum("ij,ij->j", a.values, b.values)
                totals.add(dots, a.unit + b.unit, a.shift + b.shift)
