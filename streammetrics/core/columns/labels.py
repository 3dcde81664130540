"""Labels in: integers, booleans or strings, one kind per metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.batch import has_nan
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import Facts, Field, reject, shown
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.numbers import Numbers
    from streammetrics.core.columns.schema import Kind


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


KINDS = {"b": "booleans", "i": "integers", "u": "integers"}


def label_column(batch: Batch, name: str, *, matrix: bool = False) -> tuple[Column, Any]:
    """Return a column of labels, whole floats as integers, and the mask of missing ones."""
    column = batch.column(name)
    values = column.values
    missing: Any = column.nulls
    if values.ndim > 1:
        title = batch.title(name)
        if not matrix:
            raise InvalidBatchError(f"{title} has shape {values.shape}; one label a row is needed")
        scores = batch.numbers(name)
        if scores.shape[1] == 0:
            raise InvalidBatchError(f"{title} has no columns")
        batch.refuse_long(name, "the largest score of a row")
        if has_nan(scores):
            missing = np.isnan(scores).any(axis=1)
        return Column(np.argmax(scores, axis=1), None, True), missing
    if values.dtype.kind == "f":
        return _whole(values, batch.title(name), missing)
    return column, missing


def _whole(values: NDArray[Any], title: str, nulls: Any) -> tuple[Column, Any]:
    # Frameworks hand targets over as floats; 1.0 is the label 1, 0.5 is no label.
    absent = np.isnan(values)
    if nulls is not None:
        absent |= nulls
    whole = np.where(absent, 0, values)
    wrong = (np.rint(whole) != whole) | (np.abs(whole) >= 2.0**63)
    if wrong.any():
        reject(title, "is not a label (an integer, a boolean or a string)", wrong, values)
    return Column(whole.astype(np.int64), None, True), absent if absent.any() else None


def label_facts(column: Column, fact: str = "labels") -> Facts:
    """Return the kind of labels a column holds."""
    return {fact: "strings" if column.vocabulary is not None else KINDS[column.values.dtype.kind]}


@dataclass(frozen=True)
class Labels(Field):
    """A column of labels; with `matrix` also (n, K) scores, where the first largest wins."""

    name: str
    allowed: tuple[Any, ...] | None = None
    matrix: bool = False
    fact: str = "labels"  # columns with the same fact hold one kind of labels

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The one column."""
        return (self.name,)

    def take(self, batch: Batch) -> tuple[tuple[Any, ...], Any]:
        """Return the column of labels."""
        column, missing = label_column(batch, self.name, matrix=self.matrix)
        if self.matrix and batch.column(self.name).values.ndim > 1 and self.allowed is not None:
            column = self._named(batch, column)
        return (column,), missing

    def _named(self, batch: Batch, column: Column) -> Column:
        width, allowed = batch.column(self.name).values.shape[1], self.allowed or ()
        if width != len(allowed):
            raise InvalidBatchError(
                f"{batch.title(self.name)} has {width} columns for {len(allowed)} labels"
            )
        if isinstance(allowed[0], str):
            vocabulary, codes = np.unique(np.array(allowed), return_inverse=True)
            return Column(codes[column.values], None, True, vocabulary)
        return Column(np.array(allowed)[column.values], None, True)

    def finish(
        self, batch: Batch, taken: tuple[Any, ...], rows: NDArray[np.intp] | None
    ) -> tuple[tuple[Any, ...], Facts]:
        """Return the labels, all of them among the allowed ones."""
        (column,) = taken
        if rows is not None:
            column = column[rows]
        if self.allowed is not None:
            check_allowed(batch.title(self.name), column, self.allowed, rows)
        return (column,), label_facts(column, self.fact)


def check_allowed(
    title: str, column: Column, allowed: tuple[Any, ...], rows: NDArray[np.intp] | None
) -> None:
    """Raise where a label is not among the `allowed` ones."""
    kind = "strings" if isinstance(allowed[0], str) else "numbers"
    if (column.vocabulary is not None) != (kind == "strings"):
        raise InvalidBatchError(
            f"{title} holds {label_facts(column)['labels']}; the labels given are {kind}"
        )
    if column.vocabulary is not None:
        known = np.isin(column.vocabulary, np.array(allowed))
        wrong = None if known[np.unique(column.values)].all() else ~known[column.values]
        texts = column.vocabulary[column.values] if wrong is not None else None
    else:
        texts = column.values
        if allowed == tuple(range(len(allowed))) and _within(texts, len(allowed)):
            return
        wrong = ~np.isin(texts, np.array(allowed, dtype=np.int64))
    if wrong is not None and wrong.any():
        reject(title, "is not one of the labels given", wrong, texts, rows=rows)


def _within(values: NDArray[Any], size: int) -> bool:
    return bool(values.min() >= 0) and bool(values.max() < size)


def binary_codes(
    batch: Batch, name: str, column: Column, pos_label: Any, allowed: Any, rows: Any
) -> tuple[NDArray[np.uint8], Facts]:
    """Return 1 where the label is `pos_label`, else 0; one other label there may be."""
    values = column.values
    kind = values.dtype.kind
    codes: NDArray[np.uint8]
    if kind == "b" and pos_label in {0, 1}:
        codes = values.view(np.uint8)
        if not pos_label:
            codes = codes ^ np.uint8(1)
        negative: Any = 1 - int(pos_label)
    elif (
        pos_label == 1
        and kind == "i"
        and column.vocabulary is None
        # Every bit but the lowest is clear in all labels: they are 0 and 1.
        and 0 <= int(np.bitwise_or.reduce(values)) <= 1
    ):
        codes, negative = values.astype(np.uint8), 0
    else:
        facts = label_facts(column)
        return _binary_by_search(batch.title(name), column, pos_label, allowed, rows, facts)
    facts = {"labels": KINDS[kind]}
    if 0 in codes.tobytes() if codes.size < 4096 else not codes.all():
        facts["negative label"] = negative
        if allowed is not None and negative not in allowed:
            what = "is not one of the labels given"
            reject(batch.title(name), what, codes == 0, values, rows=rows)
    return codes, facts


