"""Names of columns: one, a list or a glob of them, and those near a mistyped one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from numpy import iterable

from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_LISTED = 20


def natural(text: str) -> list[Any]:
    """Return the key under which p2 sorts before p10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]


def meant(name: str, names: Iterable[str]) -> str:
    """Return the question which of `names` was meant, as a part of a message; mostly none is."""
    by_lower = {known.lower(): known for known in names if isinstance(known, str)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if not close:
        return ""
    return f"; did you mean {' or '.join(repr(by_lower[key]) for key in close)}?"


def near(name: str, names: Iterable[str], what: str = "there are") -> str:
    """Return the names to choose from, as the end of a message, those like `name` first."""
    names = list(names)
    text = meant(name, names)
    if not names:
        return f"{text}; {what} none"
    return f"{text or ';'} {what[:1].upper() + what[1:] if text else what}: {_some(names)}"


def as_renamed(columns: object) -> dict[str, str]:
    """Return the user's column, or several as one text, for each input that `columns` renames."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"columns={columns!r}: expected a dictionary from an input's name to your column, such "
            "as {'y_true': 'label', 'y_score': 'score'}"
        )
    return {name: as_text(asked) for name, asked in columns.items()}


def as_text(columns: str | Sequence[str]) -> str:
    """Return a name, or several as one text."""
    if isinstance(columns, str):
        return columns
    if not iterable(columns) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"{columns!r} is no column: expected its name, or a list of names; where these are "
            "numbers or tuples, pass the columns by name, or rename them"
        )
    odd = [name for name in columns if "," in name or not name.strip()]
    if odd or not columns:
        raise ValueError(
            f"{list(columns)!r} cannot be a list of columns: "
            f"{f'{odd[0]!r} cannot stand in one, rename it' if odd else 'it is empty'}"
        )
    return ",".join(columns)


def listed(text: str) -> list[str]:
    """Return the names of a list ``"p0,p1"``."""
    return [part.strip() for part in text.split(",")]


def check_single(wanted: Iterable[str], names: Sequence[str], where: str = "") -> None:
    """Raise where one of the columns that are read is there more than once."""
    if len(set(names)) == len(names):
        return
    for name in wanted:
        if (count := names.count(name)) > 1:
            raise InvalidBatchError(
                f"{where}{count} columns are called {name!r}: rename them, so that it is said "
                "which one is read"
            )


def asks_for(text: str, name: str) -> bool:
    """Whether a name, list or glob may mean the column."""
    return name == text or name in listed(text) or (is_glob(text) and fnmatchcase(name, text))


def is_several(text: str) -> bool:
    """Whether a text may mean more than the column of its name."""
    return "," in text or is_glob(text)


def is_glob(text: str) -> bool:
    """Whether a text may match several names."""
    return any(sign in text for sign in "*?[")


def parted(
    text: str, names: Sequence[str], taken: Collection[str], where: str = ""
) -> tuple[str, ...]:
    """Return the columns that a text asks for: the one of this name, a list, or a glob's.

    A glob takes none of those `taken` by name, and has the natural order: p2 before p10.

    Raises:
        InvalidBatchError: There is no such column, or a glob means numbered ones and others; the
            message begins with `where`.
    """
    if text in names:
        return (text,)
    parts = listed(text)
    missing = [part for part in parts if part not in names]
    if missing and is_glob(text):
        found = [name for name in names if fnmatchcase(name, text) and name not in taken]
        if not found:
            raise InvalidBatchError(f"{where}no column matches {text!r}{near(text, names)}")
        _check_alike(text, found, where)
        return tuple(sorted(found, key=natural))
    if missing:
        raise InvalidBatchError(f"{where}no column {missing[0]!r}{near(missing[0], names)}")
    return tuple(parts)


def _check_alike(glob: str, found: Sequence[str], where: str) -> None:
    """Raise where a glob means p0 and p1, and ``predicted`` as well, which it takes for a third."""
    digits = re.escape(glob).replace(r"\*", "[0-9]+")
    numbered = [name for name in found if re.fullmatch(digits, name)]
    others = [name for name in found if name not in numbered]
    if len(numbered) > 1 and others:
        first, *_, last = sorted(numbered, key=natural)
        raise InvalidBatchError(
            f"{where}{glob!r} means {len(numbered)} numbered columns, {first} to {last}, and others"
            f": {_some(others)}; {glob.replace('*', '[0-9]*')!r} means the numbered ones, and a "
            "list such as 'a,b,c' those of your choice"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{', '.join(map(str, names[:_LISTED]))}{more}"
