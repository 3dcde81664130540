"""What columns options name: one, a list, or a glob over the columns of the first file."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError, near
from streammetrics.cli.sources import natural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """What one input of the metrics is read from: a column, or several as a matrix."""

    title: str  # what the user wrote, and messages say
    names: tuple[str, ...]
    numeric: bool  # numbers, not labels: how text is read


def resolve(
    asked: Mapping[str, str], numeric: frozenset[str], names: Sequence[str], where: object
) -> dict[str, Column]:
    """Return for each input the columns that the text asked for it names.

    Args:
        asked: For each input, a column's name, a list ``"a,b,c"`` or a glob ``"p*"``. A glob takes
            no column that another input names, and the natural order: p2 before p10.
        numeric: The inputs that are numbers.
        names: The columns there are.
        where: The file they are in, for messages.
    """
    taken = {text for text in asked.values() if text in names}
    chosen = {key: _names(text, names, taken, where) for key, text in asked.items()}
    # A column that is read as a label and as a number is a number; whole numbers are labels too.
    numbers = {asked[key] for key in asked if key in numeric or len(chosen[key]) > 1}
    return {key: Column(text, chosen[key], text in numbers) for key, text in asked.items()}


def _names(text: str, names: Sequence[str], taken: set[str], where: object) -> tuple[str, ...]:
    if text in names:
        return (text,)
    if any(sign in text for sign in "*?["):
        found = [name for name in names if fnmatchcase(name, text) and name not in taken]
        if not found:
            raise CommandError(f"{where}: no column matches {text!r}{near(text, names)}")
        return tuple(sorted(found, key=natural))
    parts = [part.strip() for part in text.split(",")] if "," in text else [text]
    for part in parts:
        if part not in names:
            raise CommandError(f"{where}: no column {part!r}{near(part, names)}")
    return tuple(parts)


def check(columns: Sequence[Column], names: Sequence[str], where: object) -> tuple[str, ...]:
    """Return the distinct names that `columns` need, all of them in `names` and there once."""
    needed = tuple(dict.fromkeys(name for column in columns for name in column.names))
    present = set(names)
    for name in needed:
        if name not in present:
            raise CommandError(f"{where}: no column {name!r}{near(name, names)}")
        if names.count(name) > 1:
            raise CommandError(f"{where}: {names.count(name)} columns are called {name!r}")
    return needed


def table(batch: pa.RecordBatch, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the batch by the titles of `columns`, several columns as one matrix."""
    return {
        column.title: batch.select(list(column.names))
        if len(column.names) > 1
        else batch.column(column.names[0])
        for column in columns
    }
