"""Spans of text marked by tags of tokens, such as named entities, as seqeval counts them."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.metrics.averages import ZeroDivision, lone_doubt, mean_of_classes
from streammetrics.metrics.families import CORPUS
from streammetrics.statistics.texts.spans import SpanCounts
from streammetrics.statistics.texts.tags import Scheme  # noqa: TC001 - of a parameter

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Ints

__all__ = ["SpanF1", "SpanPrecision", "SpanRecall"]


class SpanMetric(Metric[float | Floats]):
    """Base of the ratios of spans; a predicted span is right if a true one has its tokens and type.

    A row is a sentence, given as a list with one tag per token.

    Args:
        average: ``"micro"``: the spans of all types are added first. ``"macro"``: the mean of the
            types' values; ``"weighted"``: the mean weighted by true spans. ``None``: an array of
            the types, sorted.
        scheme: The tagging scheme: ``"IOB1"``, ``"IOB2"``, ``"IOE1"``, ``"IOE2"``, ``"IOBES"`` or
            ``"BILOU"``. Spans are then read strictly by its rules (seqeval's strict mode), and
            other tags raise. ``None``: any scheme, read leniently as by the CoNLL evaluation
            (seqeval's default), where a change of type always starts a new span.
        suffix: Whether the type comes first: ``PER-B`` instead of ``B-PER``.
        zero_division: The value of 0/0. ``None``: ``nan`` for a single value, 0 in an average, with
            a warning. A number is used as it is, also where there are no spans at all; an explicit
            ``nan`` leaves the type out of averages.
        nan_policy: ``"raise"``, or ``"omit"``: sentences with a missing tag are left out.

    Memory and cost: about 50 bytes per type; about 1 µs per token.
    """

    _formula = ("readout", "_parts")
    _facts = (*Metric._facts, "_judged")
    family = CORPUS

    average: Literal["micro", "macro", "weighted"] | None = "micro"
    scheme: Scheme | None = None
    suffix: bool = False
    zero_division: ZeroDivision = None
    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of spans."""
        counts = SpanCounts(scheme=self.scheme, suffix=self.suffix, nan_policy=self.nan_policy)
        return (counts,)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> Self:
        """Add a batch of sentences: the true and the predicted tags of each, n lists of strings.

        Raises:
            InvalidBatchError: A sentence has different numbers of true and predicted tags, or a tag
                that the scheme does not have; the state is unchanged.
        """
        return self.feed({"y_true": y_true, "y_pred": y_pred})

    def readout(self, held: SpanCounts) -> float | Floats:
        """Return the ratio as configured."""
        value: float | Floats = self._of_counts(held)[0]
        return value

    def _judged(self, *statistics: Any) -> tuple[Any, str]:
        value, doubt = self._of_counts(*statistics)
        return value, doubt or self._why_nan(value, *statistics)

    def _lacking(self, held: SpanCounts) -> str:
        true, pred, _ = held.table()[1].sum(axis=0).tolist()
        lacks = {"true": true, "predicted": pred}
        none = " or ".join(side for side, count in lacks.items() if not count)
        return f"there are no {none} spans (zero_division=0 makes it 0)"

    def _of_counts(self, held: SpanCounts) -> tuple[Any, str]:
        labels, table = held.table()
        if self.average == "micro" or not (labels or self.average is None):
            value = float(self._ratios(table.sum(axis=0, keepdims=True))[0])
            return value, ""
        values = self._ratios(table)
        if self.average is None:
            return LabelledArray.of(values, labels), lone_doubt(labels, values)
        weight = (
            table[:, 0].astype(np.float64) if self.average == "weighted" else np.ones(len(labels))
        )
        seen = np.ones(len(labels), np.bool_)
        mean = mean_of_classes(values, weight, lambda: seen, labels, self.zero_division)
        return mean.value, mean.doubt

    def _ratios(self, table: Ints) -> Floats:
        """Return the ratio for each row of numbers of true, predicted and right spans."""
        above, below = self._parts(*table.astype(np.float64).T)
        empty = math.nan if self.zero_division is None else self.zero_division
        ratios: Floats = np.full(below.shape, empty)
        return np.divide(above, below, out=ratios, where=below > 0)

    @abstractmethod
    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the numerator and the denominator."""


class SpanF1(SpanMetric):
    """Span F1: the harmonic mean of span precision and span recall.

    Formula: 2 b / (t + p), with t true and p predicted spans, of which b are both.

    Parameters are those of `SpanMetric`.

    Reference: Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 shared task", CoNLL
    2003; ``seqeval.metrics.f1_score``, with ``mode="strict"`` where there is a scheme.

    Example:
        >>> import streammetrics as sm
        >>> true = [["O", "O", "B-MISC", "I-MISC"], ["B-PER", "I-PER", "O"]]
        >>> pred = [["O", "B-MISC", "I-MISC", "I-MISC"], ["B-PER", "I-PER", "O"]]
        >>> sm.SpanF1().update(true, pred).compute()
        0.5
    """

    higher_is_better = True

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return twice the right spans, and all true and predicted ones."""
        return 2 * both, true + pred


class SpanPrecision(SpanMetric):
    """Span precision: the share of predicted spans that are true.

    Formula: b / p, with b of p predicted spans true.

    Parameters are those of `SpanMetric`.

    Reference: ``seqeval.metrics.precision_score``, with ``mode="strict"`` where there is a scheme.

    Example:
        >>> import streammetrics as sm
        >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> sm.SpanPrecision(scheme="IOB2").update(true, [["B-PER", "I-PER", "O", "O"]]).compute()
        1.0
    """

    higher_is_better = True

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the right spans, and the predicted ones."""
        del true
        return both, pred


class SpanRecall(SpanMetric):
    """Span recall: the share of true spans that are predicted.

    Formula: b / t, with b of t true spans predicted.

    Parameters are those of `SpanMetric`.

    Reference: ``seqeval.metrics.recall_score``, with ``mode="strict"`` where there is a scheme.

    Example:
        >>> import streammetrics as sm
        >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> sm.SpanRecall(scheme="IOB2").update(true, [["B-PER", "I-PER", "O", "O"]]).compute()
        0.5
    """

    higher_is_better = True

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the right spans, and the true ones."""
        del pred
        return both, true
