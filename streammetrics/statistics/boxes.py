"""Boxes or masks in images, matched during update: scores by class and outcome."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.columns.column import Column, concatenate, either
from streammetrics.core.columns.labels import A_LABEL, KINDS
from streammetrics.core.columns.nested import Nested, within
from streammetrics.core.columns.schema import Field, Schema, reject_present
from streammetrics.core.columns.scores import reject_values
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.counting import packed
from streammetrics.core.errors import Hint, InvalidBatchError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.keyed import coded_labels, packed_labels, unpacked_labels
from streammetrics.core.fields.tables import GroupedCells, PairTable
from streammetrics.core.state.arrays import (
    laid_out,
    narrowed,
    nested,
    part,
    same,
    take_array,
    taken_apart,
    widened,
)
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.tables import amounts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import (
        Array,
        Arrays,
        Bools,
        ClassLabel,
        Columns,
        Floats,
        Ints,
        Places,
        ReadColumn,
    )

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
        sums: The number of foreground pixels of all runs before each one, and of all.
    """

    places: Places
    pixels: Ints
    first: Ints
    keys: Ints
    lengths: Ints
    sums: Ints

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
        sums = np.append(0, np.cumsum(lengths))
        return cls(places, np.where(good, pixels, 0), first, keys, lengths, sums)

    def __getitem__(self, which: slice | Array) -> Masks:
        """Return some of the masks."""
        return replace(self, places=self.places[which])

    @property
    def areas(self) -> Floats:
        """The number of foreground pixels of each mask (n,)."""
        return np.diff(self.sums[self.first])[self.places].astype(np.float64)

    def shared(self, other: Masks) -> Floats:
        """Return the number of foreground pixels that each mask shares with another (n,).

        Both are masks of one column.
        """
        found = np.zeros(self.places.size)
        low, high = self._extents()
        one, two = self.places, other.places
        near = np.flatnonzero((low[one] < high[two]) & (low[two] < high[one]))
        counts = np.diff(self.first)[one[near]]
        for piece in pieces(counts, tuning.OVERLAPS):
            pairs, sizes = near[piece], counts[piece]
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
        before = self.sums[run] - self.sums[self.first[mask]]
        return np.where(run >= self.first[mask], before + within_run, 0)


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


AREAS = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
_NEARLY = 1 - 1e-10  # the threshold used for an IoU of 1, which rounding could miss


class Outcomes(NamedTuple):
    """The matched boxes of each image, sorted by class, then by descending score.

    `regular` (g, A) is True where a true box counts in an area range and is not a crowd. `codes`
    (d, A) are bit masks over the T thresholds, one for each predicted box and area range: the low
    T bits mark hits, and the next T bits mark thresholds at which the box is ignored, because it
    matched a true box that does not count, or is unmatched and outside the area range. `ranks`
    (d,) are positions within the image and class, from 0.
    """

    true_labels: Nested
    regular: Nested
    pred_labels: Nested
    scores: Nested
    ranks: Nested
    codes: Nested


class _Side(NamedTuple):
    """Predicted or true boxes, in ascending order of `groups` (an image and class each)."""

    order: Places
    groups: Ints
    boxes: Shapes
    areas: Floats

    @classmethod
    def of(cls, boxes: Shapes, groups: Ints, areas: Floats, keys: tuple[Floats, ...] = ()) -> _Side:
        """Return the boxes ordered by group, then by `keys`."""
        order = np.lexsort((*keys, groups))
        return cls(order, groups[order], boxes[order], areas[order])


