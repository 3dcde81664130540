"""Scores of predicted boxes by what became of them: a histogram for each class and outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.histogram import DyadicHistogram
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.labels import coded_labels, packed_labels, unpacked_labels
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
from streammetrics.statistics.detection.matching import AREAS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Array, Arrays, ClassLabel, Floats, Ints


class Outcome(NamedTuple):
    """What predicted boxes have in common: the class, the area that they are judged in, the code.

    The code is that of `matching.Outcomes`.
    """

    label: ClassLabel
    area: int
    code: int


Held: TypeAlias = "Mapping[Outcome, DyadicHistogram]"


class OutcomeHistograms(StateField["dict[Outcome, DyadicHistogram]"]):
    """A `DyadicHistogram` of the scores of each outcome that occurs; the mapping never changes.

    Of the statistic `ious` says at how many thresholds outcomes are, and `max_bins` how many cells
    each histogram may have.
    """

    def empty(self, of: object) -> dict[Outcome, DyadicHistogram]:  # noqa: ARG002 - nothing depends on it
        """Return none."""
        return {}

    def added(
        self,
        value: Held,
        of: Any,
        labels: Column,
        scores: Floats,
        codes: Ints,
    ) -> dict[Outcome, DyadicHistogram]:
        """Return the histograms with more boxes, of which codes (d, A) tell the outcomes."""
        places, names = coded_labels(labels)
        counted = codes != ((1 << len(of.ious)) - 1) << len(of.ious)
        boxes, areas = np.nonzero(counted)
        columns = places[boxes], areas, codes[boxes, areas]
        order = np.lexsort(columns[::-1])
        keys = np.stack(columns)[:, order]
        starts = np.flatnonzero((np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0))
        ends = [*starts[1:].tolist(), order.size]
        held, scores, told = dict(value), scores[boxes[order]], names.tolist()
        for start, end, key in zip(starts.tolist(), ends, keys[:, starts].T.tolist(), strict=True):
            outcome = Outcome(told[key[0]], *key[1:])
            known = held.get(outcome)
            histogram = DyadicHistogram(of.max_bins, 1) if known is None else known.fork()
            histogram.add(scores[start:end])
            held[outcome] = histogram
        return held

    def plus(self, mine: Held, other: Held) -> dict[Outcome, DyadicHistogram]:
        """Return the boxes of both."""
        return self.merged(mine, [other])

    def merged(
        self,
        mine: Held,
        others: Sequence[Held],
    ) -> dict[Outcome, DyadicHistogram]:
        """Return the boxes of all: histograms of an outcome are merged at once."""
        gathered: dict[Outcome, list[DyadicHistogram]] = {}
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
        """Return the classes, the outcomes by class, area and code, and their histograms."""
        outcomes = sorted(value)
        labels = np.array(sorted({outcome.label for outcome in outcomes}) or np.empty(0, np.int64))
        places = {label: place for place, label in enumerate(labels.tolist())}
        keys = [(places[label], area, code) for label, area, code in outcomes]
        return {
            "labels": packed_labels(labels),
            "outcomes": np.array(keys, np.int64).reshape(-1, 3),
            **nested("scores", narrowed(laid_out([value[o].arrays() for o in outcomes]))),
        }

    def taken(self, arrays: Arrays, of: Any) -> dict[Outcome, DyadicHistogram]:
        """Return the histograms, each of them checked, of outcomes that there can be."""
        labels = unpacked_labels(arrays, "labels")
        keys = take_array(arrays, "outcomes", "int64", 2)
        every = (1 << len(of.ious)) - 1
        if keys.shape[1:] != (3,) or keys.min(initial=0) < 0:
            raise StateFormatError("an outcome of boxes is not a class, an area and a code")
        places, areas, codes = keys.T
        hits, ignored = codes & every, codes >> len(of.ious)
        if (
            (places >= len(labels)).any()
            or (areas >= len(AREAS)).any()
            or (hits & ignored).any()
            or (ignored >= every).any()
        ):
            raise StateFormatError("an outcome of boxes is none that there can be")
        each = taken_apart(widened(part(arrays, "scores")), len(keys))
        histograms = [DyadicHistogram.from_arrays(of.max_bins, 1, held) for held in each]
        if not all(histogram.totals()[0] for histogram in histograms):
            raise StateFormatError("an outcome has no boxes")
        told = labels.tolist()
        value = {
            Outcome(told[place], area, code): histogram
            for (place, area, code), histogram in zip(keys.tolist(), histograms, strict=True)
        }
        if not same(self.arrays(value), arrays):
            raise StateFormatError(f"the arrays of {self.name} are not such as are written")
        return value

    def nbytes(self, value: Held) -> int:
        """Bytes held now."""
        return sum(histogram.nbytes for histogram in value.values())

    def minus(self, value: Held, other: Held) -> dict[Outcome, DyadicHistogram]:
        """Return what is left; only histograms within their budget can tell."""
        if not other.keys() <= value.keys():
            raise not_among("some outcomes of boxes are not here")
        left = dict(value)
        for outcome, histogram in other.items():
            left[outcome] = value[outcome].minus(histogram)
            if not left[outcome].totals()[0]:
                del left[outcome]
        return left
