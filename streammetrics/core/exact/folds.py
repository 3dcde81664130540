"""Blocks of float64 split into folds, whose sums and dot products have no rounding error.

With ``|x| <= 2**e`` and ``sigma = 1.5 * 2**(e - bits + 52)``, the float64 operations ::

    q = (x + sigma) - sigma
    r = x - q

are such that ``q + r == x`` exactly, ``q`` is a multiple of ``2**(e - bits)`` of magnitude at most
``2**e``, and ``|r| <= 2**(e - bits - 1)``; ``r`` is split again until nothing is left. In a block
of at most ``2**L`` rows, sums of folds of ``53 - L`` bits, and dot products of folds of
``(53 - L) // 2`` bits, stay within ``2**53`` units: exact in whatever order, with or without FMA.

Values whose exponents are so far from 0 that a unit, or a product of two, would not be a normal
number are first scaled to the middle of the range, band by band (`_bands`). Ordinary data never
gets there.

References: Rump, Ogita, Oishi, "Accurate floating-point summation", SIAM J. Sci. Comput. 31 (2008);
Demmel, Nguyen, "Parallel reproducible summation", IEEE Trans. Comput. 64 (2015); Dekker, "A
floating-point technique for extending the available precision", Numer. Math. 18 (1971).
"""

import math
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from streammetrics.core.columns.batch import extent
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.exact.digits import Floats
from streammetrics.core.exact.workspace import Workspace
from streammetrics.core.types import Ints, Places

_PIECE = 2**13  # elements of a dot product: OpenBLAS starts threads from 10 000

# Exponents between which units, and products of two units, are normal numbers.
LOW, HIGH = -440, 480
SHORT = 8  # bits of weights so short that folds are just multiplied by them
_BAND = 480  # exponents in a band: a multiple of DIGIT
DIGIT = 32  # bits
_SAMPLE = 64  # elements looked at, to tell whether to pick out those that are not 0
ONES = np.ones(2**15)  # a product with ones takes half the time of a sum
ONES.flags.writeable = False
_LONGEST = 42  # bits of an element as an integer, so that 2**19 of them add up in int64


class Fold(NamedTuple):
    """Part of a block: ``values * 2**shift``, where values are multiples of ``2**unit``."""

    values: Floats
    unit: int
    shift: int


def _magnitudes(x: Floats, scratch: Floats) -> tuple[float, float]:
    """Return the largest and the smallest ``|x|``; raises unless all are finite."""
    np.abs(x, out=scratch)
    largest = float(scratch.max())
    if not math.isfinite(largest):
        raise InvalidBatchError("values to be summed must be finite")
    return largest, float(scratch.min())


def dot(a: Floats, b: Floats) -> float:
    """Return the dot product of contiguous columns, in pieces too short for threads of BLAS."""
    if len(a) <= _PIECE:
        return float(np.dot(a, b))
    pieces = (slice(k, k + _PIECE) for k in range(0, len(a), _PIECE))
    return sum(float(np.dot(a[piece], b[piece])) for piece in pieces)


def _exponent(x: float) -> int:
    """Return the smallest ``e`` with ``x < 2**e``."""
    return math.frexp(x)[1]


