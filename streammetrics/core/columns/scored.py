"""Labels with their scores in: codes of the classes beside one score a row, or one a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.labels import (
    KINDS,
    check_allowed,
    check_numbering,
    ignored_rows,
    label_codes,
    label_column,
    label_facts,
)
from streammetrics.core.columns.schema import Facts, Field, reject, shown
from streammetrics.core.counting import extent
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.columns.scores import Scores
    from streammetrics.core.types import Array, Bools, ClassLabel, Columns, Places


_ORDER = "labels come first, scores second"


class Pair(NamedTuple):
    """How messages speak of the two kinds of rows."""

    parameter: str  # that says which label is the one kind's
    called: str
    third: str  # what to do where there are rows of a third kind


CLASSES = Pair(
    "pos_label",
    "positive",
    "one score a row judges two classes: pass (n, K) scores, a column for each class",
)


@dataclass(frozen=True)
class ScoredLabels(Field):
    """Labels with a score each: (n,) of the positive class, or (n, K) of K classes.

    Without `pos_label` the two classes of (n,) scores are 0 and 1, -1 and 1, or booleans. Without
    `labels` the columns of an (n, K) matrix are the classes 0 to K - 1. With `matrix` there have to
    be such. Rows whose label is `ignore_index` are as if absent.
    """

    scores: Scores
    pos_label: ClassLabel | None = None
    labels: tuple[ClassLabel, ...] | None = None
    truth: str = "y_true"
    matrix: bool = False
    ignore_index: int | None = None
    pair: Pair = CLASSES

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The label and the score."""
        return (self.truth, self.scores.name)

    @property
    def leader(self) -> str:  # type: ignore[override]  # read-only where the base only declares
        """The label."""
        return self.truth

    @property
    def kinds(self) -> dict[str, Kind]:
        """A label and a number."""
        return {self.truth: "label", **self.scores.kinds}

    @property
    def plain(self) -> Field:
        """The same labels, with scores of any shape, for whatever use."""
        return replace(self, scores=self.scores.plain, matrix=False)

    def take(self, batch: Batch) -> Taken:
        """Return the labels and the scores."""
        column, missing = label_column(batch, self.truth, advice=_ORDER)
        scores, absent = self.scores.take(batch)
        if missing is None or absent is None:
            return (column, *scores), absent if missing is None else missing
        return (column, *scores), missing | absent

    def ignored(self, taken: Columns) -> Bools | None:
        """Return the rows to be left out for their label."""
        return ignored_rows(taken[0], self.ignore_index)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the shape and the domain of the scores."""
        if self.matrix and taken[-1].ndim == 1:
            raise InvalidBatchError(
                f"{batch.title(self.scores.name)} has one number a row; (n, K) scores are needed, "
                "a column for each class"
            )
        shape = batch.grid(self.scores.name)
        if shape and self.ignore_index is None:
            labels, scores = batch.title(self.truth), batch.title(self.scores.name)
            raise InvalidBatchError(
                f"{labels} and {scores} both have shape {shape}: several labels a row take "
                "multilabel=True; rows of positions come as .reshape(-1), or with ignore_index=..."
            )
        self.scores.validate(batch, taken[1:], missing)

    def whole(self, batch: Batch) -> Finished | None:
        """Return integers that are 0 or 1, beside an array (n,) of scores that may be any."""
        labels = batch.integers(self.truth)
        if labels is None or self.matrix or self.ignore_index is not None:
            return None
        if self.pos_label not in {None, 1} or self.labels is not None:
            return None
        scores = self.scores.whole(batch)
        codes = np.empty(len(labels), np.uint8)
        ones = -1 if scores is None else kernels.bits(codes, labels)
        if scores is None or ones < 0:
            return None
        facts = {"labels": KINDS[labels.dtype.kind], "columns of scores": 0}
        if ones < len(codes):
            facts["negative label"] = 0
        return (codes, *scores[0]), facts

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return codes 0 and 1 with (n,) scores, or codes below K with (n, K) scores."""
        column = taken[0] if rows is None else taken[0][rows]
        (scores,), _ = self.scores.finish(batch, taken[1:], rows)
        width = 0 if scores.ndim == 1 else scores.shape[1]
        codes: Array
        if scores.ndim == 1:
            codes, facts = _binary_codes(
                batch, self.truth, column, self.pos_label, self.labels, rows, self.pair
            )
        else:
            codes, facts = self._classes(batch, column, width, rows)
        facts["columns of scores"] = width
        return (codes, scores), facts

    def may_be_classes(self, column: Column) -> bool:
        """Whether labels may be those of the columns of (n, K) scores."""
        labels: Array = column.values if column.vocabulary is None else column.vocabulary
        fits = labels.dtype.kind in "iubU" or bool((np.rint(labels) == labels).all())
        if not (self.scores.wide and fits):
            return False
        if self.labels is not None:
            return bool(np.isin(labels, np.array(self.labels)).all())
        return column.vocabulary is None and bool((labels >= 0).all())

    def present(self, columns: Columns) -> Columns:
        """Return codes, and scores as they are used."""
        return (columns[0], *self.scores.present(columns[1:]))

    def _classes(
        self, batch: Batch, column: Column, width: int, rows: Places | None
    ) -> tuple[Places, Facts]:
        if self.labels is not None:
            if len(self.labels) != width:
                raise InvalidBatchError(
                    f"{batch.title(self.scores.name)} has {width} columns "
                    f"for {len(self.labels)} labels"
                )
            check_allowed(batch.title(self.truth), column, self.labels, rows)
            return label_codes(column, self.labels), label_facts(column)
        check_numbering(batch, self.truth, self.scores.name, column, width, rows)
        return column.values.astype(np.intp), label_facts(column)


