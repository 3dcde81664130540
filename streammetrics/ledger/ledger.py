"""Merging with retries: states by shard, each of which counts once."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Generic, Self, cast

from streammetrics.core.accumulator import Locked
from streammetrics.core.errors import IncompatibleMetricsError, an
from streammetrics.core.mergeable import M_co, Mergeable, Stateful
from streammetrics.core.registry import registered_name
from streammetrics.ledger.shards import (
    Known,
    SealedShards,
    check_alike,
    contradiction,
    digest,
    known_to_both,
    later,
    read,
    shown,
    total,
    written,
)
from streammetrics.ledger.table import (
    CONTRADICTED,
    SEALED,
    Shard,
    as_attempt,
    as_id,
    as_ids,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streammetrics.core.mergeable import Description
    from streammetrics.core.types import Arrays, V_co
    from streammetrics.ledger.table import ShardId

_CHEAP = 1 << 18  # bytes of state up to which the notebook display of a ledger shows the value


class Ledger(Stateful, Generic[M_co]):
    """The states of shards, stored separately until they are sealed, so that each counts once.

    If tasks are retried or run twice, a plain merge counts a shard as often as it arrives. A ledger
    identifies shards by name. Adding the same state again changes nothing, and the state of a later
    attempt replaces those of earlier ones. Two different states of one attempt are a contradiction.
    It persists until a later attempt replaces it; until then, reading the value or sealing the
    shard raises. `merge` of ledgers is idempotent, commutative and associative, byte for byte. Any
    number of threads may add, merge, seal and read concurrently.

    Args:
        metric: The metric or set of all shards, without rows; by default that of the first shard
            added.

    Raises:
        IncompatibleMetricsError: From `add` and `merge`, which leave the ledger unchanged: a state
            has another configuration, or a sealed shard gets a later attempt or a different state.
            From `compute`, `merged`, `bounds`, `n_rows` and `seal`: a shard is contradicted, or
            ledgers sealed it separately, each together with other shards. Seal in one place, or
            merge a ledger that sealed all of them.

    Memory and cost:
        The states of the shards that are not sealed, one state for all sealed shards, and some 250
        bytes for each name. `add` takes a snapshot, which costs next to nothing. The first read
        after a change converts the added states to columns over all shards, in which they are
        saved, merged and compared at once.

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

    def __init__(self, metric: M_co | None = None) -> None:
        if metric is not None and (_mergeable(metric).n_rows or metric.n_omitted):
            raise ValueError(
                f"{shown(metric)} has already seen {metric.n_rows:,} rows: add() it as a shard"
            )
        self._guard = Locked()  # a separate object, because a class compared by state has no hash
        self._changes = 0
        self._put(Known.of(None if metric is None else metric.copy()))

    def _put(self, known: Known) -> None:
        self._known = known  # its dictionary `added` must not be shared with another ledger
        self._changed()

    def _changed(self) -> None:
        self._changes += 1
        self._total: Mergeable | None = None  # the cached result of `merged`

    def _seen(self) -> Known:
        """Return an immutable snapshot of the state, with all shards in the table."""
        with self._guard._lock:
            changes, known = self._changes, self._known
            known = known._replace(added=dict(known.added))
        if known.added:
            known = known.folded()
            with self._guard._lock:
                if self._changes == changes:
                    self._known = known._replace(added={})
        return known

    def add(self, shard_id: ShardId, metric: Mergeable, attempt: int = 1) -> Self:
        """Add the state of a shard and return this ledger; on an error, it is unchanged.

        Args:
            shard_id: The shard's name, a string or an integer; the same for every attempt.
            metric: The metric or set; its current state is added.
            attempt: A non-negative integer, larger for later attempts. A state of an earlier
                attempt than the stored one changes nothing. A different state of the same attempt
                is a contradiction, see `contradicted`.
        """
        name, number = as_id(shard_id), as_attempt(attempt)
        checked = self._known.empty
        if checked is None or not checked._alike(metric):
            check_alike(checked, _mergeable(metric))
        state = metric._accumulator.part(metric._plan)
        blank = metric.copy().reset() if checked is None else None
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, before = self._changes, self._known
                known = Known.of(blank) if before.empty is None else before
                empty = known.empty
                assert empty is not None
                if empty is not checked:
                    check_alike(empty, metric)
                shard, held = Shard(number, state), known.get(name)
                if held is not None:
                    if held.kind == SEALED:
                        raise IncompatibleMetricsError(
                            f"shard {name!r} is sealed: it takes no further state"
                        )
                    shard = later(name, held, shard, empty)
            # The dictionary belongs to this ledger; copying it would take time in all its shards.
            known.added[name] = shard
            self._known = known
            self._changed()
        return self

    def merge(self, *others: Ledger) -> Self:
        """Merge other ledgers into this one and return it; on an error, it is unchanged."""
        for other in others:
            if not isinstance(other, Ledger):
                raise IncompatibleMetricsError(
                    f"cannot merge {other!r} into {self!r}: add it as a shard, by name"
                )
        theirs = [other._seen() for other in others]  # before locking: no thread holds two locks
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, known = self._changes, self._known
                before = known
                for other_known in theirs:
                    known = known_to_both(known, other_known)
            self._known = known
            self._changed()
        return self

    def seal(self, ids: Iterable[ShardId]) -> Self:
        """Merge finished shards into one state that accepts no changes to them; return this ledger.

        Shards sealed earlier become part of the same state.

        Raises:
            ValueError: A shard was never added; the ledger is unchanged.
            IncompatibleMetricsError: A shard is contradicted, or shards were sealed in two places,
                see `merged`; the ledger is unchanged.
        """
        names = as_ids(ids)
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, after = self._changes, self._known
                before = after
                found = {name: after.get(name) for name in names}
                if unknown := [name for name in names if found[name] is None]:
                    raise ValueError(
                        f"no state was added for {listed(unknown)}: it cannot be sealed"
                    )
                shards = {name: shard for name, shard in found.items() if shard is not None}
                for name, shard in shards.items():
                    if shard.kind == CONTRADICTED:
                        raise contradiction(name, shard.attempt)
                fresh = {
                    name: (shard.attempt, shard.state)
                    for name, shard in shards.items()
                    if shard.state is not None
                }
                if after.empty is not None and (fresh or (names and len(after.blocks) > 1)):
                    after = after.folded()
                    assert after.empty is not None
                    sealed = {
                        name: Shard(attempt, None, digest(state, after.empty))
                        for name, (attempt, state) in fresh.items()
                    }
                    together = frozenset(fresh).union(*(block.names for block in after.blocks))
                    block = SealedShards(together, total(after, fresh))
                    after = after._replace(added=sealed, blocks=(block,)).folded()
            self._known = after
            self._changed()
        return self

    def missing(self, expected_ids: Iterable[ShardId]) -> list[ShardId]:
        """Return the expected names without a state, in their order."""
        known = self._known
        return [name for name in as_ids(expected_ids) if name not in known]

    def merged(self) -> M_co:
        """Return a new metric or set with the rows of all shards.

        Raises:
            ValueError: There are no shards, and the ledger was created without a metric.
            IncompatibleMetricsError: Shards have incompatible kinds of rows, a shard is
                contradicted, or shards were sealed in two places, each time together with others;
                the message names the shards.
        """
        with self._guard._lock:
            found, changes = self._total, self._changes
        if found is None:
            known = self._seen()
            for name in known.having(CONTRADICTED):
                raise contradiction(name, self.attempts[name])
            found = total(known)
            with self._guard._lock:
                if self._changes == changes:
                    self._total = found
        return cast("M_co", found.copy())

    def compute(self: Ledger[Mergeable[V_co]]) -> V_co:
        """Return the value over all shards, as the metric's own `compute` does."""
        return self.merged().compute()

    def bounds(self) -> Any:
        """Return certain limits of the exact value over all shards."""
        return self.merged().bounds()

    def copy(self) -> Self:
        """Return an independent ledger with the same state."""
        return self._of(self._seen())

    @property
    def ids(self) -> list[ShardId]:
        """The names of all shards, sorted, integers first."""
        table = self._seen().table
        return [] if table is None else table.names

    @property
    def attempts(self) -> dict[ShardId, int]:
        """The current attempt of each shard, in the order of `ids`."""
        table = self._seen().table
        return (
            {} if table is None else dict(zip(table.places, table.attempts.tolist(), strict=True))
        )

    @property
    def sealed(self) -> list[ShardId]:
        """The names of the sealed shards, sorted, integers first."""
        return self._seen().having(SEALED)

    @property
    def contradicted(self) -> list[ShardId]:
        """The names of shards with two states of their last attempt, sorted, integers first."""
        return self._seen().having(CONTRADICTED)

    def __len__(self) -> int:
        return self._known.size

    def __contains__(self, shard_id: object) -> bool:
        return shard_id in self._known

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return 0 if self._known.empty is None else int(self.merged().n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        known = self._seen()
        own = 0 if known.table is None else known.table.nbytes
        return own + sum(block.state.nbytes for block in known.blocks)

    @property
    def _types(self) -> tuple[type, ...]:
        empty = self._known.empty
        return () if empty is None else empty._types

    def __repr__(self) -> str:
        known = self._seen()
        of = "" if known.empty is None else shown(known.empty)
        count, odd = known.size, len(known.having(CONTRADICTED))
        told = f"{count:,} shard{'s' * (count != 1)}, {len(known.having(SEALED)):,} sealed"
        return f"Ledger({of}) <{told}{f', {odd:,} contradicted' if odd else ''}>"

    def _repr_html_(self) -> str:
        line = f"<p>{escape(repr(self))}</p>"
        if self._known.empty is None or self.contradicted or self.nbytes > _CHEAP:
            return line
        try:
            merged: Any = self.merged()
            return line + str(merged._repr_html_())
        except IncompatibleMetricsError:  # `merged` reports it
            return line

    def _describe(self) -> Description:
        """Return the class name, and the shards as arrays."""
        return {"class": registered_name(type(self))}, written(self._seen()), ""

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:  # noqa: ARG003 - it holds only the class
        """Return the ledger from its description."""
        return cls._of(read(arrays))

    @classmethod
    def _of(cls, known: Known) -> Self:
        """Return a ledger with the given state."""
        ledger = cls()
        ledger._put(known)
        return ledger


def _mergeable(metric: object) -> Mergeable:
    if not isinstance(metric, Mergeable):
        raise TypeError(f"{an(type(metric).__name__)} is not a metric or a MetricSet")
    return metric
