"""What all engines do alike: ship a set that is empty, feed it one shard, say where it failed."""

from __future__ import annotations

import pickle
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import n_rows
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError, an
from streammetrics.core.metric_set import MetricSet
from streammetrics.readers.files import FilteredTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streammetrics.readers.files import Piece

    Progress = Callable[[int], None]

S = TypeVar("S", bound=MetricSet)  # a set, or a comparison of several models


def blank(suite: S) -> S:
    """Return a copy of the set, which must not have been fed: what workers start from.

    Raises:
        TypeError: It is not a set.
        IncompatibleMetricsError: It holds rows, which would be counted in every shard.
    """
    if not isinstance(suite, MetricSet):
        raise TypeError(
            f"{an(type(suite).__name__)} is not a MetricSet: engines feed tables to a set, such as "
            'MetricSet({"auc": ROCAUC()}, columns={"y_true": "label", "y_score": "score"})'
        )
    if suite.n_rows or suite.n_omitted:
        raise IncompatibleMetricsError(
            f"the set has already seen {suite.n_rows:,} rows, which would be counted in every "
            "shard: pass suite.copy().reset() and merge the result into the set"
        )
    return suite.copy()


def fed(suite: MetricSet, tables: Iterable[object], where: str) -> MetricSet:
    """Return a copy of the set that has taken the tables of one shard.

    Raises:
        InvalidBatchError: A table cannot be taken; the message begins with `where`, and its row is
            counted from the beginning of the shard.
    """
    state, row = suite.copy(), 0
    for table in tables:
        with located(where, row, "shard"):
            state.update(table)
        row += n_rows(table)
    return state


def packed(suite: MetricSet, dumps: Callable[[object], bytes]) -> bytes:
    """Return the statistics of a set, pickled as they are, for `unpacked`.

    To check, sum and sort them for `to_bytes` takes longer than to make them.
    """
    return dumps(suite._accumulator.part(suite._plan))


def unpacked(empty: S, statistics: bytes) -> S:
    """Return a set like an empty one, with the statistics of another one of its configuration."""
    return empty._over(Accumulator(empty._plan, pickle.loads(statistics)))


@contextmanager
def located(where: str, row: int | Callable[[int], int], unit: str) -> Iterator[None]:
    """Say in the error of a table where it lies: in what, and after how many rows of the `unit`.

    The number of rows may depend on the row of the table, which is then passed.
    """
    try:
        yield
    except InvalidBatchError as error:
        if error.row is not None:
            error = error.after(row if isinstance(row, int) else row(error.row), unit)
        raise error.within(where) from None


def _rows_before(piece: Piece, row: int, table: object, at: int) -> int:
    """Return how many rows of its file come before a row of a table, less those in the table."""
    moved = int(table.places[at]) - at if isinstance(table, FilteredTable) else 0
    return piece.first_row() + row + moved


def read(piece: Piece, suite: MetricSet, batch_rows: int, progress: Progress) -> None:
    """Update the set with the rows of a piece."""
    row = 0
    with closing(piece.tables(batch_rows)) as tables:  # a refused row ends what reads ahead, too
        for rows, table in tables:
            with located(str(piece), partial(_rows_before, piece, row, table), piece.unit):
                suite.update(table)
            row += rows
            progress(rows)
