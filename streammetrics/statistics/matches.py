"""Matches of two players: how often each won against each other, and how often they tied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.labels import label_column
from streammetrics.core.columns.schema import Field, Schema, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.fields.keyed import coded_labels
from streammetrics.core.fields.tables import GroupedCells, PairTable
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.ranking_rows import id_column, id_kind
from streammetrics.statistics.tables import amounts_of

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Bools, Columns, Ints, Places

_TIES = Hint("{ties} takes ties", ties="davidson")


@dataclass(frozen=True)
class MatchRows(Field):
    """Rows of matches: two players, and which of them won.

    A missing winner, or the word `tie`, is a tie. The finished columns are the winner, the loser,
    and whether the match was a tie; of ties the lower label comes first.
    """

    ties: bool = True
    tie: str = "tie"

    names = ("a", "b", "winner")

    @property
    def kinds(self) -> dict[str, Kind]:
        """Ids."""
        return dict.fromkeys(self.names, "id")

    def take(self, batch: Batch) -> Taken:
        """Return both players, the place of the winner, and a mask of missing players.

        The place is 0 or 1, 2 for a tie, and 3 for anything else.
        """
        sides = [id_column(batch, name) for name in ("a", "b")]
        kinds = [id_kind(side) for side in sides]
        if kinds[0] != kinds[1]:
            raise InvalidBatchError(
                f"{batch.title('a')} holds {kinds[0]}, and {batch.title('b')} holds {kinds[1]}: "
                "convert one of them"
            )
        winner, unknown = label_column(batch, "winner")
        none = np.zeros(len(winner.values), np.bool_)
        unknown = none if unknown is None else unknown
        won = [_equal(winner, side) & ~unknown for side in sides]
        tied = unknown
        if winner.vocabulary is not None:
            said = np.append(winner.vocabulary == self.tie, False)[winner.values]
            tied = tied | (said & ~won[0] & ~won[1])
        place = np.select([won[0], won[1], tied], [0, 1, 2], 3)
        missing = either(sides[0].nulls, sides[1].nulls)
        return (*sides, place), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that two different players played, and that one of them won."""
        first, second, place = taken
        title = batch.title("winner")
        values = batch.column("winner")
        shown = values.values if values.vocabulary is None else values.vocabulary[values.values]
        advice = f"winner is a player of the row, or missing or {self.tie!r} for a tie"
        what = "did not play"
        reject_present(title, what, place == 3, missing, shown, advice=advice)
        if not self.ties:
            reject_present(title, "is a tie", place == 2, missing, advice=_TIES)
        same = _equal(first, second)
        reject_present(batch.title("b"), f"is the same player as {batch.title('a')}", same, missing)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return winner, loser, and whether it was a tie."""
        first, second, place = taken if rows is None else tuple(each[rows] for each in taken)
        one, two, labels = _united(first, second)
        swapped = np.where(place == 2, one > two, place == 1)
        columns = np.where(swapped, two, one), np.where(swapped, one, two)
        text = labels.dtype.kind == "U"
        sides = [
            Column(codes, None, True, labels) if text else Column(labels[codes], None, True)
            for codes in columns
        ]
        return (*sides, place == 2), {"players": id_kind(first)}


def _united(first: Column, second: Column) -> tuple[Ints, Ints, Array]:
    """Return the places of two columns of labels of one kind among all labels, and these."""
    (one, labels), (two, others) = coded_labels(first), coded_labels(second)
    every = np.union1d(labels, others)
    one, two = np.searchsorted(every, labels)[one], np.searchsorted(every, others)[two]
    return one, two, every


def _equal(first: Column, second: Column) -> Bools:
    """Return where two columns hold the same label; text and integers differ."""
    if (first.vocabulary is None) != (second.vocabulary is None) or not len(first.values):
        return np.zeros(len(first.values), np.bool_)
    one, two, _ = _united(first, second)
    same: Bools = one == two
    return same


class MatchTable(Statistic):
    """Counts of matches by winner and loser, and of ties by both players, the lower label first.

    Memory: some 16 bytes for each pair of players that met.
    """

    ties: bool = True
    tie: str = "tie"
    nan_policy: NanPolicy = "raise"

    wins = PairTable()
    draws = PairTable()

    @property
    def schema(self) -> Schema:
        """Two players and the winner."""
        return Schema((MatchRows(self.ties, self.tie),), self.nan_policy)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the wins and the ties."""
        winner, loser, tied = columns
        sizes, codes = ((), ()) if group is None else ((group.size,), (group.codes,))
        found: dict[str, object] = {}
        for name, rows in (("wins", np.flatnonzero(~tied)), ("draws", np.flatnonzero(tied))):
            own = None if weight is None else weight[rows]
            if not rows.size:
                found[name] = GroupedCells.empty()
                continue
            (one, first), (two, second) = coded_labels(winner[rows]), coded_labels(loser[rows])
            shape = *sizes, len(first), len(second)
            own_codes = [each[rows] for each in codes]
            cells = GroupedCells(
                first, second, *amounts_of(shape, *own_codes, one, two, weight=own)
            )
            found[name] = cells.narrowed() if group is None else cells
        return found
