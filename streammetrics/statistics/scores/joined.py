"""Scores of rows with several labels, and of all classes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.indicators import Indicators
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scores import Scores
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.scores.histogram import ScoreHistogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.fields.weighed import Added
    from streammetrics.core.types import Floats, ReadColumn


def _indicators(
    labels: tuple[ClassLabel, ...] | None, *, probabilities: bool = False
) -> Indicators:
    return Indicators("y_score", True, labels, len(labels or ()), probabilities)


def _joined(scores: Floats, marks: NDArray[np.uint8], weight: Floats | None) -> Added:
    """Return every score (n, K) beside its mark and the weight of its row."""
    each = None if weight is None else np.repeat(weight, scores.shape[1])
    return np.ascontiguousarray(scores).reshape(-1), marks.reshape(-1), each, None


class JoinedHistogram(ScoreHistogram):
    """One histogram of all (n, K) scores, each with whether its row is of its class.

    They are kept as probabilities, also where logits are (n,).
    """

    @property
    def scores(self) -> Scores:
        """Any scores; of logits the probabilities."""
        if self.from_logits:
            return Scores(wide=True, from_logits=True, use="probability")
        return Scores(wide=True, long=True)

    @property
    def keeps_logits(self) -> bool:
        """No: they are kept as probabilities."""
        return False

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count every score of the rows."""
        codes, scores = columns
        if scores.ndim == 1:
            super().update(codes, scores, weight=weight)
            return
        marks = (codes[:, None] == np.arange(scores.shape[1])).view(np.uint8)
        self.add([_joined(scores, marks, weight)], weight)


class LabelHistograms(ScoreHistogram):
    """Weight at each score of the rows that have a label and of those that do not: L histograms.

    With `joined` there is one, of all scores of all labels. Logits are kept as such.
    """

    joined: bool = False

    @property
    def schema(self) -> Schema:
        """Indicators beside scores of each label."""
        return Schema((_indicators(self.labels),), self.nan_policy)

    @property
    def keeps_logits(self) -> bool:
        """Whether scores are kept as logits."""
        return self.from_logits

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count the rows at their scores."""
        truth, scores = columns
        if self.joined:
            self.add([_joined(scores, truth, weight)], weight)
            return
        rows: list[Added] = [
            (np.ascontiguousarray(score), np.ascontiguousarray(true), weight, None)
            for score, true in zip(scores.T, truth.T, strict=True)
        ]
        self.add(rows, weight)


class LabelProbabilities(Statistic):
    """Keeps nothing: its schema checks that every score of a label is in [0, 1]."""

    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Indicators beside probabilities of each label."""
        return Schema((_indicators(self.labels, probabilities=True),), self.nan_policy)

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Keep nothing: the schema has checked the rows."""
