"""How the rows of a histogram are held: the three forms there are, and how one becomes another.

Forms are immutable: taking rows makes another form.

==========  ===================================================================================
`Run`       unweighted rows in one sorted run, at most the budget of cells: cells of millions of
            scores that occur once would take three times its memory
`Sorting`   cells of any level, and rows that wait to be sorted in among them
`Placing`   cells past level 0 with the index that finds the cell of a row, rows that wait, the
            places of rows that were found, and rows that have no cell yet
==========  ===================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.histograms.addressed import weighed
from streammetrics.core.histograms.cells import Cells, fitting_level
from streammetrics.core.histograms.counting import counted
from streammetrics.core.histograms.keys import ScoredRows, concatenated, rows_by_cell
from streammetrics.core.histograms.lookup import CellIndex, Tally, placed, tallied
from streammetrics.core.histograms.merging import merged
from streammetrics.core.histograms.packing import cells_or_rows, sorted_rows
from streammetrics.core.histograms.waiting import appended, gathered, parts, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Limits(NamedTuple):
    """What a histogram may hold: occupied cells, and classes of rows."""

    max_cells: int
    classes: int

    @property
    def first(self) -> int:
        """How many rows wait before there are cells: twice the budget, to find the level."""
        return max(tuning.PASS_ROWS, 2 * self.max_cells)

    @property
    def batch(self) -> int:
        """How many rows are counted at a time."""
        return max(tuning.PASS_ROWS, min(16 * self.max_cells, tuning.COUNTED_ROWS), self.max_cells)


class Run(NamedTuple):
    """One sorted run of rows of weight one, no more than there may be cells."""

    rows: ScoredRows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.rows.nbytes


class Sorting(NamedTuple):
    """Cells of a level, and rows that wait to be sorted in among them."""

    cells: Cells
    waiting: tuple[ScoredRows, ...] = ()
    scattered: bool = False  # whether the cells are known not to fit an index

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.cells.nbytes + sum([rows.nbytes for rows in self.waiting])


class Placing(NamedTuple):
    """Cells past level 0, their index, and rows that wait, have been found, or have no cell."""

    cells: Cells
    lookup: CellIndex
    waiting: tuple[ScoredRows, ...] = ()
    tally: Tally = Tally()
    unplaced: tuple[ScoredRows, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        rows = sum(rows.nbytes for rows in (*self.waiting, *self.unplaced))
        return self.cells.nbytes + self.lookup.nbytes + self.tally.nbytes + rows


Form: TypeAlias = Run | Sorting | Placing


def taking(form: Form, rows: ScoredRows, limits: Limits) -> Form:
    """Return the form with more rows; arrays are the caller's, so rows that wait are copied."""
    size = rows.scores.size
    if isinstance(form, Run):
        form = Sorting(Cells.empty(limits.classes), (form.rows,))
    if isinstance(form, Placing) and size >= tuning.JOINED_ROWS:
        return _placed(form, [rows], limits)
    if size_of(form.waiting) + size > _room(form, limits):
        return _counted(form._replace(waiting=()), (*form.waiting, rows), limits)
    return form._replace(waiting=appended(form.waiting, rows.copy()))


def together(forms: Sequence[Form], limits: Limits) -> Sorting | Placing:
    """Return a form of the rows of all."""
    cells, waiting = [], []
    for form in forms:
        if isinstance(form, Run):
            waiting.append(form.rows)
            continue
        waiting += form.waiting
        if isinstance(form, Placing):
            waiting += form.unplaced
            cells.append(tallied(form.cells, form.tally))
        else:
            cells.append(form.cells)
    none = Cells.empty(limits.classes)
    whole = Sorting(merged(cells[0], cells[1:], limits.max_cells) if cells else none)
    if size_of(waiting) > _room(whole, limits):
        return _counted(whole, waiting, limits)
    return whole._replace(waiting=gathered(waiting))


def settled(form: Form, limits: Limits, *, counted_whole: bool) -> Form:
    """Return a form with every row counted, or one `Run` unless all is to be `counted_whole`."""
    if isinstance(form, Run):
        form = Sorting(Cells.empty(limits.classes), (form.rows,))
    waiting, form = form.waiting, form._replace(waiting=())
    size = size_of(waiting)
    plain = not any(rows.weight is not None for rows in waiting)
    if plain and 0 < size <= limits.max_cells and not form.cells.ids.size:
        run = cells_or_rows(waiting, *limits)
        if isinstance(run, Cells):
            return Sorting(run)
        distinct = 1 + int(np.count_nonzero(run.scores[1:] != run.scores[:-1]))
        if 2 * distinct > size and not counted_whole:
            return Run(run)
        return Sorting(counted(run, 0, limits.classes))
    form = _counted(form, waiting, limits)
    if isinstance(form, Placing):
        form = _inserted(form, (), limits) if form.unplaced else _without_tally(form)
    return form._replace(cells=form.cells.normal())


