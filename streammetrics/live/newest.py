"""The newest rows one by one: by time and id, and where there is no id by their values.

Which rows are the newest n is a matter of the rows, so any order and any merge tree ends with the
same ones. They are kept in columns; old ones leave now and then, many at a time, and rows are put
in order when they are read.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import Column, concatenate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Ints

_SLACK = 1024  # rows beyond twice those that are kept

Form = tuple[tuple[str, str], ...]  # the columns of rows, and of what type each is


class Some(NamedTuple):
    """Rows of one form."""

    form: Form
    times: Ints
    keys: NDArray[np.uint64]  # of their ids; zeros where they have none
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: Array) -> Some:
        """Return some of them."""
        columns = tuple([column[rows] for column in self.columns])
        return Some(self.form, self.times[rows], self.keys[rows], columns)

    @property
    def named(self) -> dict[str, Column]:
        """The columns by their names."""
        return {name: column for (name, _), column in zip(self.form, self.columns, strict=True)}

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        parts = [part for c in self.columns for part in (c.values, c.nulls, c.vocabulary)]
        return sum(part.nbytes for part in (self.times, self.keys, *parts) if part is not None)


def kept_rows(times: Ints, keys: NDArray[np.uint64] | None, columns: Mapping[str, Column]) -> Some:
    """Return rows as they are kept, whatever order their columns came in."""
    names = sorted(columns)
    if keys is None:
        keys = np.zeros((len(times), 2), np.uint64)
    form = tuple((name, _type(columns[name])) for name in names)
    return Some(form, times, keys, tuple([_own(columns[name]) for name in names]))


def _own(column: Column) -> Column:
    """Return a column that nobody else writes to, and which says of its nulls only where some are.

    Integers have 64 bits, whatever they came with.
    """
    values, nulls = column.values, column.nulls
    if values.dtype.kind in "iu" and column.vocabulary is None:
        values = values.astype(np.int64)
    elif not column.owned:
        values = values.copy()
    return Column(
        values, nulls if nulls is not None and nulls.any() else None, True, column.vocabulary
    )


def _type(column: Column) -> str:
    if column.vocabulary is not None:
        return "text"
    dtype = column.values.dtype
    return "integers" if dtype.kind in "iu" else f"{dtype.name}{list(column.values.shape[1:])}"


class Newest:
    """The newest rows of all that were added, `most` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._parts: list[Some] = []
        self._n = 0
        self._cut = -1  # a time before which no row is among the newest

    def add(self, rows: Some) -> None:
        """Take rows; their arrays are not changed by anybody."""
        if not self.most:
            return
        young = rows.times >= self._cut
        some = rows if young.all() else rows.take(np.flatnonzero(young))
        if len(some):
            self._parts.append(some)
            self._n += len(some)
            if self._n > 2 * self.most + _SLACK:
                self._trim()

    def _trim(self) -> None:
        """Let rows go that are older than the newest."""
        times = np.concatenate([part.times for part in self._parts])
        last = self._n - self.most
        self._cut = max(self._cut, int(np.partition(times, last)[last]))
        self._keep([part.take(np.flatnonzero(part.times >= self._cut)) for part in self._parts])
        if self._n > 2 * self.most + _SLACK:  # too many of one time
            self._keep(self.rows(self.most))

    def _keep(self, parts: Sequence[Some]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._n = sum(map(len, self._parts))

    def rows(self, n: int) -> list[Some]:
        """Return the newest n rows, those of a form together, from the oldest to the newest."""
        parts = sorted(self._parts, key=lambda part: part.form)
        forms = [_ordered(list(group)) for _, group in groupby(parts, lambda part: part.form)]
        if not forms:
            return []
        place = np.concatenate([np.arange(len(form)) for form in forms])
        which = np.repeat(np.arange(len(forms)), [len(form) for form in forms])
        keys = np.concatenate([form.keys for form in forms])
        times = np.concatenate([form.times for form in forms])
        order = np.lexsort((place, which, keys[:, 1], keys[:, 0], times))[-n:]
        kept = [form.take(np.sort(place[order[which[order] == k]])) for k, form in enumerate(forms)]
        return [kept_rows(form.times, form.keys, form.named) for form in kept if len(form)]

    def settled(self) -> list[Some]:
        """Return all rows that are kept, in order."""
        self._keep(self.rows(self.most) if self.most else [])
        return list(self._parts)

    def merge(self, other: Newest) -> None:
        """Take the rows of another, which is untouched."""
        for part in other._parts:
            self.add(part)

    def copy(self) -> Newest:
        """Return independent rows."""
        twin = Newest(self.most)
        twin._parts, twin._n, twin._cut = list(self._parts), self._n, self._cut
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return sum(part.nbytes for part in self._parts)


def _ordered(parts: Sequence[Some]) -> Some:
    """Return rows of one form in one order, whatever order they came in."""
    form, *_ = parts[0]
    columns = tuple(
        [
            concatenate(list(each), name)
            for (name, _), each in zip(
                form, zip(*[p.columns for p in parts], strict=True), strict=True
            )
        ]
    )
    times = np.concatenate([part.times for part in parts])
    keys = np.concatenate([part.keys for part in parts])
    ranks = [rank for column in columns for rank in _ranks(column)]
    order = np.lexsort((*ranks, keys[:, 1], keys[:, 0], times))
    return Some(form, times, keys, columns).take(order)


def _ranks(column: Column) -> list[Array]:
    """Return numbers by which rows are told apart: of numbers their bits, as 0.0 is not -0.0."""
    values = column.values
    parts = [values] if column.nulls is None else [values, column.nulls]
    if values.ndim > 1:
        every = np.concatenate([part.view(np.uint8) for part in parts], axis=1)
        rows = np.ascontiguousarray(every).view(np.dtype((np.void, every.shape[1]))).reshape(-1)
        return [np.unique(rows, return_inverse=True)[1].reshape(-1)]
    return [part.view(f"i{part.itemsize}") for part in parts]
