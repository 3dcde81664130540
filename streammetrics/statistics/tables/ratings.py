"""How several raters judged items: sums over items by the number of their ratings."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.entries import Sums, Weights
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.types import Array, Bools, Floats, ReadColumn

_MOST = 1 << 20  # ratings of an item that fall to one category


@dataclass(frozen=True)
class WholeRatings(Condition):
    """Refuses items of which a count is no whole number, or which nobody rated."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check the counts."""
        counts = batch.numbers("ratings")
        counts = counts[:, None] if counts.ndim == 1 else counts
        title = batch.title("ratings")
        broken: Bools = (np.rint(counts) != counts).any(axis=1)
        reject_present(title, "holds what is no whole number", broken, missing, counts)
        unrated: Any = ~counts.any(axis=1)
        reject_present(title, "has no ratings", unrated, missing, counts)


class Items(NamedTuple):
    """Items with one number of ratings each: how many, their counts, and products of them."""

    ratings: int
    items: int
    counts: list[int]
    pairs: list[list[int]]


class RatingCounts(Statistic):
    """Sums of the counts (K,) of items, and of their products (K, K), by the number of ratings."""

    nan_policy: NanPolicy = "raise"

    held = LabelTable(items=Weights(whole=True), counts=Sums(), pairs=Sums(), inline=True)

    @property
    def schema(self) -> Schema:
        """Counts (n, K): how many raters put each item into each of the categories."""
        counts = Numbers("ratings", low=0.0, high=float(_MOST), wide=True)
        return Schema((counts,), self.nan_policy, "metrics of agreement", (WholeRatings(),))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the items."""
        counts = columns[0].reshape(len(columns[0]), -1).astype(np.int64)
        ratings, of, items = np.unique(counts.sum(axis=1), return_inverse=True, return_counts=True)
        width = counts.shape[1]
        sums = np.zeros((ratings.size, width), np.int64)
        np.add.at(sums, of, counts)
        # Few numbers of ratings differ, and for each of them products are one of matrices.
        products = [(rows := counts[of == place]).T @ rows for place in range(ratings.size)]
        columns_of = {
            "items": Amount.of_counts(items.astype(np.int64)),
            "counts": ExactSum.counts(sums),
            "pairs": ExactSum.counts(np.array(products).reshape(ratings.size, width * width)),
        }
        self.held = type(self).held.plus(self.held, LabelledEntries(ratings, columns_of))

    def check_fields(self) -> None:
        """Check that there are products of as many categories, and ratings of every item."""
        labels, columns = self.held
        width = columns["counts"].shape[1]
        whole = labels.dtype == np.int64 and columns["pairs"].shape[1] == width * width
        if not whole or any(sum(each.counts) != each.ratings * each.items for each in self.items()):
            raise StateFormatError("the sums are not those of any ratings")

    def items(self) -> list[Items]:
        """Return what there is of items by their number of ratings."""
        labels, columns = self.held
        found = []
        for place, ratings in enumerate(labels.tolist()):
            counts = _integers(columns["counts"][place])
            pairs = np.array(_integers(columns["pairs"][place]), object)
            products = pairs.reshape(len(counts), -1).tolist() if counts else []
            items = int(columns["items"].counts[place])
            found.append(Items(ratings, items, counts, products))
        return found


def _integers(sums: ExactSum) -> list[int]:
    values, exponent = sums.integers()
    unit = Fraction(2) ** exponent
    flat: Array = np.asarray(values, object).reshape(-1)
    return [int(value * unit) for value in flat]
