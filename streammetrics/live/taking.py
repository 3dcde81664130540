"""Events into the state of a stream: panes, and the rows that wait for labels or left without."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import as_column
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.live.checking import (
    Checks,
    Told,
    as_numbers,
    kinds_of,
    representative_rows,
    truth_of,
)
from streammetrics.live.events import SECOND, SliceKeys, alike, joined_events
from streammetrics.live.index import LABELLED, LabelRows, Predictions
from streammetrics.live.join import Join, Newest, Some, kept_rows, settle
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.panes import Panes
from streammetrics.live.possible.unlabelled import Left
from streammetrics.live.rows import batch_of
from streammetrics.live.telling import tell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.config import Config
    from streammetrics.live.events import Events

_PARTS = 64  # of the time that rows wait, after which those that are over leave


class Refused(NamedTuple):
    """Events that came too late to count, or contradict others; of no state: it is by arrival."""

    predictions: int = 0
    labels: int = 0
    observations: int = 0

    def plus(self, other: Refused) -> Refused:
        """Return both together."""
        return Refused(*map(operator.add, self, other))


class Taking:
    """A state that takes events, and the states of others; all of it is checked already.

    Args:
        suite: The metrics.
        config: The parameters, by which all rows agree on what is declared.
    """

    def __init__(self, suite: Mergeable, config: Config) -> None:
        self.suite, self.config, self.keys = suite, config, SliceKeys(suite)
        self.panes = Panes(suite._plan, config.tiers)
        self.panes.facts = config.declared.facts
        self.counted = Panes(COVERAGE._plan, config.tiers)
        self.left = Left(self.keys.inner, config.tiers)
        self.join = Join(config, (), truth_of(suite))
        self.newest = Newest(config.keep_rows)
        self.refused = Refused()
        self._kinds = kinds_of(suite)
        self._begin_checks()
        self._learn_default()
        self._settled = -1  # the newest time when rows left last

    # --- events ------------------------------------------------------------------------------

    def take(self, events: Events) -> None:
        """Take events, or raise and be as before."""
        if events.kind == "observe":
            rows = self._kept(events)
            batch = batch_of(self.suite, events.columns, checked=True)
            self.panes.add(events.times, batch)
            if rows is not None:
                self.newest.add(rows)
            self._advance(self.panes.newest)
        elif events.kind == "predict":
            self._predict(events)
        else:
            self._label(events)

    def take_parts(self, parts: Sequence[Events]) -> None:
        """Take events of any number of parts, many at once, as `take_good`."""
        for group in alike(parts):
            try:
                self.take(joined_events(group))
            except InvalidBatchError:
                for events in group:
                    self.take_good(events)

    def take_good(self, events: Events) -> None:
        """Take those events that go with all that came before, and count the others.

        Each was good where it came in; what contradicts it came from elsewhere meanwhile.
        """
        try:
            self.take(events)
        except InvalidBatchError as error:
            n = len(events.times)
            if n > 1:
                for half in (slice(None, n // 2), slice(n // 2, None)):
                    self.take_good(events.take(half))
                return
            if self.refused == Refused():
                tell(f"events contradict those of others, and are left out and counted: {error}")
            kinds = {"predict": Refused(n), "label": Refused(0, n), "observe": Refused(0, 0, n)}
            self.refused = self.refused.plus(kinds[events.kind])

    def columns(self, given: Mapping[str, object]) -> dict[str, Column]:
        """Return columns as rows keep them while they wait."""
        return {
            name: as_numbers(as_column(value, name), name, self._kinds.get(name, "number"))
            for name, value in given.items()
        }

    def predicted(self, given: Mapping[str, object]) -> dict[str, Column]:
        """Return the columns of predictions as they are kept while they wait."""
        return self.columns(self.keys.made(given))

    def _kept(self, events: Events) -> Some | None:
        """Return rows as they are kept one by one, where any are."""
        if not self.newest.most:
            return None
        return kept_rows(events.times, None, self.columns(events.columns))

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise where predictions, or labels, are not of one form with those before."""
        join = self.join
        if set(columns) == {join.label}:
            join.table.labels.check(columns[join.label])
        else:
            for cells in join.table.columns:
                cells.check(columns[cells.name])

    def _begin_checks(self) -> None:
        """Check rows that wait by what all have agreed on, which the panes know."""
        panes = self.panes  # and not this object, which is copied often and is to go at once
        default, facts = self.config.default_label, lambda: panes.facts
        self._checks = Checks(self.suite, self._kinds, facts, apart=True, default=default)
        self._told = Told(self._kinds)

    def _agree(self, columns: Mapping[str, Column]) -> None:
        """Learn what predictions, or labels, tell of themselves, or raise and be as before.

        They are read with the rows of panes, so that both have to agree before either counts.
        """
        self.check(columns)
        if not self.keys.kinds and self._told.covers(columns):
            return
        labels = set(columns) == {self.join.label}
        check = self._checks.labelled if labels else self._checks.predicted
        try:
            check(columns if self.keys.kinds else representative_rows(columns, self._kinds))
        except InvalidBatchError:
            check(columns)  # counts over all rows, and names the first bad one
            raise
        self.panes.facts = self._checks.facts
        if not self.keys.kinds:
            self._told.learn(columns)

    def _learn_default(self) -> None:
        """Learn what the label is that stands for those that never came."""
        value, name = self.config.default_label, self.join.label
        if value is None or not name:
            return
        try:
            self._agree(self.columns({name: [value]}))
        except InvalidBatchError as error:
            raise ValueError(f"default_label={value!r} is no label here: {error}") from error

    def learn(self) -> None:
        """Learn what rows that are kept one by one have agreed on, of a stream that was read."""
        table = self.join.table
        if len(table):
            every = table.at(np.arange(len(table)))
            self._agree(dict(zip(self.join.names, every.columns, strict=True)))
        labelled = np.flatnonzero(table.flags.values & LABELLED)
        if labelled.size:
            self._agree({self.join.label: table.labels.at(labelled)})
        alone = self.join.orphans()
        if alone is not None:
            self._agree({self.join.label: alone.values})
        for rows in self.newest.settled():
            self._checks.observed(rows.named)
            self.panes.facts = self._checks.facts

    def _predict(self, events: Events) -> None:
        _, times, columns, keys, _ = events
        self._agree(columns)
        join = self.join
        if not join.names:
            join.name(columns)
        new = Predictions(keys, times, tuple([columns[name] for name in join.names]))
        late = join.predict(new)
        self.refused = self.refused.plus(Refused(late))
        self._advance(int(times.max(initial=-1)))

    def _label(self, events: Events) -> None:
        _, times, columns, keys, versions = events
        self._agree(columns)
        (values,) = columns.values()
        self.join.table.labels.begin(values)
        late = self.join.put_labels(LabelRows(keys, times, versions, values))
        self.refused = self.refused.plus(Refused(0, late))

    def _advance(self, newest: int) -> None:
        """Learn of the newest time of a prediction or an observation."""
        self.panes.advance(newest)
        self.counted.advance(newest)
        self.left.advance(newest)
        self.join.newest = max(self.join.newest, newest)

    def tidy(self) -> None:
        """Do all that is due after events."""
        self.release()
        while self.rest():
            pass

    def rest(self) -> bool:
        """Do a piece of what rows in panes have left to do; return whether there was one."""
        return self.panes.rest() or self.counted.rest() or self.left.rest()

    def release(self) -> None:
        """Match labels, and let rows go that wait no longer, where that is due."""
        join, config = self.join, self.config
        if join.due:
            join.match()
        over = join.newest - self._settled > config.horizon // _PARTS
        if over or len(join.table) > config.max_pending:
            self.settle()

    def settle(self) -> None:
        """Bring the rows that wait no longer to the panes."""
        config = self.config
        if len(self.join.table) > config.max_pending and self.join.displaced < 0:
            rate = config.max_pending / config.horizon * SECOND
            tell(
                f"more than max_pending={config.max_pending:,} predictions wait, and the oldest "
                f"leave early: label_ttl + label_lateness holds {rate:,.1f} of them a second"
            )
        settle(self.suite, self.join, self.panes, self.counted, self.left, self.newest)
        self._settled = self.join.newest

    # --- states ------------------------------------------------------------------------------

    @property
    def counters(self) -> dict[str, int]:
        """What depends on arrival, and is counted beside the state."""
        told = self.refused._asdict()
        return {**told, "unmatched": self.join.unmatched, "dropped": self.panes.dropped}

    @counters.setter
    def counters(self, told: Mapping[str, int]) -> None:
        self.refused = Refused(*[told.get(name, 0) for name in Refused._fields])
        self.join.unmatched = told.get("unmatched", 0)
        self.panes.dropped = told.get("dropped", 0)

    def merge(self, others: Sequence[Self]) -> None:
        """Take what others have seen, which are settled and untouched; may leave this one half."""
        for other in others:
            mine, theirs = self.join, other.join
            if mine.names and theirs.names and set(mine.names) != set(theirs.names):
                raise IncompatibleMetricsError(
                    f"their predictions have {', '.join(theirs.names)}, these have "
                    f"{', '.join(mine.names)}"
                )
        self.panes.merge([other.panes for other in others])
        self.counted.merge([other.counted for other in others])
        self.left.merge([other.left for other in others])
        for other in others:
            self.newest.merge(other.newest)
            if other.join.names and not self.join.names:
                self.join.name(other.join.names)
            try:
                self._check_rows(other.join)
                self.join.merge(other.join)
            except InvalidBatchError as error:
                raise IncompatibleMetricsError(f"rows wait of other kinds: {error}") from None
            self.refused = self.refused.plus(other.refused)
        self._advance(self.panes.newest)
        self.settle()

    def _check_rows(self, other: Join) -> None:
        """Raise where rows that wait in another are of other kinds."""
        if len(other.table):
            every = other.table.at(np.arange(len(other.table)))
            self.check(dict(zip(other.names, every.columns, strict=True)))
        mine, theirs = self.join.table.labels.kind, other.table.labels.kind
        if mine and theirs and mine != theirs:
            raise InvalidBatchError(f"{other.label}: {theirs!r} there and {mine!r} here")
