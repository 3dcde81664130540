"""The reference implementation of the kernels, in NumPy and Python integers.

It is the definition: tests compare every compiled kernel with it, byte for byte. It also runs where
no kernels are compiled. Signatures and results are those of the extension module.

A total is an integer in base 2**32: int64 digits, lowest first, which may be negative or above
2**32 until they are carried. A float64 is an integer of 53 bits times a power of two, so it affects
three digits, and sums of digits are exact in any order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Floats, Ints, Numeric

_MASK = 0xFFFFFFFF
_LOW, _DIGITS = -3328, 208  # lowest bit of a product of three float64; digits up to the highest
_ROWS = 1 << 14  # rows whose folds of 48 bits can be summed in int64
_SAFE = 2.0**300  # products of three magnitudes between 1 / _SAFE and _SAFE stay normal


def exact_sum(
    x: Floats, y: Floats | None = None, w: Array | None = None, /
) -> tuple[int, int] | int:
    """Return the sum of ``x * y * w`` as ``(integer, unit)``: ``integer * 2**unit``.

    `w` is float64, or int64 from 0 to 2**53. If a row is not finite, return the first such row as a
    single integer.
    """
    columns = [np.ravel(np.asarray(c, np.float64)) for c in (x, y, w) if c is not None]
    if any(column.size != columns[0].size for column in columns):
        raise ValueError("columns differ in length")
    bad = _first_infinite(columns)
    if bad is not None:
        return bad
    total, unit = 0, _LOW
    for start in range(0, columns[0].size, _ROWS):
        block = [column[start : start + _ROWS] for column in columns]
        if all(((np.abs(c) < _SAFE) & (np.abs(c) > 1 / _SAFE) | (c == 0)).all() for c in block):
            for term in _terms(block):
                total += _folded(term)
        else:
            digits = np.zeros((1, _DIGITS), np.int64)
            y, w = (*block[1:], None, None)[:2]
            exact_add(digits, _DIGITS, _LOW, block[0], y, w, None, 1)
            total += sum(digit << 32 * k for k, digit in enumerate(digits[0].tolist()))
    if not total:
        return 0, 0
    unused = ((total & -total).bit_length() - 1) // 32 * 32
    return total >> unused, unit + unused


def exact_powers(
    x: Floats, powers: int, w: Array | None = None, /
) -> tuple[float, float, list[tuple[int, int]]] | int:
    """Return the nonzero extremes of ``|x|``, and the sums that the mask `powers` selects.

    They are sums, as of `exact_sum`, of w x, w x**2, w x**4, and of w, w**2, w**2 x and w**2 x**2,
    which need `w`. Each power of x is the square of the previous one, rounded to float64 and
    clipped to ``2**1023``. If a row is not finite, return the first one.
    """
    column = np.ravel(np.asarray(x, np.float64))
    if w is not None and w.size != column.size:
        raise ValueError("columns differ in length")
    bad = _first_infinite([column] if w is None else [column, np.asarray(w, np.float64)])
    if bad is not None:
        return bad
    sizes = np.abs(column[column != 0])
    with np.errstate(over="ignore", under="ignore"):
        square = np.minimum(column * column, 2.0**1023)
        fourth = np.minimum(square * square, 2.0**1023)
    terms: list[tuple[Any, ...]] = [(each, None, w) for each in (column, square, fourth)]
    terms += [(w,), (w, w), (column, w, w), (square, w, w)]
    sums: list[Any] = [exact_sum(*term) for k, term in enumerate(terms) if powers >> k & 1]
    least = float(sizes.min()) if sizes.size else 0.0
    return least, float(sizes.max(initial=0.0)), sums


def exact_extent(x: Floats, /) -> tuple[int, int] | int:
    """Return the exponents of the lowest bit and above the highest bit of `x`; 0, 0 for zeros.

    If a row is not finite, return the first such row as a single integer.
    """
    bad = _first_infinite([np.ravel(x)])
    if bad is not None:
        return bad
    sizes = np.abs(x[x != 0])
    if not sizes.size:
        return 0, 0
    return max(math.frexp(sizes.min())[1] - 53, -1074), max(math.frexp(sizes.max())[1], -1022)


def exact_add(
    digits: Ints,
    width: int,
    low: int,
    x: Floats,
    y: Floats | None,
    w: Floats | None,
    group: Ints | None,
    columns: int,
    /,
) -> int:
    """Add ``x * y * w`` (n, columns) to digits (groups * columns, width), row i to ``group[i]``.

    `y` has the shape of `x`, `w` is (n,), and the lowest digit has the weight ``2**low``. Returns
    n, or the first row that is not finite or does not fit; digits are then invalid.
    """
    rows = np.size(x) // columns
    groups = digits.size // width // columns
    factors = [np.reshape(x, -1)]
    if y is not None:
        factors.append(np.reshape(y, -1))
    if w is not None:
        factors.append(np.repeat(w, columns))
    bad = _first_infinite(factors)
    index = np.zeros(rows, np.int64) if group is None else group
    outside = np.flatnonzero((index < 0) | (index >= groups))
    if bad is not None or outside.size:
        rows_outside: list[int] = outside[:1].tolist()
        return min(rows_outside if bad is None else [bad // columns, *rows_outside])
    # Products of mantissas in [1/2, 1) cannot over- or underflow; exponents are summed separately.
    split = [np.frexp(factor) for factor in factors]
    exponents = np.sum([exponent for _, exponent in split], axis=0, dtype=np.int64)
    first = (index[:, None] * columns + np.arange(columns)).reshape(-1) * width
    flat, most = digits.reshape(-1), low + 32 * (width - 3)
    for term in _terms([mantissa for mantissa, _ in split]):
        fraction, exponent = np.frexp(term)
        unit = exponent + exponents - 53 - low
        used = np.flatnonzero(term)
        outside = used[(unit[used] < 0) | (unit[used] + low + 54 > most)]
        if outside.size:
            return int(outside[0]) // columns
        integers = np.ldexp(fraction[used], 53).astype(np.int64)
        place, shift = unit[used] >> 5, unit[used] & 31
        below, above = (integers & _MASK) << shift, (integers >> 32) << shift
        for k, digit in enumerate((below & _MASK, (below >> 32) + (above & _MASK), above >> 32)):
            np.add.at(flat, first[used] + place + k, digit)
    return rows


def exact_add_squares(
    digits: Ints,
    width: int,
    low: int,
    squares: Ints,
    square_width: int,
    square_low: int,
    x: Floats,
    group: Ints,
    /,
) -> int:
    """Add `x` (n,) and its squares, rounded to float64 and limited to 2**1023, as `exact_add`."""
    with np.errstate(over="ignore", under="ignore"):
        square = np.minimum(x * x, 2.0**1023)
    done = exact_add(digits, width, low, x, None, None, group, 1)
    return min(done, exact_add(squares, square_width, square_low, square, None, None, group, 1))


def exact_carry(digits: Ints, width: int, /) -> tuple[int, int]:
    """Carry totals of `width` digits in place: digits below 2**32, the highest one signed.

    Returns the range of columns, first inclusive and last exclusive, that holds all totals
    canonically: digits above only repeat the sign, and digits below are 0. Both are 0 if all totals
    are 0.
    """
    table = digits.reshape(-1, width) if width else digits.reshape(0, 0)
    for k in range(width - 1):
        table[:, k + 1] += table[:, k] >> 32
        table[:, k] &= _MASK
    if not table.any():
        return 0, 0
    last, signed = width, table[:, -1]
    while last > 1 and not (signed + (table[:, last - 2] >> 31)).any():
        last -= 1  # the digits only repeat the sign of those below
        signed = table[:, last - 1] - (table[:, last - 1] >> 31 << 32)
    return int(np.argmax(table.any(axis=0))), last


def exact_round(values: Floats, digits: Ints, exponent: int, /) -> None:
    """Write the float64 nearest to each row of canonical digits times ``2**exponent``."""
    values = values.reshape(-1)
    rows = np.reshape(digits, (values.size, digits.size // max(values.size, 1))).tolist()
    above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
    for k, row in enumerate(rows):
        value = sum([digit << 32 * place for place, digit in enumerate(row)]) * above
        try:
            values[k] = value / below  # integer division in Python rounds once
        except OverflowError:
            values[k] = math.inf if value > 0 else -math.inf


def exact_merge(
    totals: Ints, width: int, digits: Ints, other_width: int, index: Ints | None, shift: int, /
) -> int:
    """Add row i of digits to row ``index[i]`` of totals, starting at column `shift`.

    Returns the number of rows, or the first whose index is out of range; totals are then invalid.
    """
    rows = digits.size // other_width
    groups = totals.size // width
    places = np.arange(rows) if index is None else index
    outside = np.flatnonzero((places < 0) | (places >= groups))
    if outside.size:
        return int(outside[0])
    flat = places[:, None] * width + np.arange(shift, shift + other_width)
    np.add.at(totals.reshape(-1), flat, digits.reshape(rows, other_width))
    return rows


def _first_infinite(columns: Sequence[Floats]) -> int | None:
    """Return the first row with a value that is not finite."""
    rows = [np.flatnonzero(~np.isfinite(column))[:1] for column in columns]
    return min([int(row[0]) for row in rows if row.size], default=None)


def _terms(factors: Sequence[Floats]) -> list[Floats]:
    """Return columns whose sum is exactly the product of the factors (Dekker 1971)."""
    terms = [factors[0]]
    for y in factors[1:]:
        parts = []
        for x in terms:
            product = x * y
            (xh, xl), (yh, yl) = _halves(x), _halves(y)
            parts += [product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl]
        terms = parts
    return terms


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Return two numbers of at most 26 bits with the sum of each number (Veltkamp)."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


def _folded(x: Floats) -> int:
    """Return the sum of at most `_ROWS` rows, times ``2**-_LOW``.

    Adding and subtracting sigma keeps the upper 48 bits of every row, which are summed as integers.
    The rest is processed in the same way (Demmel, Nguyen, IEEE Trans. Comput. 64, 2015).
    """
    total, rest = 0, x
    while (size := float(np.abs(rest).max(initial=0.0))) > 0.0:
        unit = math.frexp(size)[1] - 48
        sigma = math.ldexp(1.5, unit + 52)
        above = (rest + sigma) - sigma
        total += int(np.ldexp(above, -unit).astype(np.int64).sum()) << unit - _LOW
        rest = rest - above
    return total


# ---- counts ----


def count(counts: Ints, /, *columns: Any) -> int:
    """Count rows by one to four columns of integer codes, each followed by its number of codes.

    `counts` is int64 with one entry for each combination of codes. With a last column, of int64, a
    row counts as often as it says, with wrap-around. Returns n, or the first row with
    a code out of range; counts are then invalid.
    """
    columns, times = (columns[:-1], columns[-1]) if len(columns) % 2 else (columns, None)
    codes, sizes = columns[::2], columns[1::2]
    if not 1 <= len(codes) <= 4 or len(codes) != len(sizes) or math.prod(sizes) != counts.size:
        raise ValueError("shapes do not fit")
    every = codes if times is None else (*codes, times)
    if any(np.size(each) != np.size(codes[0]) for each in every):
        raise ValueError("columns differ in length")
    bad = [_first((each < 0) | (each >= size)) for each, size in zip(codes, sizes, strict=True)]
    if any(row is not None for row in bad):
        return min(row for row in bad if row is not None)
    if codes[0].size:
        cells = np.ravel_multi_index(tuple(each.astype(np.int64) for each in codes), sizes)
        np.add.at(counts.reshape(-1), cells, 1 if times is None else times)
    return int(codes[0].size)


def count_above(counts: Ints, score: Floats, threshold: float, /, *columns: object) -> int:
    """Count like `count`, with an additional last code that is 1 if ``score >= threshold``, else 0.

    A row whose score is nan is out of range.
    """
    above = (score >= threshold).astype(np.int8)
    above[np.isnan(score)] = 2
    codes = len(columns) // 2 * 2
    return count(counts, *columns[:codes], above, 2, *columns[codes:])


def add_rows(totals: Ints, width: int, rows: Ints, codes: Array, /) -> int:
    """Add rows of `width` int64 to the rows of totals given by codes, with wrap-around.

    Returns n, or the first row with a code out of range; totals are then invalid.
    """
    if totals.size % width or rows.size != codes.size * width:
        raise ValueError("shapes do not fit")
    bad = _first((codes < 0) | (codes >= totals.size // width))
    if bad is not None:
        return bad
    np.add.at(totals.reshape(-1, width), codes.astype(np.intp), rows.reshape(-1, width))
    return int(codes.size)


def extent(values: Array, /) -> tuple[float, float]:
    """Return the smallest and the largest number; nan if any is nan, ``(inf, -inf)`` if empty."""
    if not values.size:
        return math.inf, -math.inf
    return values.min().item(), values.max().item()


def bits(out: Array, values: Array, /) -> int:
    """Write integers that are all 0 or 1 as bytes; return the number of ones, or -1 if not all."""
    if out.size != values.size:
        raise ValueError("columns differ in length")
    if values.size and not 0 <= values.min() <= values.max() <= 1:
        return -1
    out[...] = values
    return int(np.count_nonzero(values))


def _first(rows: Array) -> int | None:
    return int(np.argmax(rows)) if rows.any() else None


# ---- orders ----


def group_rows(starts: Ints, codes: Array, /, *columns: Array) -> int:
    """Write every second column: the rows of the preceding one by code (stable), and the starts.

    There are ``len(starts) - 1`` groups. Returns n, or the first row with a code out of range.
    """
    groups = starts.size - 1
    if groups < 0 or any(len(column) != codes.size for column in columns):
        raise ValueError("shapes do not fit")
    bad = _first((codes < 0) | (codes >= groups))
    if bad is not None:
        return bad
    # NumPy radix-sorts up to 16 bits.
    order = np.argsort(codes.astype(np.min_scalar_type(max(groups, 1))), kind="stable")
    starts[0] = 0
    np.cumsum(np.bincount(codes.astype(np.int64), minlength=groups), out=starts[1:])
    for column, moved in zip(columns[::2], columns[1::2], strict=True):
        moved[:] = column[order]
    return int(codes.size)


def inversions(
    ranks: NDArray[np.int32], first: Ints | None = None, second: Ints | None = None, /
) -> int:
    """Return the sum of ``first[i] * second[j]`` over i < j with ``ranks[i] > ranks[j]``.

    Counts must be non-negative; ``None`` stands for ones.

    Reference: W. R. Knight, A computer method for calculating Kendall's tau with ungrouped data,
    JASA 61 (1966), 436-439. All merges of pairs of runs of one width are done by one sort.
    """
    n = ranks.size
    before, behind = (np.ones(n, np.int64) if each is None else each for each in (first, second))
    if before.size != n or behind.size != n:
        raise ValueError("columns differ in length")
    for each in (before, behind):
        if n and (each.min() < 0 or sum(each.tolist()) >= 1 << 62):
            raise ValueError("counts are negative, or 2**62 together")
    total, width = 0, 1
    order = np.arange(n)  # each run of `width` places is sorted by rank
    while width < n:
        run = np.arange(n) // (2 * width)
        right = order // width % 2 == 1
        # Order by rank, ties from the left run first: they are not inversions.
        turn = np.lexsort((right, ranks[order], run))
        order, right = order[turn], right[turn]
        left = np.where(right, 0, before[order])
        waiting = np.cumsum(left[::-1])[::-1]  # of this and all later pairs of runs
        last = np.append(waiting, 0)[np.minimum((run + 1) * 2 * width, n)]
        total += sum(map(mul, (waiting - last)[right].tolist(), behind[order[right]].tolist()))
        width *= 2
    return total


# ---- tables of keys ----


def factorize(
    slots: NDArray[np.uint32],
    stored: Array,
    width: int,
    used: int,
    keys: Array,
    codes: Ints,
    add: bool,
    firsts: Ints | None,
    /,
) -> tuple[int, int]:
    """Write the number of each key of `width` bytes, from a table with `used` stored keys.

    An unknown key gets -1 or, if `add`, the next number; it is then stored, and its row is written
    to `firsts` unless that is ``None``. Stops at a new key that exceeds the capacity of the store
    or three quarters of the slots. Returns the number of rows processed and the number of keys.

    Slots are a hash table with linear probing; a slot is 0, or 1 + the number of a key.
    """
    table, wanted = _bytes(stored, width), _bytes(keys, width)
    if codes.size != len(wanted) or slots.size & slots.size - 1 or not 0 <= used <= len(table):
        raise ValueError("shapes do not fit")
    codes[:] = _found(slots, table, wanted)
    done = len(wanted)
    new = np.flatnonzero(codes < 0)
    if add and new.size:
        void = np.dtype((np.void, width))
        _, first, group = np.unique(wanted[new].view(void), return_index=True, return_inverse=True)
        order = np.argsort(first)
        room = max(min(len(table), slots.size // 4 * 3) - used, 0)
        if first.size > room:
            done = int(new[first[order[room]]])
        rows = new[first[order[:room]]]
        number = np.empty(first.size, np.int64)
        number[order] = used + np.arange(first.size)
        codes[new] = number[group.reshape(-1)]
        table[used : used + rows.size] = wanted[rows]
        if firsts is not None:
            firsts[used : used + rows.size] = rows
        used += rows.size
        table_put(slots, stored, width, used - rows.size, used)
    return done, used


def table_put(
    slots: NDArray[np.uint32], stored: Array, width: int, start: int, stop: int, /
) -> None:
    """Insert stored keys, none of which may be present, into slots that must be large enough."""
    _put(slots, _bytes(stored, width), np.arange(start, stop))


def table_move(
    slots: NDArray[np.uint32],
    stored: Array,
    width: int,
    used: int,
    numbers: Ints,
    others: Ints | None,
    /,
) -> None:
    """Give keys of the table new numbers, or remove them if `others` is ``None``."""
    held = np.flatnonzero(slots)
    number = slots[held].astype(np.int64) - 1
    place = np.full(max(used, 1), -1)
    place[number[number < used]] = held[number < used]
    at = place[numbers]
    if (at < 0).any():
        raise ValueError("a key is not in the table")
    if others is not None:
        slots[at] = others + 1
        return
    kept = np.setdiff1d(number, numbers)
    slots[:] = 0
    _put(slots, _bytes(stored, width), kept)


def hash_texts(hashes: Ints, texts: Ints | list[object], factors: Ints, start: int, /) -> int:
    """Write a hash of each text: its letters, mixed, times a factor each, and `start`, mixed.

    Texts are the int32 letters of a ``U`` array with a factor for each letter of a text, or a list.
    A list is hashed up to an item that is no plain string, ends in NUL or has more letters than
    there are factors, at most 256. Returns the number of hashes written.
    """
    done, factor = len(texts), factors.view(np.uint64)
    if isinstance(texts, list):
        if done != hashes.size:
            raise ValueError("shapes do not fit")
        most = min(factors.size, 256)
        done = next((k for k, item in enumerate(texts) if not _is_plain(item, most)), len(texts))
        texts = np.array(texts[:done] or [""]).view(np.int32)
        factor = factor[: texts.size // max(done, 1)]
    elif done != hashes.size * factor.size:
        raise ValueError("shapes do not fit")
    else:
        done = hashes.size
    letters = np.reshape(texts, (-1, factor.size)).astype(np.uint32).astype(np.uint64)
    sums = mixed(letters) @ factor
    hashes[:done] = mixed(sums + np.int64(start).astype(np.uint64))[:done].view(np.int64)
    return done


def _is_plain(item: object, most: int) -> bool:
    return type(item) is str and len(item) <= most and not item.endswith("\0")


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits one to one; zero stays zero (the finalizer of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _put(slots: NDArray[np.uint32], table: Array, numbers: Ints) -> None:
    places, last = _hashes(table[numbers]) & slots.size - 1, slots.size - 1
    while numbers.size:
        free = slots[places] == 0
        slots[places[free]] = numbers[free] + 1  # in a collision, one key wins
        lost = slots[places] != numbers + 1
        numbers, places = numbers[lost], (places[lost] + 1) & last


def _found(slots: NDArray[np.uint32], table: Array, keys: Array) -> Ints:
    """Return the number of each key; -1 if it is not in the table."""
    found, last = np.full(len(keys), -1), slots.size - 1
    rows, places = np.arange(len(keys)), _hashes(keys) & last
    while rows.size:
        number = slots[places].astype(np.int64) - 1
        same = (table[number] == keys[rows]).all(axis=1) & (number >= 0)
        found[rows[same]] = number[same]
        on = (number >= 0) & ~same
        rows, places = rows[on], (places[on] + 1) & last
    return found


def _bytes(keys: Array, width: int) -> Array:
    """Return keys as rows of bytes."""
    return np.reshape(keys, -1).view(np.uint8).reshape(-1, width)


def _hashes(keys: Array) -> Ints:
    """Return a hash of each key, below 2**63."""
    words = np.zeros((len(keys), -(-keys.shape[1] // 8) * 8), np.uint8)
    words[:, : keys.shape[1]] = keys
    hashes = np.zeros(len(keys), np.uint64)
    for word in words.view(np.uint64).T:
        hashes = (hashes ^ word) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return (hashes >> np.uint64(1)).astype(np.int64)


# --- cells ---------------------------------------------------------------------------------------

_HALF, _ONE, _CLOSEST = 1022 << 52, 1023 << 52, 969 << 52  # the bits of 0.5, 1 and 2**-54
_MOST_LEVEL = 64


def cells_ids(ids: Ints, scores: Floats, level: int, /) -> None:
    """Write the cell ids of scores at a level; at level 0 their order-preserving integer bits."""
    ids[:] = (scores + 0.0).view(np.int64)  # turns -0.0 into 0.0
    np.subtract(-(1 << 63), ids, out=ids, where=ids < 0)
    if level:
        near = np.clip((1.0 - scores).view(np.int64), _CLOSEST, _HALF)
        above = (np.maximum(ids, _ONE) - _ONE) >> 1
        ids[:] = (((np.minimum(ids, _HALF) - near + _HALF) >> 1) + above) >> (level - 1)


def _ids(scores: Floats, level: int, ids: Ints | None, own: int, part: slice = slice(None)) -> Ints:
    """Return the ids of cells at a level: of their ids at the level `own`, or of their scores."""
    if own and ids is not None:
        return ids[part] >> (level - own)
    found = np.empty(scores[part].size, np.int64)
    cells_ids(found, scores[part], level)
    return found


def cells_count(
    scores: Floats,
    codes: Array | None,
    weight: Array | None,
    index: Ints | None,
    most: int,
    level: int,
    ids: Ints | None,
    cell_scores: Floats,
    counts: Array | None,
    low: int,
    power: int,
    /,
) -> tuple[int, int, bool]:
    """Count rows in cells at the lowest level, from `level` on, with at most `most` cells.

    Writes, in ascending order, the ids of the cells (not needed at level 0), their scores (nan for
    several), and ``counts`` (room, classes), to which a row adds 1, or its `weight` if that is
    int64, positive, and below 2**31 together. With float64 weights, counts are instead the sums of
    their first or second `power` as digits (room, classes, width) from ``2**low`` on, carried
    except the highest. With `index`, the place of each row in such a table is written instead of
    counts; rows and weights may then be reordered, in the same way. Returns the level, the number
    of cells, and whether sums are canonical.
    Compiled kernels sort at most max(2**22, `most`) rows; if there are more, and their cells fit
    no table, they return the level -1.
    """
    codes = None if codes is None else codes.astype(np.int64)
    if np.isnan(scores).any() or (codes is not None and (codes >> 1).any()):
        raise ValueError("a score is nan, or a code is neither 0 nor 1")
    level, size, places = _cells(level, None, scores, most, ids, cell_scores)
    group = places if codes is None else 2 * places + codes
    if index is not None:
        index[:] = group
    if counts is not None and counts.ndim == 2:
        counts[:size] = 0
        np.add.at(counts[:size].reshape(-1), group, 1 if weight is None else weight)
    if counts is None or weight is None or counts.ndim == 2:
        return level, size, True
    _, classes, width = counts.shape
    sums = np.zeros((size * classes, width + 6), np.int64)
    square = weight if power == 2 else None
    if exact_add(sums, width + 6, low - 64, weight, square, None, group, 1) < scores.size:
        raise ValueError("the cells do not fit")
    exact_carry(sums, width + 6)
    return level, size, _write_sums(counts[:size], sums.reshape(size, classes, width + 6)[..., 2:])


def cells_merge(
    level: int,
    ids: Ints | None,
    scores: Floats,
    counts: Array,
    shift: int,
    other_ids: Ints | None,
    other_scores: Floats,
    other_counts: Array,
    other_shift: int,
    most: int,
    merged_ids: Ints | None,
    merged_scores: Floats,
    merged_counts: Array,
    /,
) -> tuple[int, int, bool]:
    """Merge cells at the lowest level, from `level` on, with at most `most` cells.

    Ids, or scores at level 0, are ascending and may repeat. Digits of sums are added from the digit
    `shift` on. Returns the same as `cells_count`.
    """
    both = np.concatenate([scores, other_scores])
    every = None
    if level and ids is not None and other_ids is not None:
        every = np.concatenate([ids, other_ids])
    level, size, places = _cells(level, every, both, most, merged_ids, merged_scores)
    if merged_counts.ndim == 2:
        merged_counts[:size] = 0
        both = np.concatenate([counts, other_counts]).astype(merged_counts.dtype)
        np.add.at(merged_counts, places, both)
        return level, size, True
    sums = np.zeros((size, *(merged_counts.shape[1:] + np.array([0, 2]))), np.int64)
    for at, one, first in (
        (places[: scores.size], counts, shift),
        (places[scores.size :], other_counts, other_shift),
    ):
        np.add.at(sums[..., first : first + one.shape[2]], at, one)
    exact_carry(sums, sums.shape[2])
    return level, size, _write_sums(merged_counts[:size], sums)


def cells_add(
    totals: Ints,
    table_scores: Floats,
    low: int,
    table_level: int,
    level: int,
    ids: Ints | None,
    scores: Floats,
    counts: Ints,
    /,
) -> int:
    """Add cells of a level to a table of consecutive cells with ids from `low` on.

    ``totals`` (span, classes) are 0 for cells without rows; each added cell must have rows. Returns
    the sum of the added counts. Nothing is written if an id is out of range. Totals may wrap.
    """
    at = _ids(scores, table_level, ids, level)
    at = (at.view(np.uint64) - np.array(low).view(np.uint64)).view(np.int64)
    if ((at < 0) | (at >= table_scores.size)).any():
        raise ValueError("the cells do not fit")
    fresh = at[~totals[at].any(axis=1)]
    table_scores[fresh] = scores[~totals[at].any(axis=1)] + 0.0
    table_scores[at[table_scores[at] != scores]] = np.nan
    np.add.at(totals, at, counts.astype(totals.dtype))
    return int(counts.sum(dtype=np.int64))


def cells_area(scores: Floats | None, counts: Ints, /) -> tuple[int, int]:
    """Return twice the pairs of a row of the second class above one of the first, ties once.

    Also return the number of ties within cells of several scores, of which there are none if
    `scores` is ``None``. Both must be below 2**63.
    """
    n, p = counts.astype(np.int64).T
    tied = p * n
    unsure = 0 if scores is None else int(tied[np.isnan(scores)].sum())
    return int((2 * p * (np.cumsum(n) - n) + tied).sum()), unsure


# --- segments of cells: one histogram after the other -----------------------------------------


def segments_count(
    starts: Ints,
    scores: Floats,
    codes: Array | None,
    most: int,
    levels: Ints,
    sizes: Ints,
    ids: Ints | None,
    cell_scores: Floats,
    counts: Array,
    /,
) -> int:
    """Write the cells of the rows ``starts[g]`` to ``starts[g + 1]`` of each group, end to end.

    Each group is counted as by `cells_count`, starting at ``levels[g]``. Writes the level and the
    number of cells of each group, and returns the total number of cells. Without `ids`, all levels
    are 0 and no group has more than `most` rows.
    """
    total = 0
    for group, part in enumerate(_segments(starts, scores.size)):
        out = _rest(total, ids, cell_scores, counts)
        given = (scores[part], None if codes is None else codes[part], None, None)
        if ids is None and (levels[group] or given[0].size > most):
            raise ValueError("the cells do not fit")
        level, size = int(levels[group]), 0
        if given[0].size:
            level, size, _ = cells_count(*given, most, level, *out, 0, 1)
        levels[group], sizes[group] = level, size
        total += size
    return total


def segments_merge(
    starts: Ints,
    levels: Ints,
    ids: Ints | None,
    scores: Floats,
    counts: Array,
    other_starts: Ints,
    other_levels: Ints,
    other_ids: Ints | None,
    other_scores: Floats,
    other_counts: Array,
    most: int,
    merged_levels: Ints,
    merged_sizes: Ints,
    merged_ids: Ints | None,
    merged_scores: Floats,
    merged_counts: Array,
    /,
) -> int:
    """Merge two sets of segments group by group, as `cells_merge` at the higher of both levels."""
    total = 0
    parts = list(_segments(starts, scores.size))
    others = list(_segments(other_starts, other_scores.size))
    for group, (part, other) in enumerate(zip(parts, others, strict=True)):
        own, theirs = int(levels[group]), int(other_levels[group])
        level, size = max(own, theirs), scores[part].size + other_scores[other].size
        if merged_ids is None and (level or size > most):
            raise ValueError("the cells do not fit")
        at = other_at = None
        if level:
            at = _ids(scores, level, ids, own, part)
            other_at = _ids(other_scores, level, other_ids, theirs, other)
        level, size, _ = cells_merge(
            *(level, at, scores[part], counts[part], 0),
            *(other_at, other_scores[other], other_counts[other], 0, most),
            *_rest(total, merged_ids, merged_scores, merged_counts),
        )
        merged_levels[group], merged_sizes[group] = level, size
        total += size
    return total


def segments_area(areas: Ints, slacks: Ints, starts: Ints, scores: Floats, counts: Array, /) -> int:
    """Write what `cells_area` returns for each segment; returns the number of segments."""
    for group, part in enumerate(_segments(starts, scores.size)):
        areas[group], slacks[group] = cells_area(scores[part], counts[part])
    return areas.size


def _segments(starts: Ints, n: int) -> Iterator[slice]:
    """Yield the slice of each segment."""
    ends: list[int] = starts.tolist()
    for start, stop in pairwise(ends):
        if not 0 <= start <= stop <= n:
            raise ValueError("the cells do not fit")
        yield slice(start, stop)


def _rest(
    start: int, ids: Ints | None, scores: Floats, counts: Array
) -> tuple[Ints | None, Floats, Array]:
    """Return the arrays for cells, starting at a cell."""
    return None if ids is None else ids[start:], scores[start:], counts[start:]


def _cells(
    level: int,
    ids: Ints | None,
    scores: Floats,
    most: int,
    out_ids: Ints | None,
    cell_scores: Floats,
) -> tuple[int, int, Ints]:
    """Write cells at the lowest sufficient level; return it, their number, and each row's cell.

    Rows are at level 0 unless they have ids, which are at `level`.
    """
    # The number of cells decreases with the level, to two at the highest.
    fits = bisect_left(
        range(_MOST_LEVEL),
        1,
        level,
        key=lambda k: np.unique(_ids(scores, k, ids, level)).size <= most,
    )
    distinct, places = np.unique(_ids(scores, fits, ids, level), return_inverse=True)
    size = distinct.size
    if size > cell_scores.size:
        raise ValueError("the cells do not fit")
    if out_ids is not None:
        out_ids[:size] = distinct
    cell_scores[places] = scores + 0.0  # the score of any row of the cell
    cell_scores[places[cell_scores[places] != scores]] = np.nan
    return fits, size, places


def _write_sums(out: Ints, digits: Ints) -> bool:
    """Write carried digits, the top one with the overflow; return whether all are canonical."""
    width = out.shape[2]
    out[:] = digits[..., :width]
    out[..., -1] += digits[..., width] << 32
    narrow = (out[..., -1] >> 31 == out[..., -1] >> 63).all()
    return bool(narrow) and (not out.size or exact_carry(out, width) == (0, width))


def elementary(out: Floats, x: Floats, function: int, exponent: float, /) -> None:
    """Write a function of each number: log, log1p, exp, expm1 or power; `out` may be `x`.

    The order of IEEE operations is part of the definition, so that the bits are the same on every
    processor. Errors are below 0.75 units in the last place, and for x**p below 0.55 + 0.07 p.
    """
    if not 0 <= function <= 4 or out.shape != x.shape:
        raise ValueError("expected a function from 0 to 4, and arrays of one shape")
    written, numbers = out.reshape(-1), x.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, numbers.size, _ROWS):
            block = slice(start, start + _ROWS)
            if function == 4:
                written[block] = _power(numbers[block], exponent)
            else:
                written[block] = (_log, _log1p, _exp, _expm1)[function](numbers[block])


_LOG2 = 0.6931471805598903, 5.497923018708371e-14
_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_LOG_SERIES = (
    0.6666666666666666,
    0.4000000000000088,
    0.28571428570801954,
    0.22222222392089008,
    0.18181795600060793,
    0.15386241881938595,
    0.13268714792348096,
    0.1308723619665962,
)
_EXP_SERIES = (
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326132,
    0.0013888888888883746,
    0.00019841269874827454,
    2.4801587325552618e-05,
    2.755725539154403e-06,
    2.7557273636924405e-07,
    2.5105220609870554e-08,
    2.0914689542549555e-09,
)
_Pair = tuple["Floats", "Floats"]


def copy_tensors(
    _values: tuple[object, ...],
    _kind: type,
    _exchange: object,
    _is_negated: Callable[..., bool],
    /,
) -> tuple[tuple[bytearray, int, int, tuple[int, ...]], ...] | None:
    """Return copies of tensors as ``(bytes, code, bits, shape)``, with the type codes of DLPack.

    Or ``None``, as here: callers then copy the tensors by the methods of their library, which takes
    longer. Kernels copy small, contiguous tensors of numbers on the CPU whose type is `_kind`
    itself. `_exchange` is the capsule of the table of functions that DLPack defines for C;
    `_is_negated` says of a tensor of floats whether its memory has the negative values.
    """
    return None


def _head(x: Numeric) -> Floats:
    """Return the leading 21 bits; products of two of these are exact."""
    return (np.asarray(x).view(np.uint64) & 0xFFFFFFFF00000000).view(np.float64)


def _split_number(x: Floats) -> _Pair:
    """Return f in [sqrt(1/2) - 1, sqrt(2) - 1) and k with x = (1 + f) 2**k."""
    tiny = x < 2.0**-1022
    bits = np.where(tiny, x * 2.0**54, x).view(np.uint64) + (0x3FF0000000000000 - _ROOT)
    k = (bits >> 52).astype(np.float64) - 1023.0 - np.where(tiny, 54.0, 0.0)
    return ((bits & 0x000FFFFFFFFFFFFF) + _ROOT).view(np.float64) - 1.0, k


def _log_pair(f: Floats, k: Floats, rest: Floats | float) -> _Pair:
    """Return log(1 + f) + k log 2 + rest, by a series in s**2 with s = f / (2 + f)."""
    a, b, c, d, e, g, h, i = _LOG_SERIES
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    series = ((e + g * z) + z2 * (h + i * z)) * (z2 * z2)
    series = z * (((a + b * z) + z2 * (c + d * z)) + series)
    head = _head(f)
    square, square_low = 0.5 * head * head, 0.5 * (f - head) * (f + head)
    first, top = f - square, k * _LOG2[0]
    high = top + first
    low = ((f - first) - square) - square_low + s * ((square + square_low) + series)
    return high, (low + (k * _LOG2[1] + rest)) + ((top - high) + first)


def _exp_pair(x: Floats, low: Floats | float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return high, low and two powers of two s, t with e**(x + low) = (high + low) s t."""
    a, b, c, d, e, f, g, h, i, j = _EXP_SERIES
    at = np.where(x < -746.0, -746.0, np.where(x > 710.0, 710.0, x))
    shifted = at * 1.4426950408889634 + 1.5 * 2.0**52
    n = shifted - 1.5 * 2.0**52
    whole, part = at - n * _LOG2[0], n * _LOG2[1] - low
    r = whole - part
    lost = (whole - r) - part
    r2 = r * r
    r4 = r2 * r2
    series = ((e + f * r) + r2 * (g + h * r)) + r4 * (i + j * r)
    series = ((a + b * r) + r2 * (c + d * r)) + r4 * series
    head = _head(r)
    square, square_low = 0.5 * head * head, 0.5 * (r - head) * (r + head)
    first = 1.0 + r
    high = first + square
    rest = ((1.0 - first) + r) + ((first - high) + square)
    power = shifted.view(np.uint64) - (0x4338000000000000 - 2046)
    half = power >> 1
    scales = (half << 52).view(np.float64), ((power - half) << 52).view(np.float64)
    return high, rest + (lost * high + (square_low + r * r2 * series)), *scales


