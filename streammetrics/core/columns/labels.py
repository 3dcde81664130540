"""Columns of labels: one per row, or indicators of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import Facts, Field, reject, reject_present, shown
from streammetrics.core.constraints import Satisfies
from streammetrics.core.counting import extent
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.types import ClassLabel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Array, Bools, Columns, Ints, Places

    Marks = NDArray[np.uint8]


LOGITS = Hint("pass probabilities, or say {from_logits} if these are logits", from_logits=True)
_CUT = Hint("to cut scores, pass {threshold}; numbers are for regression", threshold=0.5)
A_LABEL = "an integer, a boolean or a string"
_BEYOND = 1 << 63  # labels are stored as int64
KINDS = {"b": "booleans", "i": "integers", "u": "integers"}


def label_column(
    batch: Batch, name: str, *, matrix: bool = False, advice: str | Hint = ""
) -> tuple[Column, Bools | None]:
    """Return a column of labels and the mask of missing ones; whole floats become integers.

    With `matrix`, the label of a row of (n, K) scores is the index of its largest score. `advice`
    is appended to the error about numbers that are not labels.
    """
    column = batch.column(name)
    values = column.values
    missing = column.nulls
    if values.ndim > 1:
        title = batch.title(name)
        if not matrix:
            raise InvalidBatchError(
                f"{title} has shape {values.shape}; one label a row is needed", title
            )
        scores = batch.numbers(name)
        if scores.shape[1] == 0:
            raise InvalidBatchError(f"{title} has no columns")
        batch.refuse_long(name, "the largest score of a row")
        low, _ = batch.extent(name)
        if low != low:  # noqa: PLR0124 - tests for NaN
            missing = np.logical_or.reduce(np.isnan(scores), axis=1)
        return Column(np.argmax(scores, axis=1), None, True), missing
    if values.dtype == np.uint64:
        wrong = values >= np.uint64(2**63)
        what = "is beyond 64 signed bits"
        reject(batch.title(name), what, wrong, values, advice="pass such labels and ids as strings")
    if values.dtype.kind == "f":
        # Frameworks pass targets as floats: 1.0 is the label 1, while 0.5 is not a label.
        what = f"is not a label ({A_LABEL})"
        whole, missing = as_integers(values, missing, batch.title(name), what, advice)
        return Column(whole, None, True), missing
    return column, missing


def flat(column: Column, title: str) -> Column:
    """Return a column with one value a row as (n,)."""
    if column.values.ndim > 1:
        if column.values.shape[1:] != (1,):
            shape = column.values.shape
            raise InvalidBatchError(f"{title} has shape {shape}; a key is one value a row")
        nulls = None if column.nulls is None else column.nulls.reshape(-1)
        return Column(column.values.reshape(-1), nulls, column.owned, column.vocabulary)
    return column


def as_integers(
    values: Array, nulls: Bools | None, title: str, what: str, advice: str | Hint = ""
) -> tuple[Ints, Bools | None]:
    """Return floats as integers with a mask of missing values; raise if a value is not whole."""
    values = values.astype(np.float64, copy=False)  # 2**63 overflows float16
    missing = np.isnan(values)
    if nulls is not None:
        missing |= nulls
    whole = np.where(missing, 0, values)
    wrong = (np.rint(whole) != whole) | (np.abs(whole) >= 2.0**63)
    if wrong.any():
        reject(title, what, wrong, values, advice=advice)
    return whole.astype(np.int64), missing if missing.any() else None


def ignored_rows(column: Column, ignore_index: int | None) -> Bools | None:
    """Return the mask of rows whose label is `ignore_index`; ``None`` if there are none."""
    if ignore_index is None or column.vocabulary is not None:
        return None
    mask: Bools = column.values == ignore_index
    return mask if mask.any() else None


def label_facts(column: Column, fact: str = "labels") -> Facts:
    """Return the kind of the labels of a column, as a fact."""
    return {fact: "strings" if column.vocabulary is not None else KINDS[column.values.dtype.kind]}


@dataclass(frozen=True)
class Labels(Field):
    """A column of labels; with `matrix` also (n, K) scores, whose first largest is the label."""

    name: str
    allowed: tuple[ClassLabel, ...] | None = None
    matrix: bool = False
    fact: str = "labels"  # columns with the same fact must hold the same kind of labels
    ignore_index: int | None = None  # rows with this label are left out
    leader: str = ""  # own name if a row may have several labels
    truth: str = ""  # true labels: without `allowed`, column numbers of the scores
    others: bool = False  # whether labels of the same kind outside `allowed` are accepted

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The column."""
        return (self.name,)

    def take(self, batch: Batch) -> Taken:
        """Return the column of labels."""
        advice = _CUT if self.matrix else ""
        column, missing = label_column(batch, self.name, matrix=self.matrix, advice=advice)
        if self.matrix and self.allowed is not None and batch.column(self.name).values.ndim > 1:
            column = self._named(batch, column)
        return (column,), missing

    def ignored(self, taken: Columns) -> Bools | None:
        """Return the mask of rows with the ignored label."""
        return ignored_rows(taken[0], self.ignore_index)

    def _named(self, batch: Batch, column: Column) -> Column:
        width, allowed = batch.column(self.name).values.shape[1], self.allowed or ()
        if width != len(allowed):
            raise InvalidBatchError(
                f"{batch.title(self.name)} has {width} columns for {len(allowed)} labels, "
                f"labels={shown(allowed)}"
            )
        if isinstance(allowed[0], str):
            vocabulary, codes = np.unique(np.array(allowed), return_inverse=True)
            return Column(codes[column.values], None, True, vocabulary)
        return Column(np.array(allowed)[column.values], None, True)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the labels after checking them against `allowed`, or against the score columns."""
        (column,) = taken
        if rows is not None:
            column = column[rows]
        if self.allowed is not None and self.others:
            check_kind(batch.title(self.name), column, self.allowed)
        elif self.allowed is not None:
            check_allowed(batch.title(self.name), column, self.allowed, rows)
        elif self.matrix and (shape := batch.column(self.name).values.shape)[1:]:
            truth, _ = label_column(batch, self.truth)
            kept = truth if rows is None else truth[rows]
            check_numbering(batch, self.truth, self.name, kept, shape[1], rows)
        return (column,), label_facts(column, self.fact)


def check_kind(title: str, column: Column, allowed: tuple[object, ...]) -> None:
    """Raise if the labels and the `allowed` ones are not both strings or both numbers."""
    kind = "strings" if isinstance(allowed[0], str) else "numbers"
    if (column.vocabulary is not None) != (kind == "strings"):
        raise InvalidBatchError(
            f"{title} holds {label_facts(column)['labels']}; the labels given are {kind}: "
            f"labels={shown(allowed)}"
        )


def check_allowed(
    title: str, column: Column, allowed: tuple[object, ...], rows: Places | None
) -> None:
    """Raise if a label is not in `allowed`."""
    check_kind(title, column, allowed)
    if column.vocabulary is not None:
        known = np.isin(column.vocabulary, np.array(allowed))
        wrong = None if known[np.unique(column.values)].all() else ~known[column.values]
        texts = column.vocabulary[column.values] if wrong is not None else None
    else:
        texts = column.values
        if allowed == tuple(range(len(allowed))) and within(texts, len(allowed)):
            return
        wrong = ~np.isin(texts, np.array(allowed, dtype=np.int64))
    if wrong is not None and wrong.any():
        advice = f"labels={shown(allowed)}"
        reject(title, "is not one of the labels given", wrong, texts, rows=rows, advice=advice)


def check_numbering(
    batch: Batch, name: str, scores: str, column: Column, width: int, rows: Places | None
) -> None:
    """Raise if a label is not a column number of the (n, K) scores."""
    title = batch.title(name)
    if column.vocabulary is not None:
        raise InvalidBatchError(
            f"{title} holds strings; say which label each column of {batch.title(scores)} is for",
            hint=Hint("with {labels} in their order", labels=[...]),
        )
    values = column.values
    if not within(values, width):
        wrong = (values < 0) | (values >= width)
        what = f"is not the number of one of the {width} columns of scores"
        advice = Hint("{labels} says which class each column is for", labels=[...])
        reject(title, what, wrong, values, rows=rows, advice=advice)


def within(values: Array, size: int) -> bool:
    """Whether all values lie in 0 to size - 1."""
    low, high = extent(values)
    return low >= 0 and high < size


def label_codes(column: Column, labels: tuple[object, ...]) -> Places:
    """Return the index of each row's label in `labels`, which must contain all of them."""
    if column.vocabulary is None:
        return places_among(column.values, labels)
    return places_among(column.vocabulary, labels)[column.values]


