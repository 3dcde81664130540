"""Panoptic segments in images: matches and overlaps by category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import Column
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scores import PairedLists, reject_values
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable, Sums, Weights
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from fractions import Fraction

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Bools, Columns, Floats, Ints, ReadColumn


_EACH = "the pixels of an image, a category and an instance each"
_VOID = -1  # category of pixels that belong neither to a thing nor to stuff


@dataclass(frozen=True)
class Segments(PairedLists):
    """True and predicted segmentation maps: a category and an instance at every pixel."""

    things: tuple[int, ...]
    stuffs: tuple[int, ...]
    void: bool  # whether unknown predicted categories are allowed, as void

    nested = (("y_true", _EACH), ("y_pred", _EACH))
    unequal = "has another number of pixels than {true}"

    @property
    def kinds(self) -> dict[str, Kind]:
        """``"number"`` for both columns."""
        return {"y_true": "number", "y_pred": "number"}

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that pixels are pairs of whole numbers, equal in number, of known categories."""
        super().validate(batch, taken, missing)
        if not self.void and len(taken[1].flat):
            categories = taken[1].flat.values[:, 0]
            foreign = ~np.isin(categories, [*self.things, *self.stuffs])
            what = "has a category that is neither of things nor of stuffs"
            advice = 'unknown="void" leaves such pixels out'
            reject_values(batch.title("y_pred"), what, foreign, taken[1], missing, advice=advice)

    def check(self, title: str, column: Nested, missing: Bools | None) -> None:
        """Raise if a pixel is not a category and an instance, both whole and non-negative."""
        values = column.flat.values
        if column.flat.vocabulary is not None or values.dtype.kind == "b":
            raise InvalidBatchError(
                f"{title} does not hold numbers; a pixel is a category and an instance"
            )
        if not values.size:
            return
        if values.ndim != 2 or values.shape[1] != 2:
            shape = "one number" if values.ndim == 1 else f"{values.shape[1]} numbers"
            raise InvalidBatchError(f"{title} has pixels of {shape}; pass two numbers per pixel")
        if values.dtype.kind == "f":
            broken: Bools = (np.rint(values) != values) | (np.abs(values) >= 2.0**53)
            reject_values(title, "holds numbers that are not whole", broken, column, missing)
        negative: Bools = values < 0
        reject_values(title, "has a negative category or instance", negative, column, missing)

    def canonical(self, column: Nested) -> Nested:
        """Return maps with instance 0 for all stuff, and one category for void."""
        pixels = column.flat.values.reshape(-1, 2).astype(np.int64)
        category = pixels[:, 0]
        instances = np.isin(category, self.things)
        pixels[~instances, 1] = 0
        category[~instances & ~np.isin(category, self.stuffs)] = _VOID
        return Nested.of(column.values, Column(pixels, None, True))


