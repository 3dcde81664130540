"""What all statistics of labels and scores share: their parameters and their schema."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel

if TYPE_CHECKING:
    from streammetrics.core.columns.scores import Scores


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
