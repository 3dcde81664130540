"""SliceTable: metrics by slice, as columns."""

from __future__ import annotations

import datetime
import importlib
import json
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Interval, Result, is_curve, numbers
from streammetrics.core.types import Array, Floats, Foreign, Json
from streammetrics.statistics.keys import Bin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.statistics.keys import Part

MISSING, OTHERS = "missing", "(other)"
OWN = ("by", "n_rows", "p", "p_adjusted")  # columns that belong neither to a key nor to a metric
BESIDE = ("_low", "_high", "_rest")  # suffixes of the columns that accompany a metric's values


class SliceTable(Result, dict[str, Array]):
    """Metrics by slice: a dictionary of columns, each with one entry a slice.

    The columns to slice by come first, with None where a value is missing or a slice does not
    depend on the column; with several kinds of slice, the column ``by`` identifies the kind. Then
    come ``n_rows`` and each metric under its name; a metric of several numbers has columns
    ``name_class``. Limits are ``name_low`` and ``name_high``.
    """

    # Information for plots: the level of the limits (None if they are certain), and whether larger
    # values of each metric are better.
    level: float | None = None
    better: Mapping[str, bool | None] = MappingProxyType({})

    def told(self, level: float | None, better: Mapping[str, bool | None]) -> Self:
        """Set the level of the limits and the better direction of metrics; return the table."""
        self.level, self.better = level, better
        return self

    def to_dict(self) -> dict[str, list[Json]]:
        """Return the columns as lists, ready for JSON; dates become ISO 8601 text."""
        return {
            title: [x.isoformat() if isinstance(x, datetime.date) else x for x in column.tolist()]
            for title, column in self.items()
        }

    def to_arrow(self) -> Foreign:
        """Return a pyarrow table; columns with keys of several kinds become text."""
        try:
            arrow = importlib.import_module("pyarrow")
        except ImportError as error:
            raise ImportError(
                "to_arrow() needs pyarrow: pip install 'streammetrics[io]', or ask for to_dict()"
            ) from error
        return arrow.table({title: _alike(column) for title, column in self.items()})

    def __repr__(self) -> str:
        """Return the table as text, one row a slice, with missing keys spelled out."""
        return self._told().text()

    __str__ = __repr__

    def _table(self) -> Table:
        return Table({}, {title: _alike(column) for title, column in self.items()})

    def _repr_html_(self) -> str:
        return self._told().html()

    def to_markdown(self) -> str:
        """Return the table as Markdown, with missing keys spelled out."""
        return self._told().markdown()

    def to_latex(self) -> str:
        r"""Return the table as a LaTeX tabular, for ``\\usepackage{booktabs}``."""
        return self._told().latex()

    def _told(self) -> Table:
        """Return the table for display: missing keys and the slice of all rows are spelled out."""
        columns = {title: column.tolist() for title, column in self.items()}
        for title in self._keys():
            columns[title] = [
                key_text(part) if part is not None or title in self._sliced(at) else ""
                for at, part in enumerate(columns[title])
            ]
        if "by" in columns:
            columns["by"] = [kind or "all rows" for kind in columns["by"]]
        return Table({}, columns)

    def _keys(self) -> list[str]:
        """Return the titles of the columns to slice by."""
        titles = list(self)
        before = titles[: titles.index("n_rows")] if "n_rows" in titles else []
        return [title for title in before if title != "by"]

    def _sliced(self, at: int) -> list[str]:
        """Return the columns of a slice's key; a name may contain commas."""
        keys = self._keys()
        text, found = self["by"][at] if "by" in self else "", []
        if "by" not in self:
            return keys
        while text:
            fits = [key for key in keys if text == key or text.startswith(f"{key}, ")]
            if not fits:
                break
            found.append(max(fits, key=len))
            text = text[len(found[-1]) + 2 :]
        return found

    def _whole(self) -> int | None:
        """Return the place of the slice of all rows, or ``None`` if there is none."""
        if "by" in self:
            return next((at for at, text in enumerate(self["by"].tolist()) if not text), None)
        return 0 if len(self) and not self._keys() else None

    def __len__(self) -> int:
        return len(next(iter(self.values()))) if self.keys() else 0


def _alike(column: Array) -> Array | list[object]:
    """Return a column; keys of several kinds become text."""
    if column.dtype != object:
        return column
    items: list[object] = column.tolist()
    if len({type(item) for item in items if item is not None}) > 1:
        items = [None if item is None else str(item) for item in items]
    return items


