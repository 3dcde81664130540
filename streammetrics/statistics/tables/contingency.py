"""How often each pair of labels was seen together: what classification and clustering read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.column import Column, unique
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scores import SAMPLES, binary_codes
from streammetrics.core.counting import counts_of, extent, is_dense, packed
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.keyed import coded_labels
from streammetrics.core.fields.tables import GroupedCells, PairTable
from streammetrics.core.fields.weights import WeightedCount, have_weights
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Columns, Floats, Ints, Places


_FIRST = 1 << 12  # rows from which the number of labels is guessed


class LabelCells(NamedTuple):
    """The pairs that occur: labels of both sides, places in them, and how much of each pair."""

    row_labels: Array
    column_labels: Array
    rows: Places
    columns: Places
    amount: Ints | ExactSum


def amounts_of(
    shape: tuple[int, ...], *codes: Array, weight: Floats | None, squared: bool = True
) -> tuple[Places, WeightedCount]:
    """Return which cells of a table have rows, ascending, and how much there is of each.

    A row is in the cell that its codes name; cells are numbered row by row. With `squared` the
    squares of weights are summed as well.
    """
    size, n = math.prod(shape), len(codes[0])
    if is_dense(size, n):
        times = None if have_weights(weight) else weight
        counts = counts_of(shape, *codes, times=times).reshape(-1)
        found = np.flatnonzero(counts)
        if not have_weights(weight):
            return found, WeightedCount.of_counts(counts[found])
        places = packed(shape, *codes)
        return found, WeightedCount.at_places(places, size, weight, squared=squared).at(found)
    found, places = unique(packed(shape, *codes))
    return found, WeightedCount.at_places(places, found.size, weight, squared=squared)


def _counted_few(
    columns: tuple[Column, ...], times: Array | None, *outer: tuple[int, Array]
) -> Ints | None:
    """Return how many rows have each pair of labels, integers from 0 on; ``None`` for others.

    Counts are (rows, columns), behind the axes of the outer codes, of each of which the size is
    given. How many labels there are is guessed from the first rows, which saves a pass.
    """
    values, n = [column.values for column in columns], len(columns[0])
    if any(column.vocabulary is not None for column in columns):
        return None
    low, high = zip(*[extent(each[:_FIRST]) for each in values], strict=True)
    shape = (*[size for size, _ in outer], *[int(last) + 1 for last in high])
    if not 0 <= min(low) <= max(high) < n or not is_dense(math.prod(shape), n):
        return None
    try:
        return counts_of(shape, *[codes for _, codes in outer], *values, times=times)
    except IndexError:  # a label of a later row
        return None


def _cells(
    columns: tuple[Column, ...], weight: Floats | None, *outer: tuple[int, Array]
) -> GroupedCells:
    """Return the pairs of the labels of two columns, of each group if there are groups."""
    counts = _counted_few(columns, weight, *outer) if not have_weights(weight) else None
    if counts is not None:
        cells = np.flatnonzero(counts)
        amount = WeightedCount.of_counts(counts.reshape(-1)[cells])
        row_labels, column_labels = map(np.arange, counts.shape[-2:])
        return GroupedCells(row_labels, column_labels, cells, amount)
    (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
    shape = *[size for size, _ in outer], len(row_labels), len(column_labels)
    cells, amount = amounts_of(shape, *[codes for _, codes in outer], rows, cols, weight=weight)
    return GroupedCells(row_labels, column_labels, cells, amount)


class ContingencyTable(Statistic):
    """Counts, or exact sums of weights, of (row label, column label) pairs.

    Only pairs that occur are held, so memory grows with them (16 bytes each) and not with the
    square of the classes. Each side keeps its own labels, sorted. `alike` sides hold labels of
    one kind, and the second may be an (n, K) matrix of scores. With `others` there may be labels
    besides those given.
    """

    in_kernels = takes_counts = True

    row: str = "y_true"
    column: str = "y_pred"
    labels: tuple[ClassLabel, ...] | None = None
    alike: bool = True
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None
    others: bool = False

    table = PairTable(inline=True)

    def check_fields(self) -> None:
        """Check that labels are among those given, where there may be no others."""
        if self.labels is None or self.others:
            return
        given = set(self.labels)
        if not given.issuperset(
            [*self.table.row_labels.tolist(), *self.table.column_labels.tolist()]
        ):
            raise StateFormatError(f"labels of the table are not among {self.labels!r:.200}")

    def check_groups(self, values: Mapping[str, Any], size: int) -> None:
        """Check the labels of all groups at once."""
        cells = values["table"]
        if type(self).check_fields is not ContingencyTable.check_fields or type(cells) is tuple:
            super().check_groups(values, size)
        else:
            twin = self.fork()
            twin.table = cells
            twin.check_fields()

    @property
    def schema(self) -> Schema:
        """Two columns of labels."""
        if self.alike:
            first = Labels(self.row, self.labels, ignore_index=self.ignore_index, leader=self.row)
            second = Labels(self.column, self.labels, matrix=True, truth=self.row)
            sides = (replace(side, others=self.others) for side in (first, second))
            return Schema(tuple(sides), self.nan_policy)
        sides = (Labels(name, fact=f"labels of {name}") for name in (self.row, self.column))
        return Schema(tuple(sides), self.nan_policy)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the pairs of the rows."""
        if group is None:
            return {"table": _cells(columns, weight).narrowed()}
        return {"table": _cells(columns, weight, (group.size, group.codes))}

    def cells(self) -> LabelCells:
        """Return the pairs that occur, in order of their labels."""
        table = self.table
        return LabelCells(
            table.row_labels, table.column_labels, *table.places, table.amount.plain()
        )

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.table.amount.plain_squared()

    @property
    def counts(self) -> Ints:
        """How many rows have each pair, where no row has a weight."""
        counts: Ints = self.table.amount.counts
        return counts