def _binary_by_search(
    title: str, column: Column, pos_label: Any, allowed: Any, rows: Any, facts: Facts
) -> tuple[NDArray[np.uint8], Facts]:
    values = column.values
    text = column.vocabulary is not None
    if text != isinstance(pos_label, str):
        raise InvalidBatchError(
            f"{title} holds {facts['labels']}, but pos_label is {pos_label!r}; "
            "say which label is the positive one"
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
            reject(title, what, wrong, texts, rows=rows)
        facts["negative label"] = negative.item()
        if allowed is not None and facts["negative label"] not in allowed:
            reject(title, "is not one of the labels given", ~positive, texts, rows=rows)
    return positive.view(np.uint8), facts


@dataclass(frozen=True)
class ScoredLabels(Field):
    """Labels with a score each: (n,) of the positive class, or (n, K) of K classes.

    Without `labels` the columns of an (n, K) matrix are the classes 0 to K - 1. With `matrix`
    there have to be such.
    """

    scores: Numbers
    pos_label: Any = 1
    labels: tuple[Any, ...] | None = None
    truth: str = "y_true"
    matrix: bool = False

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The label and the score."""
        return (self.truth, self.scores.name)

    @property
    def kinds(self) -> dict[str, Kind]:
        """A label and a number."""
        return {self.truth: "label", **self.scores.kinds}

    def take(self, batch: Batch) -> tuple[tuple[Any, ...], NDArray[np.bool_] | None]:
        """Return the labels and the scores."""
        column, missing = label_column(batch, self.truth)
        scores, absent = self.scores.take(batch)
        if missing is None or absent is None:
            return (column, *scores), absent if missing is None else missing
        return (column, *scores), missing | absent

    def validate(self, batch: Batch, taken: tuple[Any, ...], missing: Any) -> None:
        """Check the shape and the domain of the scores."""
        if self.matrix and taken[-1].ndim == 1:
            raise InvalidBatchError(
                f"{batch.title(self.scores.name)} has one number a row; (n, K) scores are needed"
            )
        self.scores.validate(batch, taken[1:], missing)

    def finish(
        self, batch: Batch, taken: tuple[Any, ...], rows: NDArray[np.intp] | None
    ) -> tuple[tuple[Any, ...], Facts]:
        """Return codes 0 and 1 with (n,) scores, or codes below K with (n, K) scores."""
        column, scores = taken
        if rows is not None:
            column, scores = column[rows], scores[rows]
        width = 0 if scores.ndim == 1 else scores.shape[1]
        codes: NDArray[Any]
        if scores.ndim == 1:
            codes, facts = binary_codes(
                batch, self.truth, column, self.pos_label, self.labels, rows
            )
        elif width == 1:
            raise InvalidBatchError(
                f"{batch.title(self.scores.name)} has shape {scores.shape}; "
                "pass one column of scores as (n,)"
            )
        else:
            codes, facts = self._classes(batch, column, width, rows)
        facts["columns of scores"] = width
        return (codes, scores), facts

    def _classes(
        self, batch: Batch, column: Column, width: int, rows: Any
    ) -> tuple[NDArray[np.intp], Facts]:
        title = batch.title(self.truth)
        if self.labels is not None:
            if len(self.labels) != width:
                raise InvalidBatchError(
                    f"{batch.title(self.scores.name)} has {width} columns "
                    f"for {len(self.labels)} labels"
                )
            check_allowed(title, column, self.labels, rows)
            return label_codes(column, self.labels), label_facts(column)
        if column.vocabulary is not None:
            raise InvalidBatchError(
                f"{title} holds strings; say which label each column of "
                f"{batch.title(self.scores.name)} is for with labels=..."
            )
        if not _within(column.values, width):
            wrong = (column.values < 0) | (column.values >= width)
            what = f"is not the number of one of the {width} columns of scores"
            reject(title, what, wrong, column.values, rows=rows)
        return column.values.astype(np.intp), label_facts(column)


def label_codes(column: Column, labels: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the place of each row's label among `labels`, which hold all of them."""
    if column.vocabulary is None:
        return places_among(column.values, labels)
    codes: NDArray[np.intp] = places_among(column.vocabulary, labels)[column.values]
    return codes


def places_among(values: NDArray[Any], labels: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the place of each value among `labels`, in their order; 0 for one not among them."""
    ordered: NDArray[Any] = np.array(labels)
    order: NDArray[np.intp] = np.argsort(ordered)
    found = np.searchsorted(ordered[order], values)
    places: NDArray[np.intp] = order[np.minimum(found, len(labels) - 1)]
    return places


def one_kind(labels: Any) -> tuple[Any, ...]:
    """Return distinct labels of one kind as a tuple, booleans as the integers they are."""
    if not isinstance(labels, tuple):  # lists, arrays and ranges are tuples by now
        raise ValueError(f"labels={labels!r}: expected a sequence of labels")  # noqa: TRY004 - as for any parameter
    values = tuple(x.item() if isinstance(x, np.generic) else x for x in labels)
    values = tuple(int(x) if isinstance(x, bool) else x for x in values)
    if not values or len({type(x) for x in values}) > 1 or not isinstance(values[0], int | str):
        raise ValueError(f"labels={values!r}: expected integers, booleans or strings, of one kind")
    if len(set(values)) != len(values):
        raise ValueError(f"labels={values!r}: a label is given twice")
    return values