class SegmentCounts(Statistic):
    """Counts of matched, falsely predicted and missed segments, and summed overlaps, by category.

    With `whole` every true segment of stuff counts as matched, and every overlap of stuff is added.
    With `lenient` true pixels that are predicted as void do not count.
    """

    uncounted = "a row of segments is an image"

    things: tuple[int, ...]
    stuffs: tuple[int, ...] = ()
    void: bool = False
    whole: bool = False
    lenient: bool = False
    nan_policy: NanPolicy = "raise"

    held = LabelTable(segments=Weights(whole=True), counts=Sums(), overlaps=Sums(), inline=True)

    @property
    def schema(self) -> Schema:
        """The segmentation maps of images."""
        segments = Segments(self.things, self.stuffs, self.void)
        return Schema((segments,), self.nan_policy, "metrics of segments")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Match the segments of images and add the counts."""
        if not len(columns[0].flat):
            return
        categories = np.array(sorted({*self.things, *self.stuffs}), np.int64)
        seen = _Matched.of(columns[0], columns[1], categories, lenient=self.lenient)
        loose = np.isin(categories, self.stuffs) & self.whole
        found = (seen.iou > 0.5) & ~loose[seen.both]
        counted = found | loose[seen.both]
        kinds = (
            np.bincount(seen.both[found], minlength=categories.size),
            np.bincount(seen.pred[seen.wrong(found, 1)], minlength=categories.size),
            np.bincount(seen.true[seen.wrong(found, 0)], minlength=categories.size),
        )
        counts = np.stack(kinds, axis=1).astype(np.int64)
        every = np.bincount(seen.true, minlength=categories.size)
        counts[loose] = np.stack([every, 0 * every, 0 * every], axis=1)[loose]
        some = np.flatnonzero(counts.any(axis=1))
        places = np.searchsorted(some, seen.both[counted])
        overlaps = ExactSum.grouped(places, some.size, seen.iou[counted])
        more = {
            "segments": WeightedCount.of_counts(counts[some].sum(axis=1)),
            "counts": ExactSum.counts(counts[some]),
            "overlaps": overlaps.reshaped((some.size, 1)),
        }
        if some.size:
            self.held = type(self).held.plus(self.held, LabelledEntries(categories[some], more))

    def check_fields(self) -> None:
        """Check that categories are known, and that counts and overlaps are consistent."""
        labels, columns = self.held
        known = {*self.things, *self.stuffs}
        sound = labels.dtype == np.int64 and known.issuperset(labels.tolist())
        shapes = [columns[name].shape for name in ("counts", "overlaps")]
        if not sound or (len(labels) and shapes != [(len(labels), 3), (len(labels), 1)]):
            raise StateFormatError("the counts do not match the categories")
        overlaps, counts = map(self.overlap, range(len(labels))), self.counts()
        if any(
            min(each) < 0 or sum(each) != segments or not 0 <= overlap <= each[0]
            for each, segments, overlap in zip(
                counts, columns["segments"].counts.tolist(), overlaps, strict=True
            )
        ):
            raise StateFormatError("the counts do not match the segments")

    def overlap(self, place: int) -> Fraction:
        """Return the summed overlap of the matched segments of the category at `place`."""
        overlaps: ExactSum = self.held.columns["overlaps"]
        return overlaps[place, 0].fraction()

    def counts(self) -> list[list[int]]:
        """Return the matched, falsely predicted and missed segments of each category."""
        held = self.held.columns["counts"]
        return [
            [int(held[place][kind].fraction()) for kind in range(3)]
            for place in range(len(self.held.labels))
        ]


class _Matched(NamedTuple):
    """The segments of some images, and their overlapping pairs of the same category."""

    true: Ints  # category index of each true segment
    pred: Ints  # category index of each predicted segment
    both: Ints  # category index of each pair
    pairs: Ints  # the segments of each pair, (2, n)
    iou: Floats
    alien: tuple[Bools, Bools]  # whether most of a segment's pixels do not count

    @classmethod
    def of(cls, true: Nested, pred: Nested, categories: Ints, *, lenient: bool) -> _Matched:
        """Match maps with equal numbers of pixels."""
        runs, sizes = _runs(true, pred)
        sides = [_segments(runs[:, (0, k, k + 1)], categories) for k in (1, 3)]
        (first, of_true), (second, of_pred) = sides
        inside = (first >= 0) & (second >= 0)
        areas = [_added(c, c >= 0, sizes, k.size) for c, k in sides]
        lost = [
            _added(first, (first >= 0) & (second < 0) & lenient, sizes, of_true.size),
            _added(second, (second >= 0) & (first < 0), sizes, of_pred.size),
        ]
        keys, places = np.unique(
            first[inside] * max(of_pred.size, 1) + second[inside], return_inverse=True
        )
        shared = np.bincount(places, weights=sizes[inside], minlength=keys.size)
        pairs = np.stack(np.divmod(keys, max(of_pred.size, 1)))
        same = of_true[pairs[0]] == of_pred[pairs[1]]
        pairs, shared = pairs[:, same], shared[same]
        left = [(area - gone)[side] for area, gone, side in zip(areas, lost, pairs, strict=True)]
        iou = shared / (left[0] + left[1] - shared)
        alien = (2 * lost[0] > areas[0], 2 * lost[1] > areas[1])
        return cls(of_true, of_pred, of_true[pairs[0]], pairs, iou, alien)

    def wrong(self, found: Bools, side: int) -> Bools:
        """Return which segments of a side are unmatched and not mostly on ignored pixels."""
        left = ~self.alien[side]
        left[self.pairs[side, found]] = False
        return left


def _runs(true: Nested, pred: Nested) -> tuple[Ints, Ints]:
    """Return the distinct rows (image, true, pred) of runs of equal pixels, and run lengths."""
    columns = [true.rows, *true.flat.values.T, *pred.flat.values.T]
    begins = np.zeros(columns[0].size, np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=begins.size)
    return np.stack([column[starts] for column in columns], axis=1), sizes


def _added(segments: Ints, some: Bools, sizes: Ints, count: int) -> Floats:
    """Return the number of pixels that the selected runs have in each segment."""
    added = np.bincount(segments[some], weights=sizes[some], minlength=count)
    return added.astype(np.float64, copy=False)


def _segments(runs: Ints, categories: Ints) -> tuple[Ints, Ints]:
    """Return the segment of each run (-1 for void), and the category index of each segment."""
    image, category, instance = runs.T
    inside = category != _VOID
    places = np.searchsorted(categories, category[inside])
    _, instances = np.unique(instance[inside], return_inverse=True)
    images = image[inside] * categories.size + places
    keys = images * (instances.max(initial=0) + 1) + instances
    distinct, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    segments = np.full(category.size, -1, np.int64)
    segments[inside] = codes
    return segments, places[first] if distinct.size else np.empty(0, np.int64)