def _room(form: Sorting | Placing, limits: Limits) -> int:
    """Return how many rows may wait before their cells are looked for."""
    if not form.cells.ids.size:
        return limits.first
    if form.cells.level and not (isinstance(form, Sorting) and form.scattered):
        return max(tuning.PASS_ROWS, form.cells.ids.size // 4)
    return limits.batch


def _counted(
    form: Sorting | Placing, waiting: Sequence[ScoredRows], limits: Limits
) -> Sorting | Placing:
    """Return the form with rows put in the cells that there are, or in new ones."""
    first = limits.batch if form.cells.level else limits.first  # past level 0 most have a cell
    total = size_of(waiting)
    first = total if total <= first + tuning.PASS_ROWS else first
    for chunks in parts(waiting, first, limits.batch):
        worthwhile = 4 * size_of(chunks) >= form.cells.ids.size
        if isinstance(form, Sorting) and form.cells.level and worthwhile and not form.scattered:
            lookup = CellIndex.of(form.cells)
            form = (
                form._replace(scattered=True)
                if lookup is None
                else Placing(form.cells, lookup, form.waiting)
            )
        if isinstance(form, Placing):
            form = _placed(form, chunks, limits)
        else:
            form = _inserted(form, chunks, limits)
    return form


def _placed(form: Placing, chunks: Sequence[ScoredRows], limits: Limits) -> Sorting | Placing:
    """Return the form with the places of rows found, unless too many have none."""
    tally, unplaced = placed(form.cells, form.lookup, chunks, form.tally)
    form = form._replace(tally=tally)
    if unplaced.scores.size:
        form = form._replace(unplaced=appended(form.unplaced, unplaced))
    # Counting weights copies the digits of all cells, which costs more than a copy of counts.
    passes = 2 if chunks[0].weight is not None else 1
    if tally.size > max(8 * tuning.PASS_ROWS, passes * form.cells.ids.size):
        form = _without_tally(form)
    if size_of(form.unplaced) > max(tuning.PASS_ROWS, form.cells.ids.size // 2):
        return _inserted(form, (), limits)
    return form


def _without_tally(form: Placing) -> Placing:
    """Return the form with the rows counted whose cells were found."""
    tally, cells = form.tally, tallied(form.cells, form.tally)
    lookup, strays = form.lookup, sum(mixed.size for mixed in tally.mixed)
    if 16 * strays > min(tally.size, cells.ids.size):
        lookup = lookup.refreshed(cells, tally)
    return form._replace(cells=cells, lookup=lookup, tally=Tally())


def _inserted(form: Sorting | Placing, chunks: Sequence[ScoredRows], limits: Limits) -> Sorting:
    """Return the form with rows counted by a sort, and with them those that had no cell."""
    rows, cells = list(chunks), form.cells
    if isinstance(form, Placing):
        rows += form.unplaced
        cells = tallied(cells, form.tally)  # there is no more use for the index
    for weighted in (False, True):
        group = [chunk for chunk in rows if (chunk.weight is not None) == weighted]
        if group:
            cells = merged(cells, [_cells_of(group, cells.level, limits)], limits.max_cells)
    return Sorting(cells, form.waiting)


def _cells_of(chunks: Sequence[ScoredRows], level: int, limits: Limits) -> Cells:
    # Some of the rows never need a higher level than all of them, so this level is safe. Of rows
    # that are sorted, cells that the budget cannot hold are not even made.
    if chunks[0].weight is None:
        rows = sorted_rows(chunks) if level else cells_or_rows(chunks, *limits)
        if isinstance(rows, Cells):
            return rows
        level = level or fitting_level(rows.scores, 0, limits.max_cells)
        return counted(rows, level, limits.classes)
    found = weighed(concatenated(chunks), level, limits.max_cells, limits.classes)
    if found is not None:
        return found
    rows = rows_by_cell(chunks, level)
    level = level or fitting_level(rows.scores, 0, limits.max_cells)
    return counted(rows, level, limits.classes)
