"""Validation of the names and attempt numbers of shards."""

from __future__ import annotations

import operator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ShardId = str | int

LONGEST = 4096  # maximum length of a name, in characters
LARGEST = 1 << 128  # integer names must be smaller in magnitude
LAST = (1 << 63) - 1  # largest attempt number


def as_id(value: object) -> ShardId:
    """Return the name of a shard as a Python string or integer."""
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise ValueError(f"the name of a shard has {len(value):,} characters, of {LONGEST:,}")
        return str(value)
    if type(value) is int and -LARGEST < value < LARGEST:
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= LARGEST:
            raise ValueError("the number of a shard takes more than 128 bits")
        return int(value)
    raise TypeError(f"a shard is named by a string or an integer, not by {value!r}")


def as_ids(values: Iterable[ShardId]) -> list[ShardId]:
    """Return the distinct names of shards, in their order."""
    if isinstance(values, str):
        raise TypeError(f"{values!r} is one name; pass a list of names")
    return list(dict.fromkeys(map(as_id, values)))


def as_attempt(value: object) -> int:
    """Return an attempt number as a Python integer."""
    if type(value) is int and 0 <= value <= LAST:
        return value
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"attempt={value!r} is not an integer")
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"attempt={number} is negative")
    if number > LAST:
        raise ValueError("the number of an attempt takes more than 63 bits")
    return number


def ordered(names: Iterable[ShardId]) -> list[ShardId]:
    """Return names sorted, integers first."""
    numbers: list[int] = []
    texts: list[str] = []
    for name in names:
        if isinstance(name, str):
            texts.append(name)
        else:
            numbers.append(name)
    return [*sorted(numbers), *sorted(texts)]


def listed(names: Collection[ShardId]) -> str:
    """Return up to five of the names as text for a message."""
    some = ", ".join(map(repr, islice(names, 5)))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"shard{'s' * (len(names) != 1)} {some}{more}"
