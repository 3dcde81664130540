"""How a set finds its inputs in a table: by their own names, or as `columns` renames them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Beside
from streammetrics.core.columns.naming import (
    asks_for,
    check_single,
    is_several,
    meant,
    parted,
)
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.parameters import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.types import ArrayLike, Foreign

_AT_MAKING = {"columns", "unit"}  # parameters of a set


class NamedInputs:
    """Inputs by name, those that are needed, and the user's columns for them."""

    columns: dict[str, str]  # the user's names, of those inputs that have another
    _titles: dict[str, str]  # the user's name of every input
    _needed: tuple[str, ...]  # the user's names of those that must be there
    _in_tables: dict[str, str]
    _told: bool  # of weights that a table has and nothing asks for

    def _name_inputs(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Work out once what follows from `columns`, as small batches need it often."""
        self._in_tables = {WEIGHT: "", **self.columns}  # no column of a table is called nothing
        self._told = False
        self._titles = {name: self.columns.get(name, name) for name in (*required, *optional)}
        # An input that may be left out is needed all the same once `columns` has named it.
        needed = (*required, *self.columns)
        self._needed = tuple(dict.fromkeys(self.columns.get(name, name) for name in needed))

    def _tell(self, names: Iterable[str]) -> None:
        """Warn once of a table with weights that no parameter names."""
        if not self._told and WEIGHT in names and WEIGHT not in self._asked(names).values():
            warnings.warn(
                f"the table's column {WEIGHT!r} is not read, and every row weighs 1: "
                f"columns={{{WEIGHT!r}: {WEIGHT!r}}} takes it as the weight",
                stacklevel=3,
            )
            self._told = True

    def _asked(self, names: Iterable[str], *, weighted: bool = False) -> dict[str, str]:
        """Return the column of each input that is needed, or is among the `names` of a table.

        The weight is asked for only where `columns` names it, or where it is passed by its name.
        """
        wanted = {*self._needed, *names}
        asked = {name: title for name, title in self._titles.items() if title in wanted}
        if not weighted and WEIGHT not in self.columns:
            asked.pop(WEIGHT, None)
        return asked

    def _reads(self, names: Iterable[str]) -> list[str]:
        """Return those of a table's columns that `update` takes.

        Raises:
            InvalidBatchError: A column that it needs is not among them.
        """
        names = list(names)
        self._tell(names)
        parts = self._parts(names).values()
        return list(dict.fromkeys(name for part in parts for name in part))

    def _parts(self, names: list[str], *, weighted: bool = False) -> dict[str, tuple[str, ...]]:
        """Return the columns that what each title stands for is read from: one, or a matrix's."""
        asked = dict.fromkeys(self._asked(names, weighted=weighted).values())
        plain = [title for title in asked if title in names]
        self._check_there([*plain, *filter(is_several, asked)], names)
        parts = {title: parted(title, names, plain) for title in asked}
        check_single((name for part in parts.values() for name in part), names)
        return parts

    def _known(self, columns: Mapping[str, object]) -> list[str]:
        """Return the names, each of which some input asks for."""
        titles = dict.fromkeys(self._titles.values())
        other = columns.keys() - set(titles)
        unknown = sorted(n for n in other if not any(asks_for(title, n) for title in titles))
        if unknown:
            for name in _AT_MAKING & columns.keys():
                raise _made_with(name, columns[name])
            raise InvalidBatchError(
                f"no input is called {', '.join(map(repr, unknown))}"
                f"{meant(unknown[0], titles)}; the inputs are {', '.join(map(repr, titles))}"
            )
        return list(columns)

    def _check_there(self, given: Sequence[str], names: Sequence[str]) -> None:
        missing = [title for title in self._needed if title not in given]
        if missing and missing[0] in names:
            raise InvalidBatchError(f"{missing[0]} is None; pass its values", missing[0])
        if missing:
            near = meant(missing[0], [name for name in names if name not in given])
            raise InvalidBatchError(
                f"no column {', '.join(map(repr, missing))}; "
                f"there are: {', '.join(map(repr, names)) or 'none'}{near}"
            )


def beside_a_table(columns: Mapping[str, object]) -> InvalidBatchError:
    """Return the error of columns that are passed beside a table, which has its own."""
    for name in _AT_MAKING & columns.keys():
        return _made_with(name, columns[name])
    name = next(iter(columns))
    return InvalidBatchError(
        f"pass one table or columns by name, not both: beside the table there is {name!r}; it is "
        "read of the table where that has a column of this name, or of another one with "
        f"MetricSet(..., columns={{{name!r}: 'COLUMN'}})"
    )


def _made_with(name: str, value: object) -> InvalidBatchError:
    return InvalidBatchError(
        f"{name} is no column but said once, when the set is made: "
        f"MetricSet(..., {name}={brief(value)}), whose update(table) takes the table alone"
    )


def columns_of(table: Foreign, parts: Mapping[str, tuple[str, ...]]) -> dict[str, ArrayLike]:
    """Return what each title stands for in a table."""
    return {
        title: table[names[0]] if len(names) == 1 else Beside({name: table[name] for name in names})
        for title, names in parts.items()
    }
