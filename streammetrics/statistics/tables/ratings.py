"""How several raters judged items: sums over items by the number of their ratings."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import ADVICE, Condition, Schema, reject, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import added_at
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable, Sums, Weights
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Taken
    from streammetrics.core.types import Array, Bools, Columns, Floats, Places, ReadColumn

_RATINGS = "ratings of an item"
_MOST = 1 << 20  # ratings of an item that fall to one category
_CODES = 1 << 10  # categories that raters may name
_BITS = 20  # of a key: the number of ratings of an item, and each of two codes
_CELLS = 1 << 22  # pairs of codes that are made at once


@dataclass(frozen=True)
class WholeRatings(Condition):
    """Refuses items of which a number is not whole."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check the counts, or the codes."""
        numbers = batch.numbers("ratings")
        numbers = numbers[:, None] if numbers.ndim == 1 else numbers
        broken: Bools = ((np.rint(numbers) != numbers) & ~np.isnan(numbers)).any(axis=1)
        title = batch.title("ratings")
        reject_present(title, "holds numbers that are not whole", broken, missing, numbers)


@dataclass(frozen=True)
class CountColumns(Numbers):
    """Counts (n, K) of the ratings of each item; with `equal` all items have as many ratings."""

    equal: bool = False

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the counts, and the number of ratings that all rated items have."""
        (values,), facts = super().finish(batch, taken, rows)
        sums = values.reshape(len(values), -1).sum(axis=1)
        if self.equal and sums.any():
            first = sums[sums > 0][0]
            wrong = (sums != first) & (sums > 0)
            if wrong.any():
                what = f"adds up to another number than the {first:g} ratings of rows before"
                reject(
                    batch.title(self.name), what, wrong, values, rows=rows, advice=ADVICE[_RATINGS]
                )
            facts = {**facts, _RATINGS: int(first)}
        return (values,), facts


@dataclass(frozen=True)
class CodeColumns(Numbers):
    """The category that each of R raters put an item into, (n, R).

    With `partial`, nan where a rater did not rate an item; without, such an item is missing.
    """

    partial: bool = True

    def take(self, batch: Batch) -> Taken:
        """Return the codes, and the items that are missing."""
        codes, missing = super().take(batch)
        return codes, None if self.partial else missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the codes that are there."""
        values: Floats = taken[0]
        wrong = ~(np.isnan(values) | self._inside(values))
        if wrong.any():
            title = batch.title(self.name)
            reject(title, self._complaint(values, wrong), wrong, values, advice=_NUMBERED)


_NUMBERED = "categories are numbered from 0, as by np.unique(codes, return_inverse=True)"


class Items(NamedTuple):
    """Items with one number of ratings each: how many, their counts, and products of them."""

    ratings: int
    items: int
    counts: list[int]
    pairs: list[list[int]]
    values: list[int]  # the categories, in order


