"""Masks as runs of pixels: COCO's compressed text, areas and intersections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.nested import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.columns.column import Column
    from streammetrics.core.types import Array, Bools, Floats, Ints, Places

_ZERO = ord("0")
_BITS, _SIGN, _MORE = 5, 16, 32  # a character has five bits, and a sixth if the number goes on
_CHARACTERS = 7  # of a number at most, whose absolute value is below 2**34
_PIXELS = 1 << 32  # the pixels of an image are fewer


@dataclass(frozen=True, slots=True)
class Masks:
    """Masks (n,) among m distinct ones, which are held as runs of foreground pixels.

    The pixels of an image are numbered column by column. Runs are sorted by mask, then by pixel.

    Attributes:
        places: Which of the distinct masks each mask is (n,); -1 for a missing one.
        pixels: The number of pixels of the image of each distinct mask (m,); 0 if its text is not
            valid.
        first: The first run of each distinct mask, and the number of all runs (m + 1,).
        keys: `_PIXELS` times its mask, plus the first pixel, of each run.
        lengths: The number of pixels of each run.
        before: The number of foreground pixels of the same mask before each run.
    """

    places: Places
    pixels: Ints
    first: Ints
    keys: Ints
    lengths: Ints
    before: Ints

    @classmethod
    def of(cls, column: Column) -> Masks:
        """Return the masks of a column of COCO's compressed run lengths.

        The lengths of runs of background and foreground alternate, from background on. Each is
        written in characters of five bits, low bits first, in two's complement; from the fourth
        length on, as the difference from the last but one.
        """
        texts = [] if column.vocabulary is None else column.vocabulary.tolist()
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).astype(np.int64)
        codes -= _ZERO
        of = np.repeat(np.arange(len(texts)), np.array([len(text) for text in texts], np.intp))
        good = np.ones(len(texts), np.bool_)
        good[of[(codes < 0) | (codes >= 2 * _MORE)]] = False
        more = codes & _MORE > 0
        ends = np.flatnonzero(~more | (np.diff(of, append=-1) != 0))
        begins = np.append(0, ends[:-1] + 1)[: ends.size]
        sizes = ends - begins + 1
        good[of[ends[more[ends] | (sizes > _CHARACTERS)]]] = False
        shift = _BITS * np.minimum(within(np.zeros_like(sizes), sizes), _CHARACTERS)
        bits = (codes & (_MORE - 1)) << shift
        negative = (codes & _SIGN > 0) & ~more
        bits -= np.where(negative, _MORE << shift, 0)
        of = of[ends]
        return cls._of_lengths(
            column.values.astype(np.intp, copy=False), of, _undone(_sums(bits, begins), of), good
        )

    @classmethod
    def _of_lengths(cls, places: Places, of: Places, lengths: Ints, good: Bools) -> Masks:
        """Return masks from the lengths of all runs of background and foreground."""
        sizes = np.bincount(of, minlength=good.size)
        stops = _within_groups(lengths, of)
        pixels = np.zeros(good.size, np.int64)
        pixels[of] = stops  # the last one of each mask stays
        good[of[(lengths < 0) | (stops >= _PIXELS)]] = False
        is_run = (within(np.zeros_like(sizes), sizes) % 2 == 1) & (lengths > 0) & good[of]
        of, lengths = of[is_run], lengths[is_run]
        first = np.searchsorted(of, np.arange(good.size + 1))
        keys = of * _PIXELS + (stops[is_run] - lengths)
        return cls(
            places, np.where(good, pixels, 0), first, keys, lengths,
            _within_groups(lengths, of) - lengths,
        )  # fmt: skip

    def __getitem__(self, which: slice | Array) -> Masks:
        """Return some of the masks."""
        return replace(self, places=self.places[which])

    @property
    def areas(self) -> Floats:
        """The number of foreground pixels of each mask (n,)."""
        sums = np.append(0, np.cumsum(self.lengths))[self.first]
        areas: Floats = np.diff(sums)[self.places].astype(np.float64)
        return areas

    def shared(self, other: Masks) -> Floats:
        """Return the number of foreground pixels that each mask shares with another (n,).

        Both are masks of one column.
        """
        found = np.zeros(self.places.size)
        low, high = self._extents()
        one, two = self.places, other.places
        near = np.flatnonzero((low[one] < high[two]) & (low[two] < high[one]))
        counts = np.diff(self.first)[one[near]]
        for part in pieces(counts, tuning.OVERLAPS):
            pairs, sizes = near[part], counts[part]
            run = within(self.first[one[pairs]], sizes)
            mask, start = np.repeat(two[pairs], sizes), self.keys[run] % _PIXELS
            each = self._until(mask, start + self.lengths[run]) - self._until(mask, start)
            found[pairs] = _sums(each, np.cumsum(sizes) - sizes)
        return found

    def _extents(self) -> tuple[Ints, Ints]:
        """Return the first foreground pixel and the end of the last run of each distinct mask."""
        low, high = np.zeros((2, self.pixels.size), np.int64)
        some = np.flatnonzero(np.diff(self.first))
        low[some] = self.keys[self.first[some]] % _PIXELS
        last = self.first[some + 1] - 1
        high[some] = self.keys[last] % _PIXELS + self.lengths[last]
        return low, high

    def _until(self, mask: Places, pixel: Ints) -> Ints:
        """Return the number of foreground pixels of distinct masks before a pixel."""
        run = np.searchsorted(self.keys, mask * _PIXELS + pixel) - 1  # the last that begins before
        within_run = np.minimum(pixel - self.keys[run] % _PIXELS, self.lengths[run])
        return np.where(run >= self.first[mask], self.before[run] + within_run, 0)


def pieces(counts: Ints, most: int) -> Iterator[slice]:
    """Yield slices of items whose counts sum to about `most`, and to more only in single items."""
    cuts = np.searchsorted(np.cumsum(counts), np.arange(0, counts.sum(), most), "right")
    for start, stop in pairwise([*cuts.tolist(), counts.size]):
        if stop > start:
            yield slice(start, stop)


def _undone(numbers: Ints, of: Places) -> Ints:
    """Return the lengths of runs from the numbers of COCO's text, of which some are differences."""
    sizes = np.bincount(of)
    turn = within(np.zeros_like(sizes), sizes)
    # The first length stands alone; every other one follows on the last but one of its mask.
    chain = 3 * of + np.where(turn == 0, 0, 2 - turn % 2)
    order = np.argsort(chain, kind="stable")
    lengths = np.empty_like(numbers)
    lengths[order] = _within_groups(numbers[order], chain[order])
    return lengths


def _within_groups(values: Ints, groups: Places) -> Ints:
    """Return cumulative sums that begin anew in each group; groups are in ascending order."""
    sums = np.cumsum(values)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    counts = np.diff(first, append=groups.size)
    return sums - np.repeat(sums[first] - values[first], counts)


def _sums(values: Ints, starts: Places) -> Ints:
    """Return the sums of non-empty groups that begin at `starts`."""
    return np.add.reduceat(values, starts) if starts.size else np.zeros(0, np.int64)