def _binary_codes(
    batch: Batch,
    name: str,
    column: Column,
    pos_label: ClassLabel | None,
    allowed: tuple[ClassLabel, ...] | None,
    rows: Places | None,
    pair: Pair,
) -> tuple[NDArray[np.uint8], Facts]:
    """Return 1 where the label is `pos_label`, else 0; one other label there may be.

    Without a `pos_label` it is 1, and each label is checked by itself, so that the order in which
    batches come does not decide what is refused.
    """
    positive = 1 if pos_label is None else pos_label
    values = column.values
    codes = np.empty(len(values), np.uint8)
    ones = -1
    if positive in {0, 1} and column.vocabulary is None and values.dtype.kind != "f":
        ones = kernels.bits(codes, np.ascontiguousarray(values))
    if pos_label is None and (ones < 0 or allowed is not None):
        _check_positive(batch.title(name), column, allowed, rows, pair)
    pos_label = positive
    if ones < 0:
        facts = label_facts(column)
        return _binary_by_search(batch.title(name), column, pos_label, allowed, rows, facts, pair)
    if not pos_label:
        codes ^= 1
        ones = len(codes) - ones
    facts = {"labels": KINDS[values.dtype.kind]}
    if ones < len(codes):
        negative = 1 - int(pos_label)
        facts["negative label"] = negative
        if allowed is not None and negative not in allowed:
            what = "is not one of the labels given"
            reject(batch.title(name), what, codes == 0, values, rows=rows)
    return codes, facts


def clear_pair(labels: tuple[ClassLabel, ...]) -> bool:
    """Whether 1 is the positive of these labels without a word: 0 and 1, or -1 and 1."""
    return set(labels) <= {0, 1} or set(labels) <= {-1, 1}


def _check_positive(
    title: str,
    column: Column,
    allowed: tuple[ClassLabel, ...] | None,
    rows: Places | None,
    pair: Pair,
) -> None:
    """Raise where labels do not say by themselves which of two is the positive one."""
    words = column.vocabulary
    if allowed is not None and not clear_pair(allowed):
        raise InvalidBatchError(
            f"{title} has labels={shown(allowed)}: say which is the {pair.called} one, "
            f"{pair.parameter}={allowed[-1]!r} or another",
            title,
        )
    values = column.values
    if not values.size:
        return
    if words is not None:
        raise InvalidBatchError(
            f"{title} holds strings: say which label is the {pair.called} one, "
            f"{pair.parameter}={_example(column)!r} or another",
            title,
        )
    low, high = extent(values)
    if low < -1 or high > 1:
        wrong = (values < -1) | (values > 1)
        advice = f"{pair.parameter}={values.max().item()!r} or another says which is {pair.called}"
        if len(np.unique(values)) > 2:
            advice = pair.third
        reject(title, "is neither 0, 1 nor -1", wrong, values, rows=rows, advice=advice)


def _example(column: Column) -> object:
    """Return one of the labels that a column holds."""
    if column.vocabulary is not None:
        return column.vocabulary[column.values.max()].item()
    return column.values.max().item()


def _binary_by_search(
    title: str,
    column: Column,
    pos_label: ClassLabel,
    allowed: tuple[ClassLabel, ...] | None,
    rows: Places | None,
    facts: Facts,
    pair: Pair,
) -> tuple[NDArray[np.uint8], Facts]:
    values = column.values
    text = column.vocabulary is not None
    if text != isinstance(pos_label, str):
        raise InvalidBatchError(
            f"{title} holds {facts['labels']}, but {pair.parameter} is {pos_label!r}: say which "
            f"label is the {pair.called} one, {pair.parameter}={_example(column)!r} or another",
            title,
        )
    if column.vocabulary is not None:
        found = np.flatnonzero(column.vocabulary == pos_label)
        positive = values == (found[0] if found.size else -1)
    else:
        positive = values == pos_label
    others = values[~positive]
    if others.size:
        texts = values if column.vocabulary is None else column.vocabulary[values]
        negative = others[0] if column.vocabulary is None else column.vocabulary[others[0]]
        wrong = ~positive & (values != others[0])
        if wrong.any():
            what = f"is a third label beside {pos_label!r} and {shown(negative)}"
            advice = pair.third
            if not positive.any():
                what = f"is neither {pos_label!r}, the {pair.called} label, nor {shown(negative)}"
                advice = (
                    f"no label is {pos_label!r}: {pair.parameter}={_example(column)!r} or another "
                    f"says which is {pair.called}"
                )
                if len(np.unique(others)) > 2:
                    advice = pair.third
            reject(title, what, wrong, texts, rows=rows, advice=advice)
        facts["negative label"] = negative.item()
        if allowed is not None and facts["negative label"] not in allowed:
            reject(title, "is not one of the labels given", ~positive, texts, rows=rows)
    return positive.view(np.uint8), facts