def matched(columns: Columns, ious: tuple[float, ...], *, classes: bool = True) -> Outcomes:
    """Match the boxes of each image.

    Predicted boxes of a class are matched by descending score, in the order given where scores are
    equal. Each is matched with the free true box of largest overlap, the last one in a tie. A true
    box that does not count is matched only if no other is available.
    """
    true_boxes, true_labels, crowd, true_areas, pred_boxes, pred_labels, scores = columns
    if not classes:
        true_labels, pred_labels = map(_alike, (true_labels, pred_labels))
    size = len(true_labels.flat)
    both = concatenate([true_labels.flat, pred_labels.flat])
    groups = np.concatenate([true_boxes.rows, pred_boxes.rows])
    if len(both):
        places, labels = coded_labels(both)
        groups = packed((1, len(labels)), groups, places)
    shapes = _shapes(concatenate([true_boxes.flat, pred_boxes.flat]))
    given = true_areas.flat.values
    areas = np.where(np.isnan(given), shapes[:size].areas, given)  # nan: those of the boxes
    true = _Side.of(shapes[:size], groups[:size], areas)
    boxes = shapes[size:]
    pred = _Side.of(boxes, groups[size:], boxes.areas, (-scores.flat.values,))
    crowded = crowd.flat.values[true.order] > 0
    regular = _in_areas(true.areas) & ~crowded[:, None]
    codes = _codes(true, pred, crowded, regular, np.minimum(ious, _NEARLY))
    starts = np.searchsorted(pred.groups, pred.groups)
    held = (
        (true_labels, true_labels.flat[true.order]),
        (true_labels, Column(regular, None, True)),
        (pred_labels, pred_labels.flat[pred.order]),
        (pred_labels, scores.flat[pred.order]),
        (pred_labels, Column(np.arange(starts.size) - starts, None, True)),
        (pred_labels, Column(codes, None, True)),
    )
    return Outcomes(*[Nested.of(like.values, flat) for like, flat in held])


def _alike(labels: Nested) -> Nested:
    """Return the same structure with every label set to 0."""
    return Nested.of(labels.values, Column(np.zeros(len(labels.flat), np.int64), None, True))


def _in_areas(areas: Floats) -> Bools:
    """Return whether each area is within each range of `AREAS` (n, A); both ends are inclusive."""
    low, high = np.array(list(AREAS.values())).T
    inside: Bools = (areas[:, None] >= low) & (areas[:, None] <= high)
    return inside


def _codes(true: _Side, pred: _Side, crowd: Bools, regular: Bools, ious: Floats) -> Ints:
    """Return the codes of the predicted boxes (d, A), as in `Outcomes`."""
    bits = np.int64(1) << np.arange(ious.size)
    every = np.int64((1 << ious.size) - 1)
    codes = np.where(_in_areas(pred.areas), 0, every)  # ignored where unmatched
    hits = np.zeros_like(codes)
    pairs = _Pairs.of(true, pred, crowd, ious.min())
    taken = np.zeros((*regular.shape, ious.size), np.bool_)
    for boxes, starts, places in pairs.turns(pred.groups):
        truths, n = pairs.true[places], places.size
        free = ~taken[truths] | crowd[truths][:, None, None]
        near = pairs.iou[places][:, None] >= ious
        # Pairs of a box are in ascending order of overlap; true boxes that count rank above others.
        order = np.arange(1, n + 1)[:, None] + n * regular[truths]
        best = np.maximum.reduceat(
            np.where(free & near[:, None, :], order[:, :, None], 0), starts, axis=0
        )
        box, area, iou = np.nonzero(best)
        taken[truths[(best[box, area, iou] - 1) % n], area, iou] = True
        hit, lost = (best > n) @ bits, ((best > 0) & (best <= n)) @ bits
        hits[boxes] = hit
        codes[boxes] = (codes[boxes] & ~hit) | lost
    ignored: Ints = codes << ious.size
    return ignored | hits


class _Pairs(NamedTuple):
    """Overlapping pairs of predicted and true boxes, by predicted box, then by ascending IoU."""

    pred: Places
    true: Places
    iou: Floats

    @classmethod
    def of(cls, true: _Side, pred: _Side, crowd: Bools, least: float) -> _Pairs:
        """Return the pairs of boxes of the same group whose IoU is at least `least`."""
        first = np.searchsorted(true.groups, pred.groups)
        counts = np.searchsorted(true.groups, pred.groups, "right") - first
        parts = []
        for some in pieces(counts, tuning.OVERLAPS):
            box = np.repeat(np.arange(some.start, some.stop), counts[some])
            other = within(first[some], counts[some])
            iou = overlap(pred.boxes[box], true.boxes[other], crowd[other])
            near = np.flatnonzero(iou >= least)
            parts.append((box[near], other[near], iou[near]))
        none = np.empty(0, np.intp)
        box, other, iou = (
            map(np.concatenate, zip(*parts, strict=True)) if parts else (none, none, np.empty(0))
        )
        order = np.lexsort((other, iou, box))
        return cls(box[order], other[order], iou[order])

    def turns(self, groups: Ints) -> Iterator[tuple[Places, ...]]:
        """Yield batches of predicted boxes with at most one box of each group.

        A batch is the boxes, the start of each box's pairs, and the places of these pairs. Boxes
        that come later in their group come in a later batch.
        """
        if not self.pred.size:
            return
        starts = np.flatnonzero(np.diff(self.pred, prepend=-1))
        counts = np.diff(starts, append=self.pred.size)
        boxes = self.pred[starts]
        own = groups[boxes]
        turn = np.arange(boxes.size) - np.searchsorted(own, own)
        order = np.argsort(turn, kind="stable")
        for some in np.split(order, np.cumsum(np.bincount(turn))[:-1]):
            ends = np.cumsum(counts[some])
            yield boxes[some], ends - counts[some], within(starts[some], counts[some])


