"""Merges that can be retried: states by shard, each of which counts once."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.stateful import Stateful, from_bytes, registered_name
from streammetrics.ledger.shards import (
    Known,
    Shard,
    ShardId,
    as_id,
    check_alike,
    joined,
    later,
    listed,
    of_parts,
    order,
    parts,
    shown,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

__all__ = ["Ledger"]


class Ledger(Stateful):
    """The states of shards, kept apart until they are sealed, so that each counts once.

    Where tasks are retried, or run twice for speed, a plain merge counts a shard as often as it
    arrives. A ledger knows shards by name: the same state again changes nothing, the state of a
    later attempt replaces the earlier one, and what contradicts raises. `merge` of ledgers is
    idempotent, commutative and associative to the byte.

    Args:
        metric: The metric or set that all shards are of; without it, the first one that is added
            says so. It has to be empty.

    Raises:
        IncompatibleMetricsError: From `add` and `merge`, which then change nothing: a state is of
            another configuration, a shard has two states at one attempt, it was sealed, or two
            ledgers sealed shards apart of which they share some but not all.

    Memory and cost:
        The states of the shards that are not sealed, one state for those that are, and some 200
        bytes for each of their names. `add` makes and hashes the bytes of one state, which tells
        it from others; the first `compute` after a change merges all states.

    Example:
        >>> import streammetrics as sm
        >>> ledger = sm.Ledger(sm.Mean())
        >>> monday, tuesday = sm.Mean().update([1.0, 2.0]), sm.Mean().update([6.0])
        >>> _ = ledger.add("monday", monday).add("tuesday", tuesday).add("monday", monday)
        >>> ledger.compute()
        3.0
        >>> _ = ledger.add("tuesday", sm.Mean().update([9.0]), attempt=2)
        >>> ledger.compute(), ledger.missing(["monday", "tuesday", "wednesday"])
        (4.0, ['wednesday'])
        >>> ledger.seal(["monday"])
        Ledger(Mean()) <2 shards, 1 sealed>
    """

    def __init__(self, metric: Mergeable | None = None) -> None:
        if metric is not None and (_mergeable(metric).n_rows or metric.n_omitted):
            raise ValueError(
                f"{shown(metric)} has already seen {metric.n_rows:,} rows: add() it as a shard"
            )
        self._put(Known(None if metric is None else metric.copy(), {}, None))

    def _put(self, known: Known) -> None:
        self._known = known
        self._total: Mergeable | None = None  # what `merged` found, until something changes

    def add(self, shard_id: ShardId, metric: Mergeable, attempt: int = 1) -> Self:
        """Take the state of a shard, or raise and be as before; return this ledger.

        Args:
            shard_id: The shard's name, a string or an integer: the same for every attempt.
            metric: The state; it is copied.
            attempt: A number from 0 on that is larger for a later attempt. A state of an earlier
                attempt than the one that is held changes nothing.
        """
        name, number = as_id(shard_id), operator.index(attempt)
        if number < 0:
            raise ValueError(f"attempt={number} is negative")
        empty, shards, _ = self._known
        check_alike(empty, _mergeable(metric))
        held = shards.get(name)
        if held is not None and held.is_sealed:
            raise IncompatibleMetricsError(f"shard {name!r} is sealed: it takes no further state")
        new = Shard.of(number, metric)
        kept = new if held is None else later(name, held, new)
        if empty is None:
            self._put(Known(metric.copy().reset(), {name: kept}, None))
        else:
            # The dictionary is this ledger's own: a copy would cost as much as all shards so far.
            self._total = None
            shards[name] = kept
        return self

    def merge(self, *others: Self) -> Self:
        """Take what other ledgers hold, or raise and be as before; return this ledger."""
        known = self._known
        for other in others:
            if not isinstance(other, Ledger):
                raise IncompatibleMetricsError(
                    f"cannot merge {other!r} into {self!r}: add it as a shard, by name"
                )
            known = joined(known, other.known)
        self._put(known)
        return self

    def seal(self, ids: Iterable[ShardId]) -> Self:
        """Fold finished shards into one state, which refuses them ever after; return this ledger.

        Raises:
            ValueError: One of them was never added; nothing has changed.
        """
        names = _ids(ids)
        empty, shards, _ = self._known
        if unknown := self.missing(names):
            raise ValueError(f"no state was added for {listed(unknown)}: it cannot be sealed")
        states = self._known.states
        fresh = {name: states[name] for name in names if name in states}
        if fresh:
            sealed = {name: shards[name]._replace(state=None) for name in fresh}
            self._put(Known(empty, {**shards, **sealed}, total(self._known, fresh)))
        return self

    def missing(self, expected_ids: Iterable[ShardId]) -> list[ShardId]:
        """Return those of the ids, in their order, of which no state was added."""
        return [name for name in _ids(expected_ids) if name not in self._known.shards]

    def merged(self) -> Any:
        """Return a new metric, or set, that has seen what all shards have.

        Raises:
            ValueError: There are no shards, and the ledger was not told what they are of.
            IncompatibleMetricsError: Shards saw different kinds of rows; one of them is named.
        """
        if self._total is None:
            self._total = total(self._known, self._known.states)
        return self._total.copy()

    def compute(self) -> Any:
        """Return the value over all shards; what it returns and warns of is the metric's own."""
        return self.merged().compute()

    def bounds(self) -> Any:
        """Return what certainly holds the exact value over all shards."""
        return self.merged().bounds()

    def copy(self) -> Self:
        """Return an independent ledger of the same state."""
        return self.of(self._known._replace(shards=dict(self._known.shards)))

    @property
    def ids(self) -> list[ShardId]:
        """The names of all shards, sorted, integers first."""
        return sorted(self._known.shards, key=order)

    @property
    def attempts(self) -> dict[ShardId, int]:
        """The attempt of each shard whose state counts, in the order of `ids`."""
        return {name: self._known.shards[name].attempt for name in self.ids}

    @property
    def sealed(self) -> list[ShardId]:
        """The names of the sealed shards, sorted, integers first."""
        return sorted(self._known.sealed, key=order)

    def __len__(self) -> int:
        return len(self._known.shards)

    def __contains__(self, shard_id: object) -> bool:
        return shard_id in self._known.shards

    @property
    def n_rows(self) -> int:
        """Rows seen by all shards."""
        return 0 if self._known.empty is None else int(self.merged().n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        _, shards, base = self._known
        states = [base, *(shard.state for shard in shards.values())]
        digests = sum(len(shard.digest) for shard in shards.values())
        return digests + sum(state.nbytes for state in states if state is not None)

    @property
    def _types(self) -> tuple[type, ...]:
        empty = self._known.empty
        return () if empty is None else empty._types

    def __repr__(self) -> str:
        of = "" if self._known.empty is None else shown(self._known.empty)
        count, sealed = len(self), len(self.sealed)
        return f"Ledger({of}) <{count:,} shard{'s' * (count != 1)}, {sealed:,} sealed>"

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a file says of the shards, and their states as arrays of bytes."""
        shards, arrays = parts(self._known)
        return {"class": registered_name(type(self)), "shards": shards}, dict(arrays)

    @classmethod
    def _rebuild(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the ledger that was described."""
        return cls.of(of_parts(meta.get("shards"), arrays, from_bytes))

    @property
    def known(self) -> Known:
        """The whole state."""
        return self._known

    @classmethod
    def of(cls, known: Known) -> Self:
        """Return a ledger of a state."""
        ledger = cls()
        ledger._put(known)
        return ledger


def _mergeable(metric: Any) -> Mergeable:
    if not isinstance(metric, Mergeable):
        raise TypeError(f"a {type(metric).__name__} is not a metric or a MetricSet")
    return metric


def _ids(ids: Iterable[ShardId]) -> list[ShardId]:
    if isinstance(ids, str):
        raise TypeError(f"{ids!r} is one name; pass a list of names")
    return list(dict.fromkeys(map(as_id, ids)))
