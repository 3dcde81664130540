"""Functions that let events of one form in: they run for each event, and are written out for it.

A row of scalars is good where a number lies between numbers that the schemas have accepted, and a
label is one that they have. What is not is for others to look at.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.live.ids import IDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from streammetrics.core.types import Options

    # What values of a column are that wait together: numbers, labels of one type, or arrays.
    Sort = Literal["number", "alone"] | type | tuple[tuple[int, ...], np.dtype[Any]]

VERSIONS = 1 << 63  # below which they are
_HEADS = {
    "time": "(_type(time) is _float or _type(time) is _int) and 0 <= time < _until",
    "id": "_type(id) in _ids",
    "version": "(version is _version or _type(version) is _int and 0 <= version < _versions)",
}


def known_names(sorts: Sequence[Sort]) -> Options:
    """Return the global names of functions that know no number and no label to be good yet."""
    types = {"_type": type, "_len": len, "_float": float, "_int": int, "_str": str, "_bool": bool}
    known = {**types, "_ids": IDS, "_version": 1, "_versions": VERSIONS, "_until": 0.0}
    for place, sort in enumerate(sorts):
        if sort == "number":
            known |= {f"_low_{place}": 1.0, f"_high_{place}": 0.0}
        else:
            known |= {f"_among_{place}": set()}
    return known


def _is_known(value: str, place: int, sort: Sort) -> str:
    if sort == "number":
        kind = f"(_type({value}) is _float or _type({value}) is _int)"
        return f"{kind} and _low_{place} <= {value} <= _high_{place}"
    if isinstance(sort, type):
        return f"_type({value}) is _{sort.__name__} and {value} in _among_{place}"
    return "False"  # arrays are looked at, each of them


def source_of_knows(names: Sequence[str], sorts: Sequence[Sort]) -> str:
    """Return a function that says whether columns are known to be good."""
    values = [f"_value_{place}" for place in range(len(names))]
    taken = [f"{value} = columns[{name!r}]" for value, name in zip(values, names, strict=True)]
    known = map(_is_known, values, range(len(names)), sorts)
    return f"""
def knows(columns):
    try:
        {"; ".join(taken)}
    except KeyError:  # of another column
        return False
    return {" and ".join([f"_len(columns) == {len(names)}", *known])}
"""


def source_of_entry(
    kind: str, heads: Sequence[str], names: Sequence[str], sorts: Sequence[Sort]
) -> str:
    """Return a function that takes an event of a kind, nothing where its columns are no names.

    It puts what is known to be good into `_values`, calls `_bring` when there are enough, and
    leaves all else to `_take`; it returns `_live`.
    """
    if not all(name.isidentifier() and not iskeyword(name) and name[0] != "_" for name in names):
        return ""
    if {*heads} & {*names}:
        return ""
    first = [f"{head}=_version" if head == "version" else head for head in heads]
    known = [_HEADS[head] for head in heads]
    known += map(_is_known, names, range(len(names)), sorts)
    given = ", ".join(f"{name!r}: {name}" for name in names)
    return f"""
def {kind}(*, {", ".join([*first, *[f"{name}=_absent" for name in names]])}, **_others):
    if {" and ".join([*known, "not _others"])}:
        _rows = _values
        _rows += ({", ".join([*heads, *names])},)  # in one step, whatever other threads do
        if _len(_rows) >= _full:
            _bring()
        return _live
    return _take(({", ".join(heads)},), {{{given}}}, _others)
"""
