"""Keys as text: what a group is named by, of several columns and of any kind, in one string.

A key is a JSON list with an entry for each column: a string, an integer, true or false, ``null``
where the value is missing, ``{"date": "2026-11-22"}``, or for a bin its two edges,
``{"bin": [18, 30]}``, the outer ones null. Equal keys are equal text, so they can be
sorted, joined and written as labels are; for people they are sorted by their values.

Units of a sample have integers as keys: their hashes with the highest bit set. If there are too
many, they are united in groups 0 to 63.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import Hint, InvalidBatchError, StateFormatError
from streammetrics.statistics.points import label_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.types import Array, Bools, Ints, Places

GROUPS = 64  # of units, by the lowest bits of their hashes
OTHER = ""  # the key of what was folded away, which is no list

_RANKS = {bool: 0, int: 1, str: 3}


class Bin(NamedTuple):
    """A range of numbers, ``low <= x < high``; an edge that is None is infinitely far."""

    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None:
            return f"< {self.high}"
        return f">= {self.low}" if self.high is None else f"[{self.low}, {self.high})"


Part = str | int | bool | datetime.date | Bin | None


def encoded(part: Part) -> str:
    """Return one part of a key as JSON."""
    if type(part) is int:
        return str(part)
    if isinstance(part, Bin):
        return f'{{"bin":[{_edge(part.low)},{_edge(part.high)}]}}'
    if isinstance(part, datetime.date):
        return f'{{"date":"{part.isoformat()}"}}'
    if isinstance(part, str):
        return encode_basestring_ascii(part)
    return "null" if part is None else str(part).lower()  # true or false


def _edge(edge: float | None) -> str:
    return "null" if edge is None else json.dumps(edge)


def text_of(parts: Iterable[str]) -> str:
    """Return the key whose parts are `encoded` so."""
    return f"[{','.join(parts)}]"


def parts_of(text: str) -> tuple[Part, ...] | None:
    """Return the parts of a key, None of `OTHER`."""
    if text == OTHER:
        return None
    return tuple(map(_part, json.loads(text)))


def parts_of_each(texts: Sequence[str]) -> list[tuple[Part, ...] | None]:
    """Return the parts of many keys, which are read as one list.

    >>> parts_of_each(['["a",1]', OTHER])
    [('a', 1), None]
    """
    text = f"[{','.join([text or 'null' for text in texts])}]"
    found = json.loads(text)
    if "{" not in text:
        return [None if parts is None else tuple(parts) for parts in found]
    return [None if parts is None else tuple(map(_part, parts)) for parts in found]


def _part(value: Any) -> Part:
    if isinstance(value, dict):
        if "date" in value:
            return datetime.date.fromisoformat(value["date"])
        return Bin(*value["bin"])
    part: Part = value
    return part


def checked(texts: Sequence[str], width: int) -> None:
    """Raise `StateFormatError` where a text of a state is no key of so many columns."""
    for text in texts:
        try:
            parts = parts_of(text)
            good = parts is None or (
                len(parts) == width and text == text_of(map(encoded, parts)) and _sound(parts)
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            good = False
        if not good:
            raise StateFormatError(f"{str(text)[:60]!r} is not a key of {width} columns")


def _sound(parts: tuple[Part, ...]) -> bool:
    return all(
        math.isfinite(edge)
        for part in parts
        if isinstance(part, Bin)
        for edge in part
        if edge is not None
    )


def order(part: Part) -> tuple[object, ...]:
    """Return what parts are sorted by: values of one kind by size, the missing one last."""
    if part is None:
        return (9,)
    if isinstance(part, Bin):
        return (2, -math.inf if part.low is None else part.low)
    if isinstance(part, datetime.date):
        return (4, part.isoformat())
    return (_RANKS[type(part)], part)


def lowest(texts: Array, most: int) -> Bools:
    """Return a mask of those `most` keys whose hashes are lowest; `OTHER` is not among them.

    A key among the lowest of all is among the lowest of any part of them, so that parts can be
    cut before they are joined.
    """
    keep = texts != OTHER if texts.dtype.kind == "U" else np.ones(len(texts), np.bool_)
    places = np.flatnonzero(keep)
    if places.size > most:
        hashes = [
            int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "little")
            for text in texts[places].tolist()
        ]
        kept = places[np.argsort(np.array(hashes, np.uint64), kind="stable")[:most]]
        keep = np.zeros(len(texts), np.bool_)
        keep[kept] = True
    return keep


def unit_keys(units: Array) -> Ints:
    """Return a key of each unit, its hash, which is negative; that of a group is not."""
    keys: Ints = (label_hashes(units, 0) | np.uint64(1 << 63)).view(np.int64)
    return keys


def united(keys: Ints) -> tuple[Ints, Places]:
    """Return the groups of units, sorted, and the place of each key among them.

    >>> united(np.array([-3, -1, 0, 63]))
    (array([ 0, 61, 63]), array([1, 2, 0, 2]))
    """
    return np.unique(keys & (GROUPS - 1), return_inverse=True)


def too_many(texts: Sequence[str], titles: Sequence[str], most: int) -> InvalidBatchError:
    """Return the error of too many groups, which names the column they come from."""
    columns = list(zip(*(parts for text in texts if (parts := parts_of(text))), strict=True))
    counts = {title: len(set(values)) for title, values in zip(titles, columns, strict=True)}
    worst = max(counts, key=lambda title: counts[title])
    return InvalidBatchError(
        f"by {', '.join(map(repr, titles))} there are {len(texts):,} slices and more, beyond the "
        f"limit of {most:,}: {worst!r} alone has {counts[worst]:,} values",
        hint=Hint(
            "leave it out, bin it with {bins}, or raise the limit, as {max_slices}",
            bins=worst,
            max_slices=10 * most,
        ),
    )
