"""Scores in: what they may be depends on what is made of them, and nothing is guessed of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.columns.logits import sigmoid, softmax
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished
    from streammetrics.core.types import Bools, Columns, Floats, Places


_CLOSE = 5e-7  # sums this near to 1 need no second look
_ROUNDED = 5e-3  # by which a number of two digits may be off
_ROUNDING = (
    "probabilities that were rounded: pass them in full, or divided by their sum, "
    "p / p.sum(axis=1, keepdims=True)"
)
_ADVICE = "pass probabilities, or say from_logits=True if these are logits"


@dataclass(frozen=True)
class Scores(Numbers):
    """A column of scores: (n,) of the positive class, or with `wide` (n, K), one for each class.

    `use` says what they are for:

    - ``"order"``: to be compared with those of other rows. (n,) may be any numbers; (n, K) must be
      probabilities, as the scores of one class only compare where each row is normalised.
    - ``"rank"``: to be compared within their row, so any numbers will do; (n,) must be
      probabilities, which are compared with those of the other class.
    - ``"probability"``: probabilities.
    - ``"logit"``: logits, which stay such; finite in any case.
    - ``"logits"``: logits, which stay such; infinite ones stand for probabilities of 0 and 1.
    - ``"margin"``: decision values, on either side of 0; finite, and so are their squares.
    - ``"shape"``: only their number of columns counts, so any numbers will do.

    With `from_logits` probabilities are made of logits, the sigmoid of each or the softmax of each
    row; (n,) scores of which only the order matters stay what they are, as the order does.
    """

    name: str = "y_score"
    ordered: bool = True  # what is checked of them is below
    use: Literal["order", "rank", "probability", "logit", "logits", "margin", "shape"] = "order"
    from_logits: bool = False

    @property
    def plain(self) -> Scores:
        """The same column, of any numbers, for whatever use."""
        return Scores(self.name, wide=True, long=True)

    def whole(self, batch: Batch) -> Finished | None:
        """Return an array (n,) of floats that are probabilities, or any of which the order counts.

        Logits are looked at apart.
        """
        found = super().whole(batch)
        if found is None or self.use in {"shape", "order"}:
            return found
        numbers = batch.known[self.name]
        is_probability = self.use in {"rank", "probability"} and not self.from_logits
        return found if is_probability and 0 <= numbers.low <= numbers.high <= 1 else None

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that they are what they are used as."""
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
        """Refuse logits beyond the limit; without one, rows of which the largest is infinite."""
        low, high = batch.extent(self.name)
        if -limit <= low and high <= limit and abs(low) + abs(high) < math.inf:
            return
        values = batch.numbers(self.name)
        wrong = ~(np.abs(values) <= limit) if limit < math.inf else np.isinf(values.max(axis=1))
        of = "margin" if self.use == "margin" else "logit"
        self._reject(batch, f"is infinite or too large for a {of}", wrong, missing, "")

    def _check_probabilities(self, batch: Batch, missing: Bools | None, wide: bool) -> None:
        low, high = batch.extent(self.name)
        values = batch.numbers(self.name)
        if not (low >= 0 and high <= 1):
            wrong = ~((values >= 0) & (values <= 1))
            self._reject(batch, "is outside [0, 1]", wrong, missing, _ADVICE)
        if wide and values.shape[1] > 1:
            off = np.abs(np.einsum("ij->i", values) - 1)  # the fastest sum of rows
            if not (off <= _CLOSE).all():
                wrong = ~_sums_to_one(values)
                sums = np.abs(values[wrong].sum(axis=1) - 1)
                rounded = bool((sums <= _ROUNDED * values.shape[1]).all())
                advice = _ROUNDING if rounded else _ADVICE
                self._reject(batch, "does not sum to 1", wrong, missing, advice)

    def _reject(
        self, batch: Batch, what: str, wrong: Bools, missing: Bools | None, advice: str
    ) -> None:
        if missing is not None:
            wrong = wrong & ~missing.reshape(-1, *[1] * (wrong.ndim - 1))
        if wrong.any():
            reject(batch.title(self.name), what, wrong, batch.numbers(self.name), advice=advice)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the scores of the kept rows."""
        (scores,) = taken
        if scores.ndim > 1 and scores.shape[1] == 0:
            raise InvalidBatchError(f"{batch.title(self.name)} has no columns")
        return (scores if rows is None else scores[rows],), {}

    def present(self, columns: Columns) -> Columns:
        """Return the scores as they are, or as the probabilities that they are the logits of."""
        (scores,) = columns
        if self.from_logits and self.use in {"order", "probability"}:
            if scores.ndim > 1:
                scores = softmax(scores)
            elif self.use == "probability":
                scores = sigmoid(scores)
        return (scores,)


# Differences of such logits do not overflow, nor do the squares of differences of such margins.
_LIMITS = {"logit": float(np.finfo(np.float64).max) / 2, "margin": 2.0**510}


def _sums_to_one(rows: Floats) -> Bools:
    """Whether each row sums to 1, up to what the type that its numbers fit can be off by.

    1e-6, or 1e-4 where all of them fit float32, or 1e-2 where they fit float16 or bfloat16: a
    row is judged by its numbers alone, so that it may come in a list as well as in a tensor.
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
