"""Rows of a histogram as they are held: taken, merged, and counted once somebody reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.histograms.cells import Cells
from streammetrics.core.histograms.counting import counted
from streammetrics.core.histograms.forms import (
    Form,
    Limits,
    Run,
    Sorting,
    settled,
    taking,
    together,
)
from streammetrics.core.histograms.keys import ScoredRows
from streammetrics.core.histograms.long import LongCells, grown
from streammetrics.core.histograms.merging import merged

if TYPE_CHECKING:
    from streammetrics.core.histograms.keys import Codes
    from streammetrics.core.types import Floats

_TOO_MANY_CELLS = 1 << 29


class _State(NamedTuple):
    """All rows in one attribute, so that another thread sees a change whole or not at all.

    Reading may change how rows are held, never which rows: if several threads do so at once, any
    of their results will do.
    """

    form: Form  # the rows whose scores float64 holds
    long: tuple[LongCells, ...] = ()  # the rows whose scores have tails
    tailed: bool = False  # whether any row ever had a tail
    settled: bool = True  # whether every row is counted, or all are one sorted run


class HeldRows:
    """Rows under a budget of cells: what `DyadicHistogram` reads, and how rows get there."""

    def __init__(self, max_cells: int, classes: int) -> None:
        if not 2 <= max_cells <= _TOO_MANY_CELLS:
            raise ValueError(f"max_cells must be from 2 to 2**29, not {max_cells}")
        if classes not in {1, 2}:
            raise ValueError(f"classes must be 1 or 2, not {classes}")
        self._limits = Limits(max_cells, classes)
        self._state = _State(Sorting(Cells.empty(classes)))

    @property
    def max_cells(self) -> int:
        """The budget of occupied cells."""
        return self._limits.max_cells

    @property
    def classes(self) -> int:
        """How many classes of rows there are."""
        return self._limits.classes

    @property
    def plain(self) -> bool:
        """Whether no score ever had a tail."""
        return not self._state.tailed

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        state = self._state
        return state.form.nbytes + sum(cells.nbytes for cells in state.long)

    def add(
        self,
        scores: Floats,
        codes: Codes | None = None,
        weight: Floats | None = None,
        tails: Floats | None = None,
    ) -> None:
        """Add rows. The schema has validated them; nothing is checked again here.

        Args:
            scores: Float64 scores (n,), none of them nan.
            codes: The class of each row (n,), below `classes`; needed if there are two.
            weight: Positive finite weights (n,), or (n, 2) where a row weighs the sum of its two;
                ``None`` for 1 each.
            tails: What the scores lack to be the exact numbers, as in `LongNumbers`, of which the
                scores are the heads; ``None`` if they lack nothing.

        """
        if weight is not None and (weight == 1.0).all():
            weight = None
        rows = ScoredRows(scores, codes, weight)
        form, long, tailed, _ = self._state
        if tails is not None and tails.any():
            told = tails != 0
            more = LongCells.of(rows.part(told), tails[told], self.classes)
            long, tailed, rows = grown(long, more), True, rows.part(~told)
        if rows.scores.size:
            form = taking(form, rows, self._limits)
        self._become(_State(form, long, tailed, settled=False))

    def merge(self, *others: Self) -> None:
        """Add the rows of other histograms of the same configuration, which are not changed."""
        for other in others:
            if self._limits != other._limits:
                raise IncompatibleMetricsError(
                    f"cannot merge histograms with max_cells={other.max_cells}, "
                    f"classes={other.classes} into max_cells={self.max_cells}, "
                    f"classes={self.classes}"
                )
        every = [histogram._state for histogram in (self, *others)]
        form: Form = together([state.form for state in every], self._limits)
        long: tuple[LongCells, ...] = ()
        for state in every:
            for cells in state.long:
                long = grown(long, cells)
        self._become(_State(form, long, any(state.tailed for state in every), settled=False))

    def fork(self) -> Self:
        """Return a snapshot. It shares the arrays, which are never written to again."""
        twin = object.__new__(type(self))
        twin._limits, twin._state = self._limits, self._state
        return twin

    def _become(self, state: _State) -> None:
        """Take on a state in one assignment; too many long cells are united with the others."""
        if sum(cells.size for cells in state.long) > self._limits.first:
            state = self._settle(state)
        self._state = state

    def _of(self, cells: Cells, long: LongCells | None) -> Self:
        """Return a histogram of counted cells; `long` is ``None`` if no score ever had a tail."""
        twin = self.fork()
        held = () if long is None or not long.size else (long,)
        twin._state = _State(Sorting(cells), held, long is not None)
        return twin

    def _read(self) -> _State:
        """Return the state with every row counted, or with all rows in one sorted run."""
        state = self._state
        if not state.settled and (state.long or not isinstance(state.form, Run)):
            state = self._state = self._settle(state)
        return state

    def _settle(self, state: _State) -> _State:
        """Return a state with every row counted, or with all rows in one sorted run.

        Scores with tails keep cells of their own if the budget has room for them. Else they go to
        wider cells with all the others, at level 1 or above, where a cell can hold several scores.
        """
        form = settled(state.form, self._limits, counted_whole=bool(state.long))
        if not state.long or isinstance(form, Run):
            return _State(form, state.long, state.tailed)
        long = LongCells.union(state.long)
        if form.cells.level or form.cells.ids.size + long.size > self.max_cells:
            wide = long.widened(self.max_cells)
            cells = merged(form.cells, [wide], self.max_cells).normal()
            return _State(Sorting(cells), (), state.tailed)
        return _State(form, (long,), state.tailed)

    def _plain(self) -> Cells:
        """Return the cells of the rows without tails; rows of a run are counted for it."""
        form = self._read().form
        return counted(form.rows, 0, self.classes) if isinstance(form, Run) else form.cells

    def _long(self) -> LongCells:
        """Return the cells of the rows with tails."""
        long = self._read().long
        return long[0] if long else LongCells.empty(self.classes)

    def _canonical(self) -> tuple[Cells, Floats]:
        """Return the cells of all rows, and the tails of their scores, none past level 0."""
        return self._whole(self._plain())

    def _whole(self, cells: Cells) -> tuple[Cells, Floats]:
        """Return the same for the `cells` of the rows without tails."""
        long = self._read().long
        return long[0].beside(cells) if long else (cells, np.empty(0))