class Shapes(Protocol):
    """Boxes or masks (n,)."""

    @property
    def areas(self) -> Floats:
        """The area of each one."""
        ...

    def __getitem__(self, which: slice | Array) -> Self:
        """Return some of them."""
        ...

    def shared(self, other: Self) -> Floats:
        """Return the area that each one shares with another one of the same kind."""
        ...


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Boxes (n, 4) given as left, top, width and height."""

    values: Floats

    def __getitem__(self, which: slice | Array) -> Rectangles:
        """Return some of the boxes."""
        return Rectangles(self.values[which])

    @property
    def areas(self) -> Floats:
        """The area of each box."""
        return self.values[:, 2] * self.values[:, 3]

    def shared(self, other: Rectangles) -> Floats:
        """Return the area that each box shares with another."""
        one, two = self.values, other.values
        low = np.maximum(one[:, :2], two[:, :2])
        high = np.minimum(one[:, :2] + one[:, 2:], two[:, :2] + two[:, 2:])
        both: Floats = np.prod(np.maximum(high - low, 0.0), axis=1)
        return both


def _shapes(flat: Column) -> Shapes:
    """Return boxes, or masks if they are given as text."""
    if flat.vocabulary is not None:
        return Masks.of(flat)
    return Rectangles(flat.values.reshape(-1, 4))


def overlap(one: Shapes, other: Shapes, crowd: Bools) -> Floats:
    """Return intersections over unions; with a crowd, over the area of the first one instead."""
    both = one.shared(other)
    union = np.where(crowd, one.areas, one.areas + other.areas - both)
    return np.divide(both, union, out=np.zeros_like(both), where=both > 0)


BoxFormat = Literal["xyxy", "xywh", "cxcywh", "rle"]

TRUE, PRED = (
    ("true_boxes", "true_labels", "true_crowd", "true_areas"),
    (
        "pred_boxes",
        "pred_labels",
        "pred_scores",
    ),
)
_EACH = {"true_boxes": "the boxes of an image", "pred_boxes": "the boxes of an image"}
_LENGTHS = "a mask is COCO's compressed run lengths: the counts of pycocotools.mask.encode, as text"
_MASKS = Hint(
    "a box is four numbers; say {box_format} if it is the text of a mask", box_format="rle"
)
_CORNERS = Hint("say {box_format} or cxcywh if they are not corners", box_format="xywh")


@dataclass(frozen=True)
class Boxes(Field):
    """Boxes of images, matched at thresholds `ious`; labels are ignored unless `classes`."""

    ious: tuple[float, ...]
    box_format: BoxFormat = "xyxy"
    classes: bool = True

    names = (*TRUE, *PRED)
    optional = frozenset(("true_crowd", "true_areas"))
    nested = tuple((name, _EACH.get(name, "one for each box of an image")) for name in names)

    @property
    def kinds(self) -> dict[str, Kind]:
        """``"label"`` for labels and the text of masks, ``"number"`` for all other columns."""
        texts = ("true_boxes", "pred_boxes") if self.box_format == "rle" else ()
        label: dict[str, Kind] = dict.fromkeys(("true_labels", "pred_labels", *texts), "label")
        return {name: label.get(name, "number") for name in self.names}

    def take(self, batch: Batch) -> Taken:
        """Return the columns (`None` if absent) and a mask of rows with a missing value."""
        taken: list[ReadColumn] = []
        missing: Bools | None = None
        for name in self.names:
            if name in self.optional and not batch.has(name):
                taken.append(None)
                continue
            column = batch.column(name)
            missing = either(missing, column.nulls)
            taken.append(column)
        return tuple(taken), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that columns have one value for each box, and that boxes and values are valid."""
        held = dict(zip(self.names, taken, strict=True))
        pixels: list[Ints] = []  # of the images of masks
        for boxes, *others in (TRUE, PRED):
            title = batch.title(boxes)
            if self.box_format == "rle":
                pixels.append(self._check_masks(title, held[boxes], missing))
            else:
                self._check_boxes(title, held[boxes], missing)
            for name in others:
                column = held[name]
                if column is not None:
                    what = f"is not one for each of {title}"
                    wrong = column.values != held[boxes].values
                    reject_present(batch.title(name), what, wrong, missing)
        for name in ("true_crowd", "true_areas", "pred_scores"):
            if held[name] is not None:
                self._check_numbers(batch.title(name), name, held[name], missing)
        for name in ("true_labels", "pred_labels"):
            _check_labels(batch.title(name), held[name], missing)
        if pixels:
            sizes = np.concatenate(pixels)
            rows = np.concatenate([held[boxes].rows for boxes in ("true_boxes", "pred_boxes")])
            most = np.zeros(len(held["true_boxes"]), np.int64)
            np.maximum.at(most, rows, sizes)
            wrong = np.zeros(most.size, np.bool_)
            wrong[rows[sizes != most[rows]]] = True
            title = batch.title("pred_boxes")
            what = f"or {batch.title('true_boxes')} has masks of images of different sizes"
            reject_present(title, what, wrong, missing)

    def _check_masks(self, title: str, masks: Nested, missing: Bools | None) -> Ints:
        """Check masks; return the number of pixels of the image of each, -1 for a null."""
        flat = masks.flat
        if flat.vocabulary is None and len(flat):
            raise InvalidBatchError(f"{title} holds numbers; {_LENGTHS}", title)
        found = Masks.of(flat)
        pixels: Ints = np.append(found.pixels, -1)[found.places]
        what = "has a mask that is not valid"
        reject_values(title, what, pixels == 0, masks, missing, advice=_LENGTHS)
        return pixels

    def _check_boxes(self, title: str, boxes: Nested, missing: Bools | None) -> None:
        flat = boxes.flat
        if flat.vocabulary is not None:
            raise InvalidBatchError(f"{title} holds text", title, hint=_MASKS)
        if len(flat) and (flat.values.ndim != 2 or flat.values.shape[1] != 4):
            shape = "one number" if flat.values.ndim == 1 else f"{flat.values.shape[1]} numbers"
            row = int(np.argmax(boxes.values > 0))
            raise InvalidBatchError(
                f"{title} has boxes of {shape}, first in row {row}; a box is four", title, row
            )
        values = _numbers(title, flat).reshape(-1, 4)
        reject_values(title, "has an infinite number", ~np.isfinite(values), boxes, missing)
        sides = values[:, 2:] - (values[:, :2] if self.box_format == "xyxy" else 0)
        what = "has a box of negative width or height"
        advice = _CORNERS if self.box_format == "xyxy" else ""
        reject_values(title, what, sides < 0, boxes, missing, values, advice=advice)

    def _check_numbers(self, title: str, name: str, column: Nested, missing: Bools | None) -> None:
        values = _numbers(title, column.flat)
        if values.ndim > 1:
            raise InvalidBatchError(f"{title} holds lists of lists; pass one number per box")
        if name == "true_crowd":
            wrong = (values != 0) & (values != 1)
            reject_values(title, "is neither 0 nor 1", wrong, column, missing)
        elif name == "true_areas":
            wrong = ~((values >= 0) & (values < np.inf))
            reject_values(title, "is not an area, 0 or more", wrong, column, missing, values)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the columns of the kept rows with defaults filled in, boxes in xywh format."""
        kept = [c if c is None or rows is None else c[rows] for c in taken]
        boxes, labels, crowd, areas, found, names, scores = kept
        boxes, found = (self._sized(each) for each in (boxes, found))
        size = len(boxes.flat)
        finished = (
            boxes,
            _whole(labels),
            _floats(boxes, np.zeros(size) if crowd is None else _numbers("", crowd.flat)),
            _floats(boxes, np.full(size, np.nan) if areas is None else _numbers("", areas.flat)),
            found,
            _whole(names),
            _floats(found, _numbers("", scores.flat)),
        )
        kinds = {
            "strings" if each.flat.vocabulary is not None else "integers"
            for each in (finished[1], finished[5])
            if len(each.flat)
        }
        if len(kinds) > 1:
            one, other = batch.title("true_labels"), batch.title("pred_labels")
            raise InvalidBatchError(
                f"{one} and {other} must both hold strings or both hold integers"
            )
        return finished, {"labels": kinds.pop()} if kinds else {}

    def _sized(self, boxes: Nested) -> Nested:
        """Return boxes as left, top, width and height, and masks as they are."""
        if boxes.flat.vocabulary is not None:
            return boxes
        values = _numbers("", boxes.flat).reshape(-1, 4).copy()
        if self.box_format == "xyxy":
            values[:, 2:] -= values[:, :2]
        elif self.box_format == "cxcywh":
            values[:, :2] -= values[:, 2:] / 2
        return _floats(boxes, values)

    def present(self, columns: Columns) -> Columns:
        """Return the columns of `Outcomes`, one row for each image."""
        return tuple(matched(columns, self.ious, classes=self.classes))


def _floats(like: Nested, values: Floats) -> Nested:
    return Nested.of(like.values, Column(values, None, True))


def _numbers(title: str, flat: Column) -> Floats:
    if flat.vocabulary is not None:
        raise InvalidBatchError(f"{title} holds text; expected numbers")
    return flat.values.astype(np.float64, copy=False)


def _whole(labels: Nested) -> Nested:
    """Return labels with integers stored as floats converted to int64."""
    flat = labels.flat
    if flat.vocabulary is None and flat.values.dtype != np.int64:
        flat = Column(flat.values.astype(np.int64), None, True)
    return Nested.of(labels.values, flat)


def _check_labels(title: str, labels: Nested, missing: Bools | None) -> None:
    flat = labels.flat
    if flat.values.ndim > 1:
        raise InvalidBatchError(f"{title} holds lists of lists; pass one label per box")
    if flat.vocabulary is None and flat.values.dtype.kind not in KINDS | {"f": ""}:
        raise InvalidBatchError(f"{title} does not hold labels; a label is {A_LABEL}")
    if flat.vocabulary is None:
        values = flat.values.astype(np.float64)
        wrong = (np.rint(values) != values) | ~(np.abs(values) < 2.0**63)
        reject_values(title, f"is not a label ({A_LABEL})", wrong, labels, missing, values)


class Outcome(NamedTuple):
    """A class, an area range and a code shared by predicted boxes.

    The code is defined in `Outcomes`.
    """

    label: ClassLabel
    area: int
    code: int


Held: TypeAlias = "Mapping[Outcome, SortedHistogram]"


class OutcomeHistograms(StateField["dict[Outcome, SortedHistogram]"]):
    """A `SortedHistogram` of the scores for each outcome that occurs; the mapping is immutable.

    The statistic's `ious` are the IoU thresholds, and its `max_bins` is the maximum number of cells
    of each histogram.
    """

    def empty(self, of: object) -> dict[Outcome, SortedHistogram]:
        """Return an empty mapping."""
        return {}

    def added(
        self,
        value: Held,
        of: BoxScores,
        labels: Column,
        scores: Floats,
        codes: Ints,
    ) -> dict[Outcome, SortedHistogram]:
        """Return the histograms with more boxes added; `codes` (d, A) are as in `Outcomes`."""
        places, names = coded_labels(labels)
        counted = codes != ((1 << len(of.ious)) - 1) << len(of.ious)
        boxes, areas = np.nonzero(counted)
        if not boxes.size:  # crowds have matched all of them
            return dict(value)
        columns = places[boxes], areas, codes[boxes, areas]
        order = np.lexsort(columns[::-1])
        keys = np.stack(columns)[:, order]
        starts = np.flatnonzero((np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0))
        ends = [*starts[1:].tolist(), order.size]
        held, scores, told = dict(value), scores[boxes[order]], names.tolist()
        for start, end, key in zip(starts.tolist(), ends, keys[:, starts].T.tolist(), strict=True):
            outcome = Outcome(told[key[0]], *key[1:])
            known = held.get(outcome)
            histogram = SortedHistogram(of.max_bins, 1) if known is None else known.fork()
            histogram.add(scores[start:end])
            held[outcome] = histogram
        return held

    def plus(self, mine: Held, other: Held) -> dict[Outcome, SortedHistogram]:
        """Return the merged histograms."""
        return self.merged(mine, [other])

    def merged(
        self,
        mine: Held,
        others: Sequence[Held],
    ) -> dict[Outcome, SortedHistogram]:
        """Return the merged histograms; all histograms of an outcome are merged at once."""
        gathered: dict[Outcome, list[SortedHistogram]] = {}
        for value in (mine, *others):
            for outcome, histogram in value.items():
                gathered.setdefault(outcome, []).append(histogram)
        result = {}
        for outcome, (first, *rest) in gathered.items():
            result[outcome] = first
            if rest:
                result[outcome] = first.fork()
                result[outcome].merge(*rest)
        return result

    def arrays(self, value: Held) -> dict[str, Array]:
        """Return the classes, the sorted outcomes (class, area, code), and their histograms."""
        outcomes = sorted(value)
        labels = np.array(sorted({outcome.label for outcome in outcomes}) or np.empty(0, np.int64))
        places = {label: place for place, label in enumerate(labels.tolist())}
        keys = [(places[label], area, code) for label, area, code in outcomes]
        return {
            "labels": packed_labels(labels),
            "outcomes": np.array(keys, np.int64).reshape(-1, 3),
            **nested("scores", narrowed(laid_out([value[o].arrays() for o in outcomes]))),
        }

    def taken(self, arrays: Arrays, of: Any) -> dict[Outcome, SortedHistogram]:
        """Return the histograms after validating them and their outcomes."""
        labels = unpacked_labels(arrays, "labels")
        keys = take_array(arrays, "outcomes", "int64", 2)
        every = (1 << len(of.ious)) - 1
        if keys.shape[1:] != (3,) or keys.min(initial=0) < 0:
            raise StateFormatError("the key of an outcome must be a class, an area and a code")
        places, areas, codes = keys.T
        hits, ignored = codes & every, codes >> len(of.ious)
        if (
            (places >= len(labels)).any()
            or (areas >= len(AREAS)).any()
            or (hits & ignored).any()
            or (ignored >= every).any()
        ):
            raise StateFormatError("an outcome of boxes has an unknown class, area or code")
        each = taken_apart(widened(part(arrays, "scores")), len(keys))
        histograms = [SortedHistogram.from_arrays(of.max_bins, 1, held) for held in each]
        if not all(histogram.totals()[0] for histogram in histograms):
            raise StateFormatError("an outcome has no boxes")
        told = labels.tolist()
        value = {
            Outcome(told[place], area, code): histogram
            for (place, area, code), histogram in zip(keys.tolist(), histograms, strict=True)
        }
        if not same(self.arrays(value), arrays):
            raise StateFormatError(f"the arrays of {self.name} are invalid")
        return value

    def nbytes(self, value: Held) -> int:
        """Bytes held now."""
        return sum(histogram.nbytes for histogram in value.values())

    def minus(self, value: Held, other: Held) -> dict[Outcome, SortedHistogram]:
        """Return the difference; histograms that exceeded `max_bins` cannot be subtracted."""
        if not other.keys() <= value.keys():
            raise not_among("some outcomes of boxes are not in this state")
        left = dict(value)
        for outcome, histogram in other.items():
            left[outcome] = value[outcome].minus(histogram)
            if not left[outcome].totals()[0]:
                del left[outcome]
        return left


IOUS = tuple(np.linspace(0.5, 0.95, 10).tolist())  # the thresholds of COCO
MAX_BINS = 1 << 16


class BoxStatistic(Statistic):
    """Base class of box statistics.

    Predicted boxes are limited to the `max_detections` best of each class and image. `counts` holds
    the number of true boxes that count, by class and area range; subclasses also record the
    outcomes of predicted boxes.
    """

    uncounted = "a row of boxes is an image with lists of boxes"

    ious: tuple[float, ...] = IOUS
    box_format: BoxFormat = "xyxy"
    max_detections: int = 100
    classes: bool = True
    nan_policy: NanPolicy = "raise"

    counts = PairTable(whole=True, of="boxes")

    @property
    def schema(self) -> Schema:
        """The columns of boxes."""
        boxes = Boxes(self.ious, self.box_format, self.classes)
        return Schema((boxes,), self.nan_policy, "metrics of boxes")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add images whose boxes are already matched."""
        seen = Outcomes(*columns)
        if len(seen.true_labels.flat):
            self._count(seen.true_labels.flat, seen.regular.flat.values, 0)
        best = np.flatnonzero(seen.ranks.flat.values < self.max_detections)
        if best.size:
            scores, codes = seen.scores.flat.values[best], seen.codes.flat.values[best]
            self.take(seen.pred_labels.flat[best], scores, codes)

    @abstractmethod
    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:
        """Add predicted boxes; `codes` (d, A) are as in `Outcomes`."""

    def _count(self, labels: Column, marks: Bools, first: int) -> None:
        """Add the number of True `marks` (n, k) by label to the columns from `first` on."""
        places, names = coded_labels(labels)
        rows, kinds = np.nonzero(marks)
        width = first + marks.shape[1]
        shape = len(names), width
        found, amount = amounts_of(shape, places[rows], first + kinds, weight=None)
        pairs = GroupedCells(names, np.arange(width), found, amount).narrowed()
        self.counts = type(self).counts.plus(self.counts, pairs)

    def table(self, labels: Iterable[object] = ()) -> tuple[list[ClassLabel], Ints]:
        """Return all classes in order, including those of `labels`, and counts (n, A, 1 + T).

        The first column counts true boxes, the others hits at each threshold.
        """
        held = self.counts
        every = sorted({*held.row_labels.tolist(), *labels})
        places = {label: place for place, label in enumerate(every)}
        rows, columns = held.places
        rows = np.array([places[label] for label in held.row_labels.tolist()], np.intp)[rows]
        flat = np.zeros((len(every), len(AREAS) * (1 + len(self.ious))), np.int64)
        flat[rows, held.column_labels[columns]] = held.amount.counts
        truths, hits = np.split(flat, [len(AREAS)], axis=1)
        hits = hits.reshape(len(every), len(AREAS), len(self.ious))
        return every, np.concatenate([truths[:, :, None], hits], axis=2)

    def _check(self, columns: int) -> None:
        """Raise unless the column labels of `counts` are within ``range(columns)``."""
        known = self.counts.column_labels
        if known.dtype != np.int64 or (known.size and not 0 <= known[0] <= known[-1] < columns):
            raise StateFormatError("the counts are not counts of boxes")