def _log(x: Floats) -> Floats:
    high, low = _log_pair(*_split_number(x), 0.0)
    return np.where(x > 0, np.where(x < np.inf, high + low, x), np.where(x == 0, -np.inf, np.nan))


def _log1p(x: Floats) -> Floats:
    total = 1.0 + x
    part = total - 1.0
    rest = (1.0 - (total - part)) + (x - part)
    f, k = _split_number(total)
    high, low = _log_pair(np.where(k == 0, x, f), k, np.where(k == 0, 0.0, rest / total))
    below = np.where(x == -1, -np.inf, np.nan)
    return np.where(x > -1, np.where(x < np.inf, high + low, x), below)


def _exp(x: Floats) -> Floats:
    high, low, scale, other = _exp_pair(x, 0.0)
    return np.where(np.isnan(x), np.nan, (high + low) * scale * other)


def _expm1(x: Floats) -> Floats:
    high, low, scale, other = _exp_pair(x, 0.0)
    high, low = high * scale * other, low * scale * other
    less = high - 1.0
    part = less - high
    rest = (high - (less - part)) + (-1.0 - part)
    value = np.where(high < np.inf, less + (rest + low), high)
    return np.where(np.isnan(x), np.nan, value)


def _power(x: Floats, p: float) -> Floats:
    """Return x**p for x >= 0 and finite p."""
    first, rest = _log_pair(*_split_number(x), 0.0)
    high = first + rest
    low = (first - high) + rest
    p_head, head = _head(np.float64(p)), _head(high)
    p_tail, tail, product = p - p_head, high - head, p * high
    error = ((p_head * head - product) + (p_head * tail + p_tail * head)) + p_tail * tail
    high, low, scale, other = _exp_pair(product, error + p * low)
    end = np.where(p == 0, 1.0, np.where((x == 0) == (p > 0), 0.0, np.inf))
    power = (high + low) * scale * other
    return np.where((x > 0) & (x < np.inf), power, np.where(x >= 0, end, np.nan))
