"""Tables by label: a row for each label that occurs, with the entries of every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.labels import packed_labels, unpacked_labels
from streammetrics.core.sorted_union import Union

if TYPE_CHECKING:
    from streammetrics.core.configured import Configured
    from streammetrics.core.fields.entries import Entries
    from streammetrics.core.types import Array, Arrays


class LabelledEntries(NamedTuple):
    """Labels, distinct and ascending, and for each what its columns hold."""

    labels: Array
    columns: dict[str, Any]


class LabelTable(StateField[LabelledEntries]):
    """A table of the labels that occur; the columns are given by name, and make its arrays.

    One of them is `Weights`, which says of a label that rows are taken out of whether any is left.
    """

    def __init__(self, *, inline: bool = False, **columns: Entries[Any]) -> None:
        super().__init__(inline=inline)
        self._columns = columns

    def empty(self, of: Configured) -> LabelledEntries:  # noqa: ARG002 - nothing depends on it
        """Return no labels."""
        columns = {name: kind.none() for name, kind in self._columns.items()}
        return LabelledEntries(np.empty(0, np.int64), columns)

    def plus(self, mine: LabelledEntries, other: LabelledEntries) -> LabelledEntries:
        """Return the entries of both for all labels."""
        if not len(mine.labels) or not len(other.labels):
            return mine if len(mine.labels) else other
        return self.united(mine, other)[0]

    def united(
        self, mine: LabelledEntries, other: LabelledEntries
    ) -> tuple[LabelledEntries, Union]:
        """Return the same of tables that are not empty, and how their labels were united."""
        union = Union.of(mine.labels, other.labels)
        columns = {
            name: kind.plus(mine.columns[name], other.columns[name], union)
            for name, kind in self._columns.items()
        }
        return LabelledEntries(union.keys, columns), union

    def arrays(self, value: LabelledEntries) -> dict[str, Array]:
        """Return the labels and the arrays of all columns."""
        arrays = {"labels": packed_labels(value.labels)}
        for name, kind in self._columns.items():
            arrays |= kind.arrays(name, value.columns[name])
        return arrays

    def taken(self, arrays: Arrays, of: Configured) -> LabelledEntries:  # noqa: ARG002 - nothing depends on it
        """Return the table: labels in order, and as many entries in each column."""
        labels = unpacked_labels(arrays, "labels")
        if not (labels[1:] > labels[:-1]).all():
            raise StateFormatError("the labels of a table are out of order")
        known = {"labels"}
        columns = {}
        for name, kind in self._columns.items():
            columns[name] = kind.taken(name, arrays, len(labels))
            known |= kind.arrays(name, columns[name]).keys()
        if arrays.keys() != known or not (len(labels) or labels.dtype == np.int64):
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of a table by labels")
        return LabelledEntries(labels, columns)

    def scaled(self, value: LabelledEntries, weight: float) -> LabelledEntries:
        """Return the table of rows of so many times the weight."""
        kinds = self._columns
        return value._replace(
            columns={name: kinds[name].scaled(held, weight) for name, held in value.columns.items()}
        )

    def nbytes(self, value: LabelledEntries) -> int:
        """Bytes held now."""
        held: int = sum(entries.nbytes for entries in value.columns.values())
        return value.labels.nbytes + held

    def minus(self, value: LabelledEntries, other: LabelledEntries) -> LabelledEntries:
        """Return the table without rows, and without labels that have none left."""
        if not len(other.labels):
            return value
        union = Union.of(value.labels, other.labels)
        if len(union.keys) != len(value.labels):
            raise not_among("some labels are not here")
        left, kept = {}, np.zeros(len(value.labels), np.bool_)
        for name, kind in self._columns.items():
            left[name] = kind.minus(value.columns[name], other.columns[name], union.theirs)
            used = kind.used(left[name])
            kept = kept if used is None else kept | used
        if kept.all():
            return LabelledEntries(value.labels, left)
        rows = np.flatnonzero(kept)
        for name, kind in self._columns.items():
            gone = kind.at(left[name], np.flatnonzero(~kept))
            if isinstance(gone, ExactSum) and gone.digits.any():
                raise not_among(f"{name} are left of labels without rows")
            left[name] = kind.at(left[name], rows)
        if not rows.size:
            return LabelledEntries(
                np.empty(0, np.int64), {name: k.none() for name, k in self._columns.items()}
            )
        return LabelledEntries(value.labels[rows], left)