class RatingCounts(Statistic):
    """Sums of the counts (K,) of items, and of their products (K, K), by the number of ratings.

    With `equal` an item with another number of ratings than those before is refused. Items that
    nobody rated are left out.
    """

    nan_policy: NanPolicy = "raise"
    equal: bool = False

    held = LabelTable(items=Weights(whole=True), counts=Sums(), pairs=Sums(), inline=True)

    @property
    def schema(self) -> Schema:
        """Counts (n, K): how many raters put each item into each of the categories."""
        counts = CountColumns("ratings", 0.0, float(_MOST), wide=True, equal=self.equal)
        return Schema((counts,), self.nan_policy, "metrics of agreement", (WholeRatings(),))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the items."""
        counts = columns[0].reshape(len(columns[0]), -1).astype(np.int64)
        counts = counts[counts.any(axis=1)]
        if not counts.size:
            return
        ratings, of, items = np.unique(counts.sum(axis=1), return_inverse=True, return_counts=True)
        width = counts.shape[1]
        sums = added_at(of, counts, ratings.size)
        # Few numbers of ratings differ, and for each of them products are one of matrices.
        products = [(rows := counts[of == place]).T @ rows for place in range(ratings.size)]
        columns_of = {
            "items": WeightedCount.of_counts(items.astype(np.int64)),
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
            found.append(Items(ratings, items, counts, products, list(range(len(counts)))))
        return found


class RaterCodes(Statistic):
    """Sums of the products of the counts of every two categories, by the number of ratings.

    The key of a sum holds the number of ratings of an item, and two codes that it has. The counts
    are the sums of products over the other code, each divided by the number of ratings. With
    `partial` a rater may leave an item out.
    """

    nan_policy: NanPolicy = "raise"
    partial: bool = True

    held = LabelTable(pairs=Weights(whole=True), inline=True)

    @property
    def schema(self) -> Schema:
        """Codes (n, R): the category that each rater put each item into."""
        most = float(_CODES - 1)
        codes = CodeColumns("ratings", 0.0, most, wide=True, partial=self.partial)
        return Schema((codes,), self.nan_policy, "metrics of agreement", (WholeRatings(),))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the items."""
        codes = columns[0].reshape(len(columns[0]), -1)
        step = max(1, _CELLS // max(1, codes.shape[1]) ** 2)
        for first in range(0, len(codes), step):
            self._add(codes[first : first + step])

    def _add(self, codes: Floats) -> None:
        item, rater = np.nonzero(~np.isnan(codes))
        if not item.size:
            return
        cells = (item << _BITS) | codes[item, rater].astype(np.int64)
        cells, times = np.unique(cells, return_counts=True)
        item, code = cells >> _BITS, cells & _MASK
        ratings = np.bincount(item, times).astype(np.int64)
        size = np.bincount(item)  # categories of each item
        first = np.cumsum(size) - size
        # Each category of an item beside all of its categories.
        one = np.repeat(np.arange(item.size), size[item])
        start = np.cumsum(size[item]) - size[item]
        other = np.arange(one.size) - start[one] + first[item[one]]
        keys = (((ratings[item[one]] << _BITS) | code[one]) << _BITS) | code[other]
        keys, places = np.unique(keys, return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, places, times[one] * times[other])
        entries = LabelledEntries(keys, {"pairs": WeightedCount.of_counts(sums)})
        self.held = type(self).held.plus(self.held, entries)

    def check_fields(self) -> None:
        """Check that the products are those of items with so many ratings."""
        keys = self.held.labels
        whole = keys.dtype == np.int64 and (not keys.size or keys[0] >> 2 * _BITS > 0)
        codes = np.array([keys & _MASK, keys >> _BITS & _MASK]) if whole else np.zeros((2, 0))
        if not whole or (codes >= _CODES).any() or not all(map(_are_of_items, self.items())):
            raise StateFormatError("the products are not those of any ratings")

    def items(self) -> list[Items]:
        """Return what there is of items by their number of ratings."""
        keys, sums = self.held.labels, self.held.columns["pairs"].counts.tolist()
        one, other = keys >> _BITS & _MASK, keys & _MASK
        values = np.union1d(one, other)
        places = [np.searchsorted(values, side).tolist() for side in (one, other)]
        found: dict[int, list[list[int]]] = {}
        for ratings, row, column, amount in zip(
            (keys >> 2 * _BITS).tolist(), *places, sums, strict=True
        ):
            if ratings not in found:
                found[ratings] = [[0] * values.size for _ in values]
            found[ratings][row][column] = amount
        items = []
        for ratings, pairs in found.items():
            counts = [sum(row) // ratings for row in pairs]
            items.append(Items(ratings, sum(counts) // ratings, counts, pairs, values.tolist()))
        return items


_MASK = (1 << _BITS) - 1


def _are_of_items(each: Items) -> bool:
    """Whether products of counts are symmetric, and add up to those of whole items."""
    ratings, pairs = each.ratings, each.pairs
    size = range(len(pairs))
    even = all(pairs[a][b] == pairs[b][a] for a in size for b in range(a))
    sums = [sum(row) for row in pairs]
    return even and sum(sums) == each.items * ratings**2 and all(n % ratings == 0 for n in sums)


def _integers(sums: ExactSum) -> list[int]:
    values, exponent = sums.integers()
    unit = Fraction(2) ** exponent
    flat: Array = np.asarray(values, object).reshape(-1)
    return [int(value * unit) for value in flat]
