"""Blocks of float64 split into *folds*, whose sums and dot products have no rounding error.

With ``|x| <= 2**e`` and ``sigma = 1.5 * 2**(e - bits + 52)``, the float64 operations ::

    q = (x + sigma) - sigma
    r = x - q

are such that ``q + r == x`` exactly, ``q`` is a multiple of ``2**(e - bits)`` of magnitude at most
``2**e``, and ``|r| <= 2**(e - bits - 1)``; ``r`` is split again until nothing is left. In a block
of at most ``2**L`` rows, sums of folds of ``53 - L`` bits, and dot products of folds of
``(53 - L) // 2`` bits, stay within ``2**53`` units: exact in whatever order, with or without FMA.

Exponents where a unit or a product of two would leave the normal range are first brought to the
middle of it, band by band (:func:`_bands`); ordinary data never gets there.

References: Rump, Ogita, Oishi, "Accurate floating-point summation", SIAM J. Sci. Comput. 31 (2008);
Demmel, Nguyen, "Parallel reproducible summation", IEEE Trans. Comput. 64 (2015); Dekker, "A
floating-point technique for extending the available precision", Numer. Math. 18 (1971).
"""

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.digits import Floats
from streammetrics.core.errors import InvalidBatchError

BLOCK = 2**15  # elements of a block: a few buffers of 256 KiB stay in the cache
_PIECE = 2**13  # elements of a dot product: OpenBLAS starts threads from 10 000
_KEPT_BUFFERS = 24

# Folds are taken where units and products of two units are normal numbers.
_LOW, _HIGH = -440, 500
_BAND = 480


class Fold(NamedTuple):
    """Part of a block: ``values * 2**shift``, where values are multiples of ``2**unit``."""

    values: Floats
    unit: int
    shift: int


class Workspace:
    """Scratch buffers of one call, lent by the thread and given back to it."""

    _local = threading.local()

    def __init__(self, elements: int) -> None:
        self._elements = max(elements, BLOCK)
        self._taken: list[Floats] = []
        self._free: list[Floats] = []
        if self._elements == BLOCK:
            self._free, self._local.free = getattr(self._local, "free", []), []

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        if self._elements == BLOCK:
            self._local.free = self._free[:_KEPT_BUFFERS]

    def take(self, shape: tuple[int, ...]) -> Floats:
        """An uninitialised array, valid until the next reset."""
        buffer = self._free.pop() if self._free else np.empty(self._elements)
        self._taken.append(buffer)
        return buffer[: math.prod(shape)].reshape(shape)

    def reset(self) -> None:
        """Take back every buffer."""
        self._free += self._taken
        self._taken.clear()

    def load(self, column: NDArray[Any], rows: slice) -> Floats:
        """Those rows as contiguous float64, without a copy where they are."""
        block = column[rows]
        if block.dtype == np.float64 and block.dtype.isnative and block.flags.c_contiguous:
            return block
        copy = self.take(block.shape)
        np.copyto(copy, block)
        return copy


def _magnitudes(x: Floats, scratch: Floats) -> tuple[float, float]:
    """Largest and smallest ``|x|``; raises where one is not finite."""
    np.abs(x, out=scratch)
    largest = float(scratch.max())
    if not math.isfinite(largest):
        raise InvalidBatchError("values to be summed must be finite")
    return largest, float(scratch.min())


def dot(a: Floats, b: Floats) -> float:
    """Dot product of contiguous columns, in pieces for which BLAS does not wake its threads."""
    if len(a) <= _PIECE:
        return float(np.dot(a, b))
    pieces = (slice(k, k + _PIECE) for k in range(0, len(a), _PIECE))
    return sum(float(np.dot(a[piece], b[piece])) for piece in pieces)


def _exponent(x: float) -> int:
    """The smallest ``e`` with ``x < 2**e``."""
    return math.frexp(x)[1]


def _bands(x: Floats) -> Iterator[tuple[Floats, int]]:
    """Parts with exponents near 0 and shifts, ``x == sum(part * 2**shift)``."""
    band = (np.frexp(x)[1] + _BAND // 2) // _BAND
    for number in np.unique(band[x != 0.0]).tolist():
        yield np.ldexp(np.where(band == number, x, 0.0), -_BAND * number), _BAND * number


def folds(
    x: Floats, bits: int, work: Workspace, take: Callable[[tuple[int, ...]], Floats]
) -> Iterator[Fold]:
    """Folds of a block, whose sum is the block, in arrays that ``take`` gives.

    The last one may be ``x`` itself, or a scratch array that lives as long as the iteration.
    """
    rest = x
    remainder = work.take(x.shape)
    largest, smallest = _magnitudes(x, remainder)
    if largest == 0.0:
        return
    e = _exponent(largest)
    # Every element is a multiple of 2**lowest; with zeros among them it isn't worth finding out.
    lowest = _exponent(smallest) - 53 if smallest > 0.0 else -2000
    while _LOW <= e <= _HIGH:
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
        if lowest < e - bits:  # the next fold is not sure to be the last: see what is left
            if lowest > -_BAND:  # squares cannot underflow, and one pass is enough
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


def _two_product(x: Floats, w: Floats, work: Workspace) -> tuple[Floats, Floats]:
    """The rounded products and their errors: ``p + error == x * w`` exactly (Dekker)."""
    p, error, xh, xl, wh, wl = (work.take(x.shape) for _ in range(6))
    for value, high, low in ((x, xh, xl), (w, wh, wl)):
        np.multiply(value, 134217729.0, out=high)
        np.subtract(high, value, out=low)
        np.subtract(high, low, out=high)
        np.subtract(value, high, out=low)
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


def terms(x: Floats, w: Floats | None, work: Workspace) -> Iterator[tuple[Floats, int]]:
    """Arrays and shifts whose sum is ``x * w``."""
    if w is None:
        yield x, 0
        return
    scratch = work.take(x.shape)
    middle = True
    for block in (x, w):
        largest, smallest = _magnitudes(block, scratch)
        if smallest == 0.0:
            smallest = float(np.min(scratch, where=scratch > 0.0, initial=largest))
        middle &= largest == 0.0 or (
            _exponent(smallest) >= -_BAND // 2 and _exponent(largest) <= _BAND // 2
        )
    if middle:
        for term in _two_product(x, w, work):
            yield term, 0
        return
    for x_part, x_shift in _bands(x):
        for w_part, w_shift in _bands(w):
            for term in _two_product(x_part, w_part, work):
                yield term, x_shift + w_shift