def places_among(values: Array, labels: tuple[object, ...]) -> Places:
    """Return the index of each value in `labels`; unspecified for values that are not in it."""
    ordered: Array = np.array(labels)
    order: Places = np.argsort(ordered)
    found = np.searchsorted(ordered[order], values)
    return order[np.minimum(found, len(labels) - 1)]


def places_or_last(values: Array, labels: tuple[object, ...]) -> Places:
    """Return the index of each value in `labels`, and ``len(labels)`` for one that is not in it."""
    places = places_among(values, labels)
    known = np.array(labels)[places] == values
    return np.where(known, places, len(labels))


def is_label(value: object) -> bool:
    """Whether a value can be a label: any string, and any whole number."""
    return not isinstance(value, float) or value.is_integer()


Label = Annotated[ClassLabel, Satisfies(is_label, A_LABEL)]
"""A parameter that is a class label."""


def one_kind(labels: object, ignore_index: int | None = None) -> tuple[ClassLabel, ...] | None:
    """Validate labels and return them as a tuple of integers or of strings.

    Booleans and whole floats become integers. ``None``, which accepts any label, stays ``None``.
    """
    if labels is None:
        return None
    if not isinstance(labels, tuple):  # lists, arrays and ranges are already tuples
        raise ValueError(f"labels={labels!r}: expected a sequence of labels")  # noqa: TRY004 - parameters raise ValueError
    values = tuple(x.item() if isinstance(x, np.generic) else x for x in labels)
    values = tuple(
        int(x) if isinstance(x, bool) or (isinstance(x, float) and x.is_integer()) else x
        for x in values
    )
    if not values or len({type(x) for x in values}) > 1 or not isinstance(values[0], int | str):
        raise ValueError(f"labels={values!r}: expected integers, booleans or strings, of one kind")
    if isinstance(values[0], int) and not -_BEYOND <= min(values) <= max(values) < _BEYOND:
        raise ValueError(f"labels={values!r}: expected integers of 64 bits, from -2**63 to 2**63-1")
    if len(set(values)) != len(values):
        raise ValueError(f"labels={values!r}: a label is given twice")
    if ignore_index in values:
        raise ValueError(f"ignore_index={ignore_index!r} is one of labels={values!r}: drop either")
    return values


