"""Confusion tables of many groups: one table for all groups that have equally many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.distinct import numbered
from streammetrics.core.columns.labels import places_or_last
from streammetrics.core.unions import Union, moved
from streammetrics.metrics.classification.view import ROOM, Confusion, united

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.fields.amounts import Amount
    from streammetrics.core.fields.tables import GroupedCells
    from streammetrics.core.types import ClassLabel, Ints, Places


def tables_of_groups(
    cells: GroupedCells,
    size: int,
    labels: tuple[ClassLabel, ...] | None,
    at_least: ClassLabel | None = None,
) -> Iterator[tuple[Places, Confusion]]:
    """Yield the tables of groups that have equally many classes, and which groups these are.

    The table of a group is the one that `Confusion.of_labels` makes of it alone; without rows it
    has none. A group of a single class gets the class `at_least` as well.
    """
    cell, amounts = cells.codes, cells.amount
    there = amounts.signs() > 0
    if not there.all():
        cell, amounts = cell[there], amounts.at(np.flatnonzero(there))
    group, cell = np.divmod(cell, cells.area)
    sides = [cells.row_labels, cells.column_labels]
    rows, columns = np.divmod(cell, max(len(sides[1]), 1))
    names = [side.tolist() for side in sides]
    classes = names[0]
    if labels is not None:
        classes = list(labels)
    elif names[0] != names[1]:
        classes = united(sides)
    if at_least is not None and at_least not in classes and _alike(classes, at_least):
        classes = classes if labels is not None else sorted([*classes, at_least])
    if classes != names[0] and names[0]:
        rows = places_or_last(sides[0], tuple(classes))[rows]
    if classes != names[1] and names[1]:
        columns = places_or_last(sides[1], tuple(classes))[columns]
    width = len(classes)
    kept = np.where(np.bincount(group, minlength=size) > 0, width, 0)
    others = np.zeros(size, np.bool_)
    codes: Places | None = None
    if labels is not None:
        others[group[np.maximum(rows, columns) == width]] = True
    elif group.size < size * width**2:  # some group may lack a class
        pairs = np.concatenate([group * width + rows, group * width + columns])
        pairs, codes = numbered(pairs, size * width)
        kept = np.bincount(codes // width, minlength=size)
        if at_least in classes:
            lone, added = np.flatnonzero(kept == 1), classes.index(at_least)
            lone = lone[codes[(np.cumsum(kept) - kept)[lone]] % width != added]
            codes, mine, _ = Union.of(codes, lone * width + added)
            pairs = moved(mine, pairs)
            kept[lone] = 2
        rows, columns = pairs.reshape(2, -1) - (np.cumsum(kept) - kept)[group]
    amount = amounts.plain()
    for kind in sorted(set((2 * kept + others).tolist()) - {0, 1}):
        count, has_others = divmod(kind, 2)
        alike = np.flatnonzero((kept == count) & (others == has_others))
        for chosen in _in_one_unit(alike, amount, group):
            number = np.full(size, -1)
            number[chosen] = np.arange(chosen.size)
            own, cell = None, np.flatnonzero(number[group] >= 0)
            if codes is not None and count < width:
                start = (np.cumsum(kept) - kept)[chosen]
                own = (codes % width)[start[:, None] + np.arange(count)]
            yield (
                chosen,
                Confusion(
                    classes,
                    rows[cell],
                    columns[cell],
                    amount if cell.size == group.size else amount[cell],
                    others=bool(has_others),
                    group=number[group[cell]],
                    groups=chosen.size,
                    codes=own,
                ),
            )


def tables_of_two(
    labels: list[ClassLabel], amount: Amount, *, flip: int
) -> Iterator[tuple[Places, Confusion]]:
    """Yield the same of amounts (groups, 4) of two classes, with `flip` in reverse order."""
    two, size = np.arange(2) ^ flip, len(amount.counts)
    seen = np.flatnonzero(amount.signs().any(axis=1))
    cells = amount.shaped((4 * size,)).plain()
    for chosen in _in_one_unit(seen, cells, np.repeat(np.arange(size), 4)):
        n = chosen.size
        mine = (4 * chosen[:, None] + np.arange(4)).reshape(-1)
        sides = np.tile(np.repeat(two, 2), n), np.tile(two, 2 * n)
        group = np.repeat(np.arange(n), 4)
        yield chosen, Confusion(labels, *sides, cells[mine], group=group, groups=n)


def _in_one_unit(groups: Places, amount: Ints | ExactSum, group: Places) -> Iterator[Places]:
    """Yield groups whose sums fit into one unit: all together, but for sums beyond 2**1019.

    A table has one `exponent`, which must be 0 unless it is of one group.
    """
    if groups.size and isinstance(amount, ExactSum):
        total = np.asarray(amount.regroup(group, int(group.max()) + 1).to_float())
        heavy = total[groups] >= 2.0 ** (ROOM - 1)
        yield from groups[heavy][:, None]
        groups = groups[~heavy]
    if groups.size:
        yield groups


def _alike(labels: Sequence[ClassLabel], label: ClassLabel) -> bool:
    """Whether a label is of the kind of others: text, or a number."""
    return not labels or isinstance(labels[0], str) == isinstance(label, str)