UNWEIGHTED = "metrics of clusterings"  # as pairs of points have no weight


class LabelPairs(ContingencyTable):
    """How many rows have each pair of labels of two labelings, which may differ in kind."""

    row: str = "labels_true"
    column: str = "labels_pred"
    alike: bool = False

    table = PairTable(whole=True, inline=True)

    @property
    def schema(self) -> Schema:
        """Two columns of labels, without weights."""
        schema = super().schema
        return replace(schema, unweighted=UNWEIGHTED)

    def check_rows(self, n: int) -> None:
        """Check that the counts are those of n rows."""
        if int(self.counts.sum()) != n:
            raise StateFormatError(f"the counts of labelings are not those of {n} rows")


@dataclass(frozen=True)
class SampleLabels(Labels):
    """The sample of each row: 1 for the current sample, 0 for the reference."""

    name: str = "sample"
    current: ClassLabel | None = None

    def finish(self, batch: Batch, taken: tuple[Any, ...], rows: Places | None) -> Finished:
        """Return the codes of the samples; raise if there is a third one."""
        column = taken[0] if rows is None else taken[0][rows]
        codes, facts = binary_codes(batch, self.name, column, self.current, None, rows, SAMPLES)
        return (Column(codes.astype(np.int64), None, True),), facts


class SampleTable(ContingencyTable):
    """How much of two samples has each category, by the code of the sample: 1 is the current."""

    row: str = "sample"
    column: str = "values"
    alike: bool = False
    current: ClassLabel | None = None

    exact: ClassVar[bool] = True  # as of a histogram in which every value has a cell

    @property
    def schema(self) -> Schema:
        """The sample of each row, and its category."""
        sides = SampleLabels(current=self.current), Labels("values", fact="labels of values")
        return Schema(sides, self.nan_policy)

    def check_fields(self) -> None:
        """Check that there are two samples at most."""
        if not {*self.table.row_labels.tolist()} <= {0, 1}:
            raise StateFormatError("the codes of samples are not 0 and 1")

    def shares(self, pseudo_count: float) -> tuple[Floats, Floats] | None:
        """Return the share of each category in the current sample and in the reference.

        ``None`` unless both have rows. A weight of `pseudo_count` is added to each category.
        """
        rows, columns = self.table.places
        if len(self.table.row_labels) < 2:
            return None
        amounts, exponent = self.table.amount.exact().integers()
        counts = np.zeros((2, len(self.table.column_labels)), object)
        counts[rows, columns] = amounts
        added = Fraction(pseudo_count) / Fraction(2) ** exponent
        if added:
            counts = counts * added.denominator + added.numerator
        reference, current = (side / side.sum() for side in counts)
        return current.astype(np.float64), reference.astype(np.float64)
