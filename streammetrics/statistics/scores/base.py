"""What all statistics of labels and scores share: their parameters and their schema."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.labels import KINDS
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.columns.scores import Scores
    from streammetrics.core.types import Array, Floats

_FIRST = 1 << 12  # rows among which there mostly are both classes


class ScoredStatistic(Statistic):
    """A statistic that reads a label and a score, or a score for each of the classes."""

    pos_label: ClassLabel | None = None
    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None

    matrix: ClassVar[bool] = False  # only scores (n, K) have a meaning

    @property
    @abstractmethod
    def scores(self) -> Scores:
        """What scores there may be."""

    def plain_binary(self, batch: Batch) -> tuple[Array, Floats] | None:
        """Return labels and scores of a batch where both are plain arrays that need no reading.

        Labels may still be others than 0 and 1, and scores nan.
        """
        if type(self).schema is not ScoredStatistic.schema:  # of other columns
            return None
        truth, score = batch.plain("y_true", "biu"), batch.plain("y_score", "f")
        if truth is None or score is None or score.dtype != np.float64 or batch.has(WEIGHT):
            return None
        if self.labels is not None or self.ignore_index is not None:
            return None
        return (truth, score) if self.pos_label in {None, 1} else None

    @staticmethod
    def facts_of(truth: Array) -> Facts:
        """Return the facts of such columns, of labels 0 and 1."""
        facts: Facts = {"labels": KINDS[truth.dtype.kind], "columns of scores": 0}
        if not truth[:_FIRST].all() or not truth.all():
            facts["negative label"] = 0
        return facts

    @property
    def schema(self) -> Schema:
        """A label and its score, or a score for each class."""
        scored = ScoredLabels(
            self.scores,
            self.pos_label,
            self.labels,
            matrix=self.matrix,
            ignore_index=self.ignore_index,
        )
        return Schema((scored,), self.nan_policy)