_INDICATORS = "for one label a row drop {multilabel}"


UNKNOWN = 2  # beside the indicators 0 and 1


@dataclass(frozen=True)
class Indicators(Field):
    """True labels as indicators (n, L) of 0 and 1, and predicted indicators or scores.

    With `labels`, L is their number, and rows may also be sets of labels. Scores may be any
    numbers, or with `probabilities` numbers in [0, 1].
    """

    second: str = "y_pred"
    scores: bool = False
    labels: tuple[ClassLabel, ...] | None = None
    width: int = 0  # number of labels; 0 if unknown
    probabilities: bool = False
    ignore_index: int | None = None  # of true labels that are not known, which become `UNKNOWN`

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The true labels, and the predictions or scores."""
        return ("y_true", self.second)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Labels, then labels or numbers."""
        return {"y_true": "label", self.second: "number" if self.scores else "label"}

    @property
    def sets(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The columns that may hold sets of labels."""
        return self.names[:1] if self.scores else self.names

    def take(self, batch: Batch) -> Taken:
        """Return both matrices and the mask of rows with a missing value."""
        taken, missing = [], None
        for name in self.names:
            column = batch.column(name)
            values, absent = self._matrix(batch, name, column)
            missing = either(missing, absent)
            taken.append(values)
        if taken[0].shape != taken[1].shape and any(values.size for values in taken):
            title, other = map(batch.title, self.names)
            raise InvalidBatchError(
                f"{other} has shape {taken[1].shape}, and {title} has {taken[0].shape}: both have "
                "a column for each label",
                hint=Hint(_INDICATORS, multilabel=True),
            )
        return tuple(taken), missing

    def _matrix(self, batch: Batch, name: str, column: Column) -> tuple[Any, Any]:
        title = batch.title(name)
        if column.vocabulary is not None:
            raise InvalidBatchError(
                f"{title} holds text",
                title,
                hint=Hint(
                    "pass indicators (n, L), or sets of labels and {labels} that says which there "
                    f"are; {_INDICATORS}",
                    labels=[...],
                    multilabel=True,
                ),
            )
        if self.scores and name == self.second:
            values = batch.numbers(name)
            low, _ = batch.extent(name)
            missing = None if low == low else np.isnan(values)  # noqa: PLR0124 - tests for NaN
        else:
            values, missing = column.values, column.nulls
            if values.dtype.kind == "f" and (absent := np.isnan(values)).any():
                missing = either(missing, absent)
        if values.ndim == 1 and (self.width == 1 or not values.size):
            # By now (n, 1) is (n,), and an empty list has no columns.
            values = values.reshape(len(values), self.width)
        if values.ndim != 2 or (self.width and values.shape[1] != self.width):
            found = "one number a row" if values.ndim == 1 else f"shape {values.shape}"
            wanted = f"(n, {self.width or 'L'}), a column for each label"
            hint = Hint(_INDICATORS, multilabel=True)
            raise InvalidBatchError(f"{title} has {found}, not {wanted}", title, hint=hint)
        if missing is None:
            return values, None
        return values, missing.reshape(len(values), -1).any(axis=1)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that indicators are 0 or 1, and that scores are in range."""
        if self.scores:
            batch.refuse_long(self.second, "what is computed here")
        for name, values in zip(self.names, taken, strict=True):
            if not (self.scores and name == self.second):
                self._check_marks(batch, name, values, missing)
        if self.probabilities:
            low, high = batch.extent(self.second)
            if not (low >= 0 and high <= 1):
                wrong = ~((taken[1] >= 0) & (taken[1] <= 1))
                title, what = batch.title(self.second), "is outside [0, 1]"
                reject_present(title, what, wrong, missing, taken[1], advice=LOGITS)

    def _check_marks(self, batch: Batch, name: str, values: Array, missing: Bools | None) -> None:
        if values.dtype.kind == "b" or not values.size:
            return
        if values.dtype.kind in "iu":
            low, high = values.min(), values.max()
            if low >= 0 and high <= 1:
                return
        wrong = (values != 0) & (values != 1)
        if name == "y_true" and self.ignore_index is not None:
            wrong &= values != self.ignore_index
        hint = Hint(
            "an indicator is 0 or 1: scores take a threshold, as {threshold}, and classes a column "
            "of one label",
            threshold=0.5,
        )
        title = batch.title(name)
        reject_present(title, "is neither 0 nor 1", wrong, missing, values, advice=hint)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the kept rows: indicators as uint8, scores as float64."""
        truth, second = (values if rows is None else values[rows] for values in taken)
        if truth.shape[1] == 0 and len(truth):
            raise InvalidBatchError(f"{batch.title('y_true')} has no columns")
        judged = second if self.scores else _marks(second)
        facts = {"columns of labels": truth.shape[1]} if len(truth) else {}
        if self.ignore_index is not None:
            truth = np.where(truth == self.ignore_index, UNKNOWN, truth)
        return (_marks(truth), judged), facts

    @property
    def plain(self) -> Field:
        """The same columns, with scores of any value."""
        width, unknown = self.width, self.ignore_index
        return Indicators(self.second, self.scores, self.labels, width, ignore_index=unknown)


def _marks(values: Array) -> Marks:
    """Return zeros and ones as a C-contiguous uint8 array."""
    if values.dtype.kind == "b":
        return np.ascontiguousarray(values).view(np.uint8)
    return np.ascontiguousarray(values.astype(np.uint8, copy=False))