def _bands(x: Floats) -> Iterator[tuple[Floats, int]]:
    """Yield parts with exponents near 0, and their shifts: ``x == sum(part * 2**shift)``."""
    band = (np.frexp(x)[1] + _BAND // 2) // _BAND
    for number in np.unique(band[x != 0.0]).tolist():
        yield np.ldexp(np.where(band == number, x, 0.0), -_BAND * number), _BAND * number


def extremes(x: Floats, scratch: Floats | None = None) -> tuple[float, float]:
    """Return the smallest ``|x|`` but 0, and the largest; both are 0 if all elements are.

    Raises unless all are finite.
    """
    low, high = extent(x)
    if low > 0.0 and high < math.inf:
        return low, high
    x = x.reshape(-1)
    scratch = None if scratch is None else scratch.reshape(-1)
    if low < 0.0 < high:
        x = scratch = np.abs(x, out=scratch)
        low, high = float(np.minimum.reduce(x)), max(-low, high)
    elif high <= 0.0:
        x = scratch = np.negative(x, out=scratch)
        low, high = -high, -low
    if not math.isfinite(high):
        raise InvalidBatchError("values to be summed must be finite")
    if low == 0.0 < high:
        # The bits of floats from 0 up are in their order; 0 less 1 wraps around to the largest.
        out = None if scratch is None else scratch.view(np.uint64)
        shifted = np.subtract(x.view(np.uint64), 1, out=out)
        low = float((np.minimum.reduce(shifted) + np.uint64(1)).view(np.float64))
    return low, high


def exponents(x: Floats, scratch: Floats) -> tuple[int, int]:
    """Return ``e`` and ``lowest``: ``|x| < 2**e``, and all are multiples of ``2**lowest``.

    Both are 0 if all elements are. Raises unless all are finite.
    """
    return exponents_of(*extremes(x, scratch))


def exponents_of(low: float, high: float) -> tuple[int, int]:
    """Return the same, of `extremes`."""
    return (_exponent(high), _exponent(low) - 53) if high else (0, 0)


def any_left(rest: Floats) -> bool:
    """Whether an element is not 0; a look at three of them mostly tells."""
    return bool(rest[0] or rest[rest.size // 2] or rest[-1] or rest.any())


def sums(
    x: Floats, work: Workspace, limits: tuple[int, int] | None = None
) -> Iterator[tuple[int, int]]:
    """Yield integers and exponents: ``integer * 2**exponent`` add up to the sum of a column.

    A fold plus sigma and the integer of the same bits grow in step, so folds are added up as
    int64: they may be 9 or 10 bits longer than folds that are added up in float64. `limits` are
    the column's `exponents`, if they are known.
    """
    rest, scratch = x, work.take(x.shape)
    e, lowest = exponents(x, scratch) if limits is None else limits
    bits = min(50, 62 - (x.size - 1).bit_length())
    if e == lowest == 0:
        return
    while LOW <= e <= HIGH:
        unit = e - bits
        sigma = math.ldexp(1.5, unit + 52)
        np.add(rest, sigma, out=scratch)
        whole = int(np.add.reduce(scratch.view(np.int64))) - x.size * _bits_of(sigma)
        yield (whole + 2**63) % 2**64 - 2**63, unit
        if lowest >= unit:
            return
        scratch -= sigma
        if rest is x:
            rest = scratch
            np.subtract(x, scratch, out=scratch)
            scratch = work.take(x.shape)
        else:
            np.subtract(rest, scratch, out=rest)
        if not any_left(rest):
            return
        e = unit - 1
    for fold in folds(rest, min(50, bits - 9), work, work.take):
        yield int(math.ldexp(float(fold.values.sum()), -fold.unit)), fold.unit + fold.shift


def _bits_of(x: float) -> int:
    """Return the bits of a float64 as an integer."""
    return int.from_bytes(struct.pack("<d", x), "little")


def folds(
    x: Floats, bits: int, work: Workspace, take: Callable[[tuple[int, ...]], Floats]
) -> Iterator[Fold]:
    """Yield folds that add up to a block, in arrays that `take` gives.

    The last one may be `x` itself, or a scratch array that lives as long as the iteration.
    """
    rest = x
    remainder = work.take(x.shape)
    largest, smallest = _magnitudes(x, remainder)
    if largest == 0.0:
        return
    e = _exponent(largest)
    # Every element is a multiple of 2**lowest; if there are zeros, it is not worth a pass to know.
    lowest = _exponent(smallest) - 53 if smallest > 0.0 else -2000
    while LOW <= e <= HIGH:
        unit = e - bits
        if lowest >= unit:
            yield Fold(rest, unit, 0)
            return
        fold = take(x.shape)
        sigma = math.ldexp(1.5, unit + 52)
        np.add(rest, sigma, out=fold)
        np.subtract(fold, sigma, out=fold)
        np.subtract(rest, fold, out=remainder)
        yield Fold(fold, unit, 0)
        rest, e = remainder, unit - 1
        if lowest < e - bits:  # the next fold may not be the last: see what is left
            if lowest > -_BAND:  # squares cannot underflow: their sum takes one pass
                flat = rest.ravel()
                left = 2.0 * math.sqrt(dot(flat, flat))
            else:
                left = max(float(rest.max()), -float(rest.min()))
            if left == 0.0:
                return
            e = min(e, _exponent(left))
    for part, shift in _bands(rest):
        for inner in folds(part, bits, work, take):
            yield inner._replace(shift=shift)


def spread(x: Floats, work: Workspace) -> Iterator[tuple[Places | None, Ints, int, int]]:
    """Yield integers that elements are made of: an element is the sum of its integers.

    Each time: which elements, ``None`` for all; an integer of each, in units of
    ``2**(DIGIT * place)``; the place; and the most bits that these integers have. Places are
    common to all elements, so that integers can be added wherever the elements belong. The first
    integers are longer than a digit, so that mostly one more does, and two for a few elements.
    The next ones overwrite them.
    """
    spare, scratch, whole = (work.take(x.shape) for _ in range(3))
    e, lowest = exponents(x, scratch)
    if e == lowest == 0:
        return
    part, rest = None, x
    place = -((_LONGEST - e) // DIGIT)
    while LOW <= e <= HIGH:
        sigma, bits = math.ldexp(1.5, DIGIT * place + 52), e - DIGIT * place
        above = np.add(rest, sigma, out=scratch[: rest.size])
        digits = whole[: rest.size].view(np.int64)
        yield part, np.subtract(above.view(np.int64), _bits_of(sigma), out=digits), place, bits
        if lowest >= DIGIT * place:
            return
        above -= sigma
        rest, spare, scratch = np.subtract(rest, above, out=above), scratch, spare
        if 4 * np.count_nonzero(rest[:: max(1, rest.size // _SAMPLE)]) < _SAMPLE:
            left = np.flatnonzero(rest != 0.0)  # several times as quick as of the floats
            if not left.size:
                return
            part, rest = left if part is None else part[left], rest[left]
        place, e = place - 1, DIGIT * place
    for inner, shift in _bands(rest):
        for some, digits, position, bits in spread(inner, work):
            chosen = some if part is None else part if some is None else part[some]
            yield chosen, digits, position + shift // DIGIT, bits


def _split(x: Floats, high: Floats, low: Floats) -> None:
    """Write the halves of values, of 26 bits at most: ``high + low == x`` (Veltkamp)."""
    np.multiply(x, 134217729.0, out=high)
    np.subtract(high, x, out=low)
    np.subtract(high, low, out=high)
    np.subtract(x, high, out=low)


def _two_product(x: Floats, w: Floats, work: Workspace) -> tuple[Floats, Floats]:
    """Return rounded products and their errors: ``p + error == x * w`` exactly (Dekker)."""
    p, error, xh, xl, wh, wl = (work.take(x.shape) for _ in range(6))
    _split(x, xh, xl)
    _split(w, wh, wl)
    np.multiply(x, w, out=p)
    np.multiply(xh, wh, out=error)
    error -= p
    xh *= wl
    error += xh
    wh *= xl
    error += wh
    xl *= wl
    error += xl
    return p, error


def two_square(x: Floats, square: Floats, rest: Floats, work: Workspace) -> None:
    """Write rounded squares and what is left: ``square + rest == x * x`` exactly (Dekker)."""
    high, low = (work.take(x.shape) for _ in range(2))
    _split(x, high, low)
    np.multiply(x, x, out=square)
    np.multiply(high, high, out=rest)
    rest -= square
    high *= low
    high *= 2.0
    rest += high
    low *= low
    rest += low


def short_weight(w: Floats, work: Workspace) -> int | None:
    """Return the ``u`` for which all weights are multiples of ``2**u`` up to ``2**(u + SHORT)``.

    ``None`` if there is none.
    """
    largest = max(float(w.max()), -float(w.min()))
    if not 2.0**-40 <= largest <= 2.0**40:  # so that folds at the limits times a weight are normal
        return None
    e = _exponent(largest)
    sigma = math.ldexp(1.5, e - SHORT + 52)
    head = w[:64]
    if ((head + sigma) - sigma != head).any():
        return None
    rounded = np.add(w, sigma, out=work.take(w.shape))
    rounded -= sigma
    return e - SHORT if np.array_equal(rounded, w) else None


def can_multiply(e: int, lowest: int) -> bool:
    """Whether products of columns of such `exponents`, and their errors, are normal numbers."""
    return e == lowest or (lowest + 53 >= -_BAND // 2 and e <= _BAND // 2)


def terms(x: Floats, w: Floats | None, work: Workspace) -> Iterator[tuple[Floats, int]]:
    """Yield arrays and shifts: ``array * 2**shift`` add up to ``x * w``."""
    if w is None:
        yield x, 0
        return
    scratch = work.take(x.shape)
    if all(can_multiply(*exponents(block, scratch)) for block in (x, w)):
        for term in _two_product(x, w, work):
            yield term, 0
        return
    for x_part, x_shift in _bands(x):
        for w_part, w_shift in _bands(w):
            for term in _two_product(x_part, w_part, work):
                yield term, x_shift + w_shift