def key_columns(
    kinds: Sequence[tuple[tuple[str, ...], Sequence[tuple[Part, ...] | None]]],
) -> dict[str, Array]:
    """Return the columns that identify slices, from the columns and keys of each kind."""
    every = dict.fromkeys(columns for columns, _ in kinds)
    titles = dict.fromkeys(title for columns in every for title in columns)
    result: dict[str, Array] = {}
    if len(every) > 1:
        result["by"] = objects(
            chain.from_iterable([", ".join(columns)] * len(keys) for columns, keys in kinds)
        )
    for title in titles:
        parts = [_parts_at(title, columns, keys) for columns, keys in kinds]
        result[title] = objects(chain.from_iterable(parts))
    return result


def _parts_at(
    title: str, columns: tuple[str, ...], keys: Sequence[tuple[Part, ...] | None]
) -> list[object]:
    """Return the values of a column for the slices of a kind."""
    if title not in columns:
        return [None] * len(keys)
    place = columns.index(title)
    folded = None in keys  # a key with this text is then quoted, as in the name of its slice
    parts: list[object] = []
    for key in keys:
        part = OTHERS if key is None else key[place]
        text = type(part) is Bin or (folded and key is not None and part == OTHERS)
        parts.append(_quoted(part) if text else part)
    return parts


def objects(items: Iterable[object]) -> Array:
    """Return an object array of the items."""
    listed = list(items)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array


def named(columns: tuple[str, ...], parts: tuple[Part, ...] | None) -> str:
    """Return the name of a slice, such as ``country=DE, device=missing``.

    Ambiguous text is quoted: ``country="missing"``, ``city="a, b=c"``.
    """
    if not columns:
        return "all rows"
    values = [OTHERS] * len(columns) if parts is None else [_quoted(part) for part in parts]
    return ", ".join(f"{title}={value}" for title, value in zip(columns, values, strict=True))


def key_text(part: object) -> str:
    """Return a key as text; different keys have different texts, also where blanks do not show."""
    if part is None:
        return MISSING
    text = str(part)
    ambiguous = text in {"", MISSING} or text != text.strip() or text.startswith('"')
    return json.dumps(text, ensure_ascii=False) if ambiguous else text


def _quoted(part: Part) -> str:
    """Return a key as it appears in the name of a slice."""
    if isinstance(part, str) and (part == OTHERS or set(part) & set(',="')):
        return json.dumps(part, ensure_ascii=False)
    return key_text(part)


def limit_columns(
    name: str, *kinds: Sequence[Interval[object]] | tuple[Floats, Floats]
) -> dict[str, Array]:
    """Return the columns of both limits of one metric, from its limits by kind of slice."""
    low, high = (
        value_columns(
            name,
            *(
                limits[side] if isinstance(limits, tuple) else [limit[side] for limit in limits]
                for limits in kinds
            ),
        )
        for side in (0, 1)
    )
    sides: dict[str, Array] = {}
    for (title, lower), upper in zip(low.items(), high.values(), strict=True):
        sides |= {f"{title}_low": lower, f"{title}_high": upper}
    return sides


def value_columns(name: str, *kinds: Floats | Sequence[object]) -> dict[str, Array]:
    """Return the columns of one metric: a single one, or one for each class, query or output.

    Values are given by kind of slice, as arrays if all are floats. Curves get no columns, because
    the points of different slices differ.
    """
    arrays = [values for values in kinds if isinstance(values, np.ndarray)]
    if arrays and len(arrays) == len(kinds):
        return {name: np.concatenate(arrays)}
    values = [value for of_kind in kinds for value in _listed(of_kind)]
    if all(type(value) is float for value in values):
        return {name: np.array(values, np.float64)}
    if any(map(is_curve, values)):
        return {}
    rows = [{of: row["value"] for of, row in numbers(value)} for value in values]
    titles = dict.fromkeys(of for row in rows for of in row)
    return {
        f"{name}_{of}" if of else name: _numbers([row.get(of, np.nan) for row in rows])
        for of in titles
    }


def _listed(values: Floats | Sequence[object]) -> Sequence[object]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _numbers(values: Sequence[object]) -> Array:
    array = np.array(values)
    return array if array.dtype.kind in "biuf" else objects(values)


def merged_tables(tables: Iterable[Mapping[str, Array]]) -> SliceTable:
    """Return one table with the columns of several.

    Raises:
        ValueError: Two columns have the same name.
    """
    result = SliceTable()
    for table in tables:
        twice = next((title for title in table if title in result), None)
        if twice is not None:
            raise ValueError(
                f"two columns of the result are called {twice!r}: rename the metric or the column "
                "sliced by"
            )
        result.update(table)
    return result
