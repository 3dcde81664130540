"""Columns of scores, and the labels they belong to."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.columns.column import either
from streammetrics.core.columns.labels import (
    KINDS,
    LOGITS,
    check_allowed,
    check_numbering,
    ignored_rows,
    label_codes,
    label_column,
    label_facts,
)
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Facts, Field, reject, reject_present, shown
from streammetrics.core.counting import extent
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Array, Bools, ClassLabel, Columns, Floats, Places


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)) of each logit (n,), without overflow.

    >>> sigmoid(np.array([-np.inf, 0.0, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = elementary.exp(-np.abs(logits))
    probabilities: Floats = np.where(logits >= 0, 1.0, small)
    probabilities /= 1.0 + small
    return probabilities


def softmax(logits: Floats) -> Floats:
    """Return exp(z) / sum(exp(z)) of each row (n, K); the largest logit of a row must be finite.

    >>> softmax(np.array([[1000.0, 1000.0, -np.inf]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    with np.errstate(over="ignore"):  # a difference that overflows is a probability of 0
        shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities: Floats = elementary.exp(shifted, out=shifted)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def log_total(logits: Floats) -> tuple[Floats, Floats]:
    """Return log(sum(exp(z))) of each row (n, K) as two terms: its largest logit, and the rest.

    >>> log_total(np.array([[1000.0, 1000.0 - 40.0]]))
    (array([1000.]), array([4.24835426e-18]))
    """
    rows, best = np.arange(len(logits)), logits.argmax(axis=1)
    top = logits[rows, best]
    others = elementary.exp(logits - top[:, None])
    others[rows, best] = 0.0  # a term of 1 would swallow the digits of small ones; log1p adds it
    return top, elementary.log1p(others.sum(axis=1))


def softplus(logits: Floats) -> Floats:
    """Return log(1 + exp(z)) of each logit (n,), which is -log(sigmoid(-z))."""
    rest = elementary.exp(-np.abs(logits))
    elementary.log1p(rest, out=rest)
    rest += np.maximum(logits, 0.0)
    return rest


def log_odds(probability: float) -> float:
    """Return log(p / (1 - p)): a sigmoid is at least p if its logit is at least this value.

    >>> log_odds(0.5), log_odds(1.0)
    (0.0, inf)
    """
    if probability <= 0.0:
        return -math.inf
    if probability >= 1.0:
        return math.inf
    return float(elementary.log(probability) - elementary.log1p(-probability))


_CLOSE = 5e-7  # sums this close to 1 skip the exact check
_ROUNDED = 5e-3  # rounding error of a number with two decimals
_ROUNDING = (
    "probabilities that were rounded: pass them in full, or divided by their sum, "
    "p / p.sum(axis=1, keepdims=True)"
)


@dataclass(frozen=True)
class Scores(Numbers):
    """A column of scores: (n,) of the positive class, or with `wide` (n, K), one for each class.

    `use` says how scores are used, and therefore which are valid:

    - ``"order"``: compared with scores of other rows. (n,) may be any numbers. (n, K) must be
      probabilities, because scores of a class are comparable only if each row is normalized.
    - ``"rank"``: compared within a row. (n, K) may be any numbers. (n,) must be probabilities,
      because they are compared with the probability of the other class.
    - ``"probability"``: probabilities.
    - ``"logit"``: logits, used as they are; they must be finite.
    - ``"logits"``: logits, used as they are; infinite ones stand for probabilities of 0 and 1.
    - ``"margin"``: decision values on either side of 0; they and their squares must be finite.
    - ``"shape"``: only the number of columns matters; any numbers are valid.

    With `from_logits`, logits are converted to probabilities: by the sigmoid for (n,), by the
    softmax of each row for (n, K). (n,) scores used for their order are left as they are, since the
    sigmoid preserves it.
    """

    name: str = "y_score"
    ordered: bool = True  # `validate` checks them according to `use`
    use: Literal["order", "rank", "probability", "logit", "logits", "margin", "shape"] = "order"
    from_logits: bool = False

    @property
    def plain(self) -> Scores:
        """The same column, with any numbers and any use."""
        return Scores(self.name, wide=True, long=True)

    def whole(self, batch: Batch) -> Finished | None:
        """Return an array (n,) of floats if the use accepts any, or they are probabilities.

        Returns ``None`` otherwise, and for logits that need checking.
        """
        found = super().whole(batch)
        if found is None or self.use in {"shape", "order"}:
            return found
        numbers = batch.known[self.name]
        is_probability = self.use in {"rank", "probability"} and not self.from_logits
        return found if is_probability and 0 <= numbers.low <= numbers.high <= 1 else None

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Raise if the scores are invalid for their use."""
        wide = taken[0].ndim > 1
        if wide and not self.wide:
            raise InvalidBatchError(
                f"{batch.title(self.name)} has shape {taken[0].shape}; a threshold cuts one score "
                "a row: pass the column of the positive class, or without threshold= the matrix as "
                "y_pred"
            )
        super().validate(batch, taken, missing)
        if self.use in {"shape", "rank" if wide else "order"}:
            return
        if self.use in _LIMITS:
            self._check_logits(batch, missing, _LIMITS[self.use])
        elif self.from_logits or self.use == "logits":
            if wide:
                self._check_logits(batch, missing, math.inf)
        else:
            self._check_probabilities(batch, missing, wide)

    def _check_logits(self, batch: Batch, missing: Bools | None, limit: float) -> None:
        """Refuse logits beyond the limit; without a limit, rows whose largest logit is infinite."""
        low, high = batch.extent(self.name)
        if -limit <= low and high <= limit and abs(low) + abs(high) < math.inf:
            return
        values = batch.numbers(self.name)
        wrong = ~(np.abs(values) <= limit) if limit < math.inf else np.isinf(values.max(axis=1))
        of = "margin" if self.use == "margin" else "logit"
        what = f"is infinite or too large for a {of}"
        reject_present(batch.title(self.name), what, wrong, missing, values)

    def _check_probabilities(self, batch: Batch, missing: Bools | None, wide: bool) -> None:
        numbers, title = batch.numeric(self.name), batch.title(self.name)
        values = numbers.values
        if not (numbers.low >= 0 and numbers.high <= 1):
            wrong = ~((values >= 0) & (values <= 1))
            reject_present(title, "is outside [0, 1]", wrong, missing, values, advice=LOGITS)
        if wide and values.shape[1] > 1:
            off = np.abs(np.einsum("ij->i", values) - 1)  # the fastest row sum
            if not (off <= _CLOSE).all():
                wrong = ~_sums_to_one(values)
                sums = np.abs(values[wrong].sum(axis=1) - 1)
                rounded = bool((sums <= _ROUNDED * values.shape[1]).all())
                advice = _ROUNDING if rounded else LOGITS
                reject_present(title, "does not sum to 1", wrong, missing, values, advice=advice)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the scores of the kept rows."""
        (scores,) = taken
        if scores.ndim > 1 and scores.shape[1] == 0:
            raise InvalidBatchError(f"{batch.title(self.name)} has no columns")
        return (scores if rows is None else scores[rows],), {}

    def present(self, columns: Columns) -> Columns:
        """Return the scores, converted from logits to probabilities if needed."""
        (scores,) = columns
        if self.from_logits and self.use in {"order", "probability"}:
            if scores.ndim > 1:
                scores = softmax(scores)
            elif self.use == "probability":
                scores = sigmoid(scores)
        return (scores,)


# Half the largest float: differences of logits do not overflow. 2**510: nor do the squares of
# differences of margins.
_LIMITS = {"logit": float(np.finfo(np.float64).max) / 2, "margin": 2.0**510}


def _sums_to_one(rows: Floats) -> Bools:
    """Whether each row sums to 1, within the precision of the smallest type that holds its numbers.

    The tolerance is 1e-2 if they all fit float16 or bfloat16, 1e-4 if they fit float32, else 1e-6.
    It depends on the values only, so that a list and a tensor are treated alike.
    """
    off = np.abs(rows.sum(axis=1) - 1)
    with np.errstate(all="ignore"):
        single = rows.astype(np.float32)
        fits_single = (single == rows).all(axis=1)
        fits_half = (rows.astype(np.float16) == rows).all(axis=1)
    fits_brain = fits_single & (single.view(np.uint32) & 0xFFFF == 0).all(axis=1)
    limit = np.where(fits_single, 1e-4, 1e-6)
    close: Bools = off <= np.where(fits_half | fits_brain, 1e-2, limit)
    return close


class PairedLists(Field):
    """True and predicted lists (n,) of equal lengths, with one item per pixel or token."""

    names = ("y_true", "y_pred")
    unequal: ClassVar[str]  # error text of rows of other lengths than those of the column {true}

    def take(self, batch: Batch) -> Taken:
        """Return both columns, and the mask of rows where either is missing."""
        true, pred = map(batch.column, self.names)
        return (true, pred), either(true.nulls, pred.nulls)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the values of both columns, and that their lists have equal lengths."""
        true, pred = map(batch.title, self.names)
        for title, column in zip((true, pred), taken, strict=True):
            self.check(title, column, missing)
        what = self.unequal.format(true=true)
        reject_present(pred, what, taken[0].values != taken[1].values, missing)

    @abstractmethod
    def check(self, title: str, column: Nested, missing: Bools | None) -> None:
        """Raise if a row that is not missing has an invalid value."""

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the lists of the kept rows."""
        del batch
        kept = [column if rows is None else column[rows] for column in taken]
        return tuple(self.canonical(column) for column in kept), {}

    def canonical(self, column: Nested) -> Nested:
        """Return the lists in the form statistics use, without a mask of nulls."""
        return Nested.of(column.values, column.flat)


def reject_values(
    title: str,
    what: str,
    wrong: Bools,
    column: Nested,
    missing: Bools | None,
    values: Array | None = None,
    *,
    advice: str | Hint = "",
) -> None:
    """Raise if an item is wrong, given a mask (m,) or (m, d), in a row that is not missing.

    With `values`, the message shows the first wrong item of the row.
    """
    if not wrong.any():
        return
    each = wrong.any(axis=1) if wrong.ndim > 1 else wrong
    marked = np.zeros(len(column), np.bool_)
    marked[column.rows[each]] = True
    shown = None
    if values is not None:
        shown = np.zeros((len(column), *values.shape[1:]))
        bad = np.flatnonzero(each)[::-1]
        shown[column.rows[bad]] = values[bad]
    reject_present(title, what, marked, missing, shown, advice=advice)


_ORDER = "labels come first, scores second"


class Pair(NamedTuple):
    """The wording of messages about two kinds of rows."""

    parameter: str  # parameter that names the label of the first kind
    called: str
    third: Hint  # advice if there are rows of a third kind

    def which(self, label: object) -> Hint:
        """Return a hint to name the label of the first kind, with `label` as an example."""
        text = f"say which label is the {self.called} one, {{{self.parameter}}} or another"
        return Hint(text, **{self.parameter: label})


CLASSES = Pair(
    "pos_label",
    "positive",
    Hint("one score a row judges two classes: pass (n, K) scores, a column for each class"),
)
SAMPLES = Pair("current", "current", Hint("two samples are compared: leave out the rows of others"))


@dataclass(frozen=True)
class ScoredLabels(Field):
    """Labels with scores: (n,) of the positive class, or (n, K) of K classes.

    Without `pos_label`, the two classes of (n,) scores are 0 and 1, -1 and 1, or booleans. Without
    `labels`, the columns of an (n, K) matrix are the classes 0 to K - 1. `matrix` requires (n, K)
    scores. Rows whose label is `ignore_index` are left out.
    """

    scores: Scores
    pos_label: ClassLabel | None = None
    labels: tuple[ClassLabel, ...] | None = None
    truth: str = "y_true"
    matrix: bool = False
    ignore_index: int | None = None
    pair: Pair = CLASSES

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The label and the score."""
        return (self.truth, self.scores.name)

    @property
    def leader(self) -> str:  # type: ignore[override]  # read-only; the base class declares it
        """The label."""
        return self.truth

    @property
    def kinds(self) -> dict[str, Kind]:
        """A label and a number."""
        return {self.truth: "label", **self.scores.kinds}

    @property
    def plain(self) -> Field:
        """The same labels, with scores of any shape and use."""
        return replace(self, scores=self.scores.plain, matrix=False)

    def take(self, batch: Batch) -> Taken:
        """Return the labels and the scores."""
        column, missing = label_column(batch, self.truth, advice=_ORDER)
        scores, absent = self.scores.take(batch)
        if missing is None or absent is None:
            return (column, *scores), absent if missing is None else missing
        return (column, *scores), missing | absent

    def ignored(self, taken: Columns) -> Bools | None:
        """Return the mask of rows with the ignored label."""
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
        """Return integer labels of 0 and 1, and scores (n,), if all are valid, else ``None``."""
        if self.matrix or self.ignore_index is not None:
            return None
        if self.pos_label not in {None, 1} or self.labels is not None:
            return None
        scores, labels = self.scores.whole(batch), batch.bits(self.truth)
        if scores is None or labels is None:
            return None
        codes, ones, kind = labels
        facts = {"labels": KINDS[kind], "columns of scores": 0}
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
            codes, facts = binary_codes(
                batch, self.truth, column, self.pos_label, self.labels, rows, self.pair
            )
        else:
            codes, facts = self._classes(batch, column, width, rows)
        facts["columns of scores"] = width
        return (codes, scores), facts

    def may_be_classes(self, column: Column) -> bool:
        """Whether the labels could be the classes of the columns of (n, K) scores."""
        labels: Array = column.values if column.vocabulary is None else column.vocabulary
        fits = labels.dtype.kind in "iubU" or bool((np.rint(labels) == labels).all())
        if not (self.scores.wide and fits):
            return False
        if self.labels is not None:
            return bool(np.isin(labels, np.array(self.labels)).all())
        return column.vocabulary is None and bool((labels >= 0).all())

    def present(self, columns: Columns) -> Columns:
        """Return the codes, and the scores in the form the statistic uses."""
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


def binary_codes(
    batch: Batch,
    name: str,
    column: Column,
    pos_label: ClassLabel | None,
    allowed: tuple[ClassLabel, ...] | None,
    rows: Places | None,
    pair: Pair,
) -> tuple[NDArray[np.uint8], Facts]:
    """Return 1 for rows labelled `pos_label`, else 0; raise if there are several other labels.

    Without `pos_label`, the positive label is 1, and each label is checked on its own, so that the
    order of batches does not affect which labels are refused.
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
    """Whether the positive label is clearly 1: the labels are 0 and 1, or -1 and 1."""
    return set(labels) <= {0, 1} or set(labels) <= {-1, 1}


def _check_positive(
    title: str,
    column: Column,
    allowed: tuple[ClassLabel, ...] | None,
    rows: Places | None,
    pair: Pair,
) -> None:
    """Raise if it is unclear which of two labels is the positive one."""
    words = column.vocabulary
    if allowed is not None and not clear_pair(allowed):
        raise InvalidBatchError(
            f"{title} has labels={shown(allowed)}", title, hint=pair.which(allowed[-1])
        )
    values = column.values
    if not values.size:
        return
    if words is not None:
        raise InvalidBatchError(f"{title} holds strings", title, hint=pair.which(_example(column)))
    low, high = extent(values)
    if low < -1 or high > 1:
        wrong = (values < -1) | (values > 1)
        two = len(np.unique(values)) <= 2
        advice = pair.which(values.max().item()) if two else pair.third
        reject(title, "is neither 0, 1 nor -1", wrong, values, rows=rows, advice=advice)


def _example(column: Column) -> object:
    """Return one of the labels of a column."""
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
            f"{title} holds {facts['labels']}, but {pair.parameter} is {pos_label!r}",
            title,
            hint=pair.which(_example(column)),
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
                if len(np.unique(others)) <= 2:
                    hint = pair.which(_example(column))
                    absent = repr(pos_label).replace("{", "{{").replace("}", "}}")
                    advice = Hint(f"no label is {absent}: {hint.text}", **hint.parameters)
            reject(title, what, wrong, texts, rows=rows, advice=advice)
        facts["negative label"] = negative.item()
        if allowed is not None and facts["negative label"] not in allowed:
            reject(title, "is not one of the labels given", ~positive, texts, rows=rows)
    return positive.view(np.uint8), facts