class BoxHits(BoxStatistic):
    """Number of hits at each threshold, by class and area range."""

    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:
        """Count hits."""
        hits = (codes[:, :, None] >> np.arange(len(self.ious))) & 1 > 0
        self._count(labels, hits.reshape(len(hits), -1), len(AREAS))

    def check_fields(self) -> None:
        """Check that there are no more hits than true boxes."""
        self._check(len(AREAS) * (1 + len(self.ious)))
        _, table = self.table()
        if (table[:, :, 1:] > table[:, :, :1]).any():
            raise _too_many_hits()


class BoxScores(BoxStatistic):
    """Histograms of the scores of predicted boxes, by class, area range and outcome."""

    max_bins: Bins = MAX_BINS

    # Up to 2**53 counts are exact in float64, and so is the comparison with a recall level.
    counts = PairTable(whole=True, most=1 << 53, of="boxes")
    outcomes = OutcomeHistograms()

    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:
        """Add scores to the histograms."""
        self.outcomes = type(self).outcomes.added(self.outcomes, self, labels, scores, codes)

    def check_fields(self) -> None:
        """Check that there are no more hits than true boxes."""
        self._check(len(AREAS))
        labels, table = self.table(outcome.label for outcome in self.outcomes)
        places = {label: place for place, label in enumerate(labels)}
        hits = np.zeros((*table.shape[:2], len(self.ious)), np.int64)
        for (label, area, code), histogram in self.outcomes.items():
            bits = (code >> np.arange(len(self.ious))) & 1
            hits[places[label], area] += bits * int(histogram.totals()[0])
        if (hits > table[:, :, :1]).any():
            raise _too_many_hits()


def _too_many_hits() -> StateFormatError:
    """Return the error for a state with more hits than true boxes."""
    return StateFormatError("there are more hits than true boxes of a class")
