"""Boxes of images, matched when they come: how many there are, and what became of those found."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.labels import coded_labels
from streammetrics.core.fields.tables import Pairs, PairTable
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.detection.matching import AREAS, Outcomes
from streammetrics.statistics.detection.outcomes import OutcomeHistograms
from streammetrics.statistics.detection.schema import Boxes, BoxFormat
from streammetrics.statistics.tables.contingency import amounts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Bools, ClassLabel, Floats, Ints, ReadColumn


IOUS = tuple(np.linspace(0.5, 0.95, 10).tolist())  # COCO's
MAX_BINS = 1 << 16


class BoxStatistic(Statistic):
    """True boxes and predicted ones, of which the best `max_detections` of a class in an image.

    `counts` has the true boxes that matter, by class and area; subclasses keep what became of the
    predicted ones.
    """

    ious: tuple[float, ...] = IOUS
    box_format: BoxFormat = "xyxy"
    max_detections: int = 100
    classes: bool = True
    nan_policy: NanPolicy = "raise"

    counts = PairTable(whole=True, of="boxes")

    @property
    def schema(self) -> Schema:
        """The boxes of images."""
        boxes = Boxes(self.ious, self.box_format, self.classes)
        return Schema((boxes,), self.nan_policy, "metrics of boxes")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take images, whose boxes are matched."""
        seen = Outcomes(*columns)
        if len(seen.true_labels.flat):
            self._count(seen.true_labels.flat, seen.regular.flat.values, 0)
        best = np.flatnonzero(seen.ranks.flat.values < self.max_detections)
        if best.size:
            scores, codes = seen.scores.flat.values[best], seen.codes.flat.values[best]
            self.take(seen.pred_labels.flat[best], scores, codes)

    @abstractmethod
    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:
        """Take predicted boxes, of which codes (d, A) are those of `Outcomes`."""

    def _count(self, labels: Column, marks: Bools, first: int) -> None:
        """Count what has each of some marks (n, k) by label, in columns from one on."""
        places, names = coded_labels(labels)
        rows, kinds = np.nonzero(marks)
        width = first + marks.shape[1]
        shape = len(names), width
        found, amount = amounts_of(shape, places[rows], first + kinds, weight=None)
        pairs = Pairs.of(names, np.arange(width), found, amount)
        self.counts = type(self).counts.plus(self.counts, pairs)

    def table(self, labels: Iterable[object] = ()) -> tuple[list[ClassLabel], Ints]:
        """Return all classes, and others, in order, and what is counted of each (n, A, 1 + T).

        The first column is of true boxes, the others of hits at each threshold.
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
        """Raise unless what is counted is one of so many things."""
        known = self.counts.column_labels
        if known.dtype != np.int64 or (known.size and not 0 <= known[0] <= known[-1] < columns):
            raise StateFormatError("something else than boxes is counted")


class BoxHits(BoxStatistic):
    """How many predicted boxes are hits at each threshold, by class and area."""

    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:  # noqa: ARG002 - they do not matter here
        """Count hits."""
        hits = (codes[:, :, None] >> np.arange(len(self.ious))) & 1 > 0
        self._count(labels, hits.reshape(len(hits), -1), len(AREAS))

    def check_fields(self) -> None:
        """Check that there are not more hits than boxes to be found."""
        self._check(len(AREAS) * (1 + len(self.ious)))
        _, table = self.table()
        if (table[:, :, 1:] > table[:, :, :1]).any():
            raise _too_many_hits()


class BoxScores(BoxStatistic):
    """Histograms of the scores of predicted boxes by class, area and outcome."""

    max_bins: Bins = MAX_BINS

    # Up to there amounts are exact as float64, and so is whether a recall is reached.
    counts = PairTable(whole=True, most=1 << 53, of="boxes")
    outcomes = OutcomeHistograms()

    def take(self, labels: Column, scores: Floats, codes: Ints) -> None:
        """Count scores."""
        self.outcomes = type(self).outcomes.added(self.outcomes, self, labels, scores, codes)

    def check_fields(self) -> None:
        """Check that there are not more hits than boxes to be found."""
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
    """Return the error of a state in which more boxes were found than there are."""
    return StateFormatError("there are more hits than true boxes of a class")
