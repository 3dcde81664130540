"""The state of a live stream as a function of its events, with methods to add and read events."""

from __future__ import annotations

import copy
import operator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core.accumulator import Locked
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
    warn_caller,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.live.events import SECOND, SliceKeys, alike, joined_events
from streammetrics.live.index import LABELLED, LabelRows, Predictions
from streammetrics.live.join import (
    NO_LIMIT,
    Join,
    NewestRows,
    RowBlock,
    Settled,
    Waiting,
    judged_rows,
    kept_rows,
    named_columns,
    newest_labelled,
    resolve,
    settle,
    unlabelled,
)
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.panes import Coverage, Panes, coverage_of, share_of, size_of
from streammetrics.live.possible.judged import judged_batch
from streammetrics.live.possible.unlabelled import Unlabelled, UnlabelledPanes
from streammetrics.live.rows import batch_of
from streammetrics.live.spans import Span
from streammetrics.live.validation import (
    Checks,
    SeenValues,
    as_numbers,
    representative_rows,
    truth_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.config import Config
    from streammetrics.live.events import Events, Kind
    from streammetrics.live.join import Content
    from streammetrics.live.panes import Document, Merges, Node, PaneTree

_PARTS = 64  # rows that wait no longer leave each time this part of the waiting time has passed

Activity = Literal["", "reading", "taking"]


class Refused(NamedTuple):
    """Events that arrived too late or contradict others.

    The counts depend on the order of arrival, so they are not part of the state.
    """

    predictions: int = 0
    labels: int = 0
    observations: int = 0

    def plus(self, other: Refused) -> Refused:
        """Return the sum of both."""
        return Refused(*map(operator.add, self, other))


class Pipeline:
    """The state of a stream of validated events; not thread-safe.

    Rows go to the panes directly, or first wait: predictions in `join` for their labels, and
    observations with ids in `identified` for copies, so that these count once.

    Args:
        suite: The metrics.
        config: The parameters, with the declared types of all columns.
    """

    def __init__(self, suite: Mergeable, config: Config) -> None:
        self.suite, self.config = suite, config
        self.keys = SliceKeys(suite, config.declared.proxy)
        self.panes = Panes(suite._plan, config.tiers)
        self.panes.facts = config.declared.facts
        self.counted = Panes(COVERAGE._plan, config.tiers)
        self.left = UnlabelledPanes(self.keys.inner, config.tiers)
        estimator = config.declared.estimator
        self.judged = Panes(Plan(()) if estimator is None else estimator._plan, config.tiers)
        self.inputs = config.declared.inputs
        self.watched = Panes(self.inputs.plan, config.tiers)
        self.join = Join(config, (), truth_of(suite))
        self.identified = Join(config.of_observations, (), "")
        self.newest = NewestRows(config.keep_rows)
        self.refused = Refused()
        self.left_out, self.contradiction = 0, ""  # accepted events, and why they are left out
        self._kinds = {**config.declared.kinds, **self.inputs.kinds}
        self._kinds |= dict.fromkeys(self.keys.titles, "label")
        self._begin_checks()
        self._learn_default()
        self._waiting = Waiting(suite, self.join)
        self._waiting_observations = Waiting(suite, self.identified)
        self._windows: dict[Span, State] = {}  # merged windows since the last event
        self._clock = -1  # time of reading of these windows
        self.elsewhere: dict[str, int] = {}  # `counters` of all other processes of a store

    # --- events ------------------------------------------------------------------------------

    def accept(self, events: Events) -> Events:
        """Return the events that do not come too late.

        All workers take these, however late they read them.
        """
        kind, times, _, keys, _ = events
        if kind == "observe":  # the panes drop what no tier keeps
            if not len(keys):
                return events
            late = times < max(self.identified.closed, self.identified.floor)
        elif kind == "predict":
            late = self.join.late_predictions(times, keys)
        else:
            late = self.join.late_labels(times, keys)
        return events.take(np.flatnonzero(~late)) if late.any() else events

    def refuse(self, kind: Kind, n: int) -> None:
        """Count events that were refused."""
        kinds = {"predict": Refused(n), "label": Refused(0, n), "observe": Refused(0, 0, n)}
        self.refused = self.refused.plus(kinds[kind])

    def close(self, ahead: int, lowest: int) -> int:
        """Refuse what is too late from now on; return the time before which predictions are.

        Args:
            ahead: The time before which another worker refuses predictions.
            lowest: The time before which every other worker refuses predictions; all that they
                accepted before have been read.
        """
        join = self.join
        if join.oldest - join.closed > self.step or ahead > join.closed:
            join.closed = max(join.closed, join.oldest)
            self.identified.closed = max(
                self.identified.closed, self._limit_of_observations(join.closed)
            )
        join.final = max(join.final, min(join.closed, lowest))
        return join.closed

    def _limit_of_observations(self, time: int) -> int:
        """Return until when observations are refused or leave when predictions are until `time`.

        Both follow from one newest event, so workers promise only the time of predictions.
        """
        if time in {0, NO_LIMIT}:
            return time
        return max(time + self.config.horizon - self.config.dedupe, 0)

    def limit(self, time: int) -> None:
        """Let predictions before a time leave, and observations accordingly."""
        self.join.limit, self.identified.limit = time, self._limit_of_observations(time)

    @property
    def floors(self) -> tuple[int, ...]:
        """The number of the pane of each tier before which panes were removed early, or 0."""
        return tuple([tier.floor for tier in self.config.tiers])

    def evict(self, floors: Sequence[int]) -> None:
        """Let panes expire early, which are folded into coarser ones: those before some floors.

        The state remains a function of its events and the floors. Of merged states, the larger
        floors count.
        """
        joint = tuple(map(max, self.floors, floors))
        if not floors or joint == self.floors:
            return
        pairs = zip(self.config.tiers, joint, strict=True)
        tiers = tuple([replace(tier, floor=floor) for tier, floor in pairs])
        self.config, self._windows = replace(self.config, tiers=tiers), {}
        for panes in (self.panes, self.counted, self.left, self.judged):
            panes.evict(tiers)

    def smaller(self, share: float) -> tuple[int, ...]:
        """Return floors that leave about a share of the bytes of this state.

        The oldest panes of the finest tier go first, then those of the next one. Each tier keeps
        its newest pane.
        """
        kinds = (self.panes, self.counted, self.judged, *self.left.columns.values())
        floors, every = list(self.floors), list[dict[int, int]]()
        for place in range(len(floors)):
            sizes: dict[int, int] = {}
            for row in [panes.rows[place] for panes in kinds]:
                for number in list(row.states):
                    state = row.settled(number)
                    assert state is not None  # it has rows
                    sizes[number] = sizes.get(number, 0) + size_of([state])
            every.append(sizes)
        excess = (1.0 - share) * self.nbytes
        for place, sizes in enumerate(every):
            for number in sorted(sizes)[:-1]:
                if excess > 0:
                    floors[place] = number + 1
                    excess -= sizes[number]
        return tuple(floors)

    def continue_from(self, before: Pipeline) -> None:
        """Take over what the join of another pipeline refuses and keeps, and its floors."""
        self.evict(before.floors)
        pairs = ((self.join, before.join), (self.identified, before.identified))
        for mine, theirs in pairs:
            mine.closed, mine.final, mine.limit = theirs.closed, theirs.final, theirs.limit

    def take(self, events: Events, batch: Batch | None = None) -> None:
        """Take events that were accepted, or raise and leave the state as it was.

        Args:
            events: The events.
            batch: The batch of observations, if it exists already.
        """
        self._windows = {}
        if events.kind == "observe" and events.are_waiting_rows:
            self._identify(events)
        elif events.kind == "observe":
            rows, judged = self._newest_rows(events), self._judged(events)
            if batch is None:
                batch = batch_of(self.suite, events.columns, checked=True)
            self.panes.add(events.times, batch)
            if judged is not None:
                self.judged.add(events.times, judged)
            if self.inputs:
                self.watched.add(events.times, self.inputs.batch(events.columns))
            if rows is not None:
                self.newest.add(rows)
            self._advance(self.panes.newest)
        elif events.kind == "predict":
            self._predict(events)
        else:
            self._label(events)

    def take_parts(self, parts: Sequence[Events]) -> None:
        """Take several parts as `take_consistent` does, concatenated if their columns are equal."""
        for group in alike(parts):
            try:
                self.take(joined_events(group))
            except InvalidBatchError:
                for events in group:
                    self.take_consistent(events)

    def take_consistent(self, events: Events, batch: Batch | None = None) -> None:
        """Take the events that are consistent with all earlier ones, and count the others.

        Each event was valid on arrival; it can only contradict events of other workers.
        """
        try:
            self.take(events, batch)
        except InvalidBatchError as error:
            n = len(events.times)
            if n > 1:
                for half in (slice(None, n // 2), slice(n // 2, None)):
                    self.take_consistent(events.take(half))
                return
            if not self.left_out:
                warn_caller(
                    "events that contradict those of other workers are left out and counted: "
                    f"{error}"
                )
            self.left_out, self.contradiction = self.left_out + n, str(error)
            self.refuse(events.kind, n)

    def columns(self, given: Mapping[str, object]) -> dict[str, Column]:
        """Return columns as the join stores them."""
        return {
            name: as_numbers(
                self.config.declared.one_a_row(as_column(value, name), name),
                name,
                self._kinds.get(name, "number"),
            )
            for name, value in given.items()
        }

    def prediction_columns(self, given: Mapping[str, object], n: int) -> dict[str, Column]:
        """Return columns of n predictions as the join stores them, with slice keys and inputs."""
        made = self.columns(self.keys.made(self.inputs.rest(given)))
        return made | self.inputs.take(given, n)

    def _newest_rows(self, events: Events) -> RowBlock | None:
        """Return rows as `keep_rows` stores them, ``None`` if it is 0."""
        if not self.newest.most:
            return None
        read, proxy = self.inputs.rest(events.columns), self.config.declared.proxy
        columns = {name: column for name, column in read.items() if name != proxy}
        return kept_rows(events.times, None, self.columns(columns))

    def _judged(self, events: Events) -> Batch | None:
        """Return observations as they are estimated, ``None`` if they have no judgments."""
        estimator = self.config.declared.estimator
        if estimator is None:
            return None
        return judged_batch(estimator, self.columns(events.columns))

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise unless predictions or labels have the types of the stored ones."""
        join = self.join
        if set(columns) == {join.label}:
            join.table.labels.check(columns[join.label])
        else:
            read = self.inputs.rest(dict.fromkeys(self.keys.named(columns)))
            self.config.declared.check_optional(read)
            join.table.check(columns)

    def check_identified(self, columns: Mapping[str, Column]) -> None:
        """Raise unless observations with ids have the declared columns and the stored types."""
        read = self.inputs.rest(dict.fromkeys(self.keys.named(columns)))
        self.config.declared.check_optional(read, observed=True)
        self.identified.table.check(columns)

    def _begin_checks(self) -> None:
        """Validate waiting rows against the facts of all rows, which the panes hold."""
        panes = self.panes  # the closure must not reference self: that would be a cycle
        default, estimator = self.config.default_label, self.config.declared.estimator
        self._checks = Checks(
            self.suite, lambda: panes.facts, apart=True, default=default, estimator=estimator
        )
        self._seen = SeenValues(self._kinds)

    def _agree(self, columns: Mapping[str, Column]) -> None:
        """Add the facts of predictions or labels; on an error, nothing changes.

        Rows in the join and in the panes share their facts.
        """
        self.check(columns)
        columns = self.inputs.rest(columns)
        if self._seen.covers(columns):
            return
        labels = set(columns) == {self.join.label}
        check = self._checks.labelled if labels else self._checks.predicted
        try:
            check(representative_rows(columns, self._kinds))
        except InvalidBatchError:
            check(columns)  # numbers all rows and names the first invalid one
            raise
        self.panes.facts = self._checks.facts
        self._seen.learn(columns)

    def _learn_default(self) -> None:
        """Add the facts of `default_label`."""
        value, name = self.config.default_label, self.join.label
        if value is None or not name:
            return
        try:
            self._agree(self.columns({name: [value]}))
        except InvalidBatchError as error:
            raise ValueError(
                f"default_label={value!r} is not a valid label here: {error}"
            ) from error

    def learn(self) -> None:
        """Compute the facts of all stored rows, after a state was read from a file."""
        table = self.join.table
        if len(table):
            self._agree(self.join.columns)
        if len(self.identified.table):
            self.check_identified(self.identified.columns)
            self._checks.observed(self.inputs.rest(self.identified.columns))
            self.panes.facts = self._checks.facts
        others = self.join.other_labels()
        if others is not None:
            self._agree({self.join.label: others.values})
        labelled = np.flatnonzero(table.flags.values & LABELLED)
        if labelled.size:
            self._agree({self.join.label: table.labels.at(labelled)})
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
        join.put(new)
        self._advance(int(times.max(initial=-1)))

    def _identify(self, events: Events) -> None:
        """Take observations with ids."""
        _, times, columns, keys, _ = events
        self.check_identified(columns)
        self._checks.observed(self.inputs.rest(columns))
        self.panes.facts = self._checks.facts
        if not self.identified.names:
            self.identified.name(columns)
        rows = tuple([columns[name] for name in self.identified.names])
        self.identified.put(Predictions(keys, times, rows))
        self._advance(int(times.max(initial=-1)))

    def _label(self, events: Events) -> None:
        _, times, columns, keys, versions = events
        self._agree(columns)
        (values,) = columns.values()
        self.join.table.labels.begin(values)
        self.join.put_labels(LabelRows(keys, times, versions, values))
        self.identified.newest = self.join.newest

    def _advance(self, newest: int) -> None:
        """Advance the newest time, which drops expired panes."""
        self.panes.advance(newest)
        self.counted.advance(newest)
        self.left.advance(newest)
        self.judged.advance(newest)
        self.watched.advance(newest)
        self.join.newest = self.identified.newest = max(self.join.newest, newest)

    def finish(self) -> None:
        """Do all pending work."""
        self.release()
        while self.work():
            pass

    def work(self) -> bool:
        """Do one step of the pending work in panes; return whether there was any."""
        parts = (self.panes, self.counted, self.left, self.judged, self.watched)
        return any(part.work() for part in parts)

    def release(self) -> None:
        """Match labels and move the rows that wait no longer to the panes, if it is time."""
        if self.join.due:
            self.join.match()
        if self.is_over:
            self.settle()

    @property
    def is_over(self) -> bool:
        """Whether it is time for rows to leave the join."""
        return any(
            join.size > self.config.max_pending
            or join.floor - join.left > join.config.horizon // _PARTS
            for join in self._joins
        )

    @property
    def _joins(self) -> list[Join]:
        """The joins in which rows wait."""
        return [self.join, self.identified] if self.identified.names else [self.join]

    @property
    def step(self) -> int:
        """The time between two leaves of rows."""
        return min([join.config.horizon for join in self._joins]) // _PARTS

    def settle(self) -> None:
        """Move rows that no longer wait to the panes."""
        for join in self._joins:
            most = self.config.max_pending
            if join.size > most and join.evicted_until < 0:
                rows, why, length = "observations with ids", "copies", "dedupe"
                if join is self.join:
                    rows, why, length = "predictions", "labels", "label_ttl + label_lateness"
                rate = most / join.config.horizon * SECOND
                warn_caller(
                    f"more than max_pending={most:,} {rows} wait for {why}, so the oldest leave "
                    f"early: with this {length}, max_pending is enough for {rate:,.1f} {rows} a "
                    "second"
                )
            panes = Settled(self.panes, self.counted, self.left, self.judged, self.watched)
            settle(self.suite, join, panes, self.newest)

    # --- states ------------------------------------------------------------------------------

    @property
    def counters(self) -> dict[str, int]:
        """What this process has refused and dropped, which depends on the order of arrival."""
        return {**self.refused._asdict(), "dropped": self.panes.dropped}

    @counters.setter
    def counters(self, told: Mapping[str, int]) -> None:
        self.refused = Refused(*[told[name] for name in Refused._fields])
        self.panes.dropped = told["dropped"]

    @property
    def totals(self) -> dict[str, int]:
        """The counters of all processes."""
        return {name: n + self.elsewhere.get(name, 0) for name, n in self.counters.items()}

    def merge(self, others: Sequence[Self], made: Merges | None = None) -> None:
        """Merge the states of settled pipelines, which stay unchanged.

        An error may leave this state partly merged. `made` has the merges of the last call, see
        `Panes.merge`.
        """
        self._windows = {}
        for other in others:
            self.evict(other.floors)
        self.panes.merge([other.panes for other in others], made)
        self.counted.merge([other.counted for other in others])
        self.left.merge([other.left for other in others])
        self.judged.merge([other.judged for other in others])
        self.watched.merge([other.watched for other in others])
        for other in others:
            self.newest.merge(other.newest)
            if other.join.names and not self.join.names:
                self.join.name(other.join.names)
            try:
                self._check_rows(other)
                self.join.merge(other.join)
                if other.identified.names and not self.identified.names:
                    self.identified.name(other.identified.names)
                self.identified.merge(other.identified)
            except InvalidBatchError as error:
                raise IncompatibleMetricsError(f"waiting rows have other types: {error}") from None
            self.refused = self.refused.plus(other.refused)
            for name, n in other.elsewhere.items():
                self.elsewhere[name] = self.elsewhere.get(name, 0) + n
        self._advance(self.panes.newest)
        self.settle()

    def _check_rows(self, other: Pipeline) -> None:
        """Raise unless the waiting rows of another pipeline have the same types."""
        if len(other.join.table):
            self.check(other.join.columns)
        if len(other.identified.table):
            self.check_identified(other.identified.columns)
        mine, theirs = self.join.table.labels.kind, other.join.table.labels.kind
        if mine and theirs and mine != theirs:
            raise InvalidBatchError(f"{other.join.label}: {theirs!r} there and {mine!r} here")

    # --- reading ----------------------------------------

    def over(self, span: Span, clock: int) -> State:
        """Return the merged state of a span."""
        found = self.merged_windows(clock)
        if span not in found:
            found[span] = merged(self.suite, self.parts(span, clock))
        return found[span]

    def merged_windows(self, clock: int) -> dict[Span, State]:
        """Return the cache of windows merged since the last event, at this time of reading."""
        if clock != self._clock:
            self._windows, self._clock = {}, clock
        return self._windows

    def parts(self, span: Span, clock: int) -> list[State]:
        """Return states whose merge is the state of a span."""
        units = self._units(span, clock)
        waiting = self._waiting.over(*units) + self._waiting_observations.over(*units)
        return self.panes.over(*span) + waiting

    def unmerged(
        self, span: Span, clock: int, of: Content = "metrics"
    ) -> list[tuple[PaneTree, Node]]:
        """Return the tree nodes that are to be merged first, children before parents.

        They are those for `parts`, `judgments` or `input_parts`.
        """
        if of == "judgments":
            return [*self.judged.unmerged(*span)]
        if of == "metrics" and span in self.merged_windows(clock):
            return []
        units = self._units(span, clock)
        waiting = (self._waiting, self._waiting_observations)
        trees = [node for each in waiting for node in each.unmerged(*units, of)]
        return [*self._panes[of].unmerged(*span), *trees]

    def unread(self, span: Span, of: Content = "metrics") -> list[tuple[PaneTree, Document]]:
        """Return the documents that are to be read before the nodes of `unmerged`."""
        every = {**self._panes, "judgments": self.judged}
        return [*every[of].unread(*span), *self.counted.unread(*span)]

    def keeps(self, span: Span) -> bool:
        """Whether all panes of a span are still within retention."""
        return span.first >= self.config.tiers[span.place].oldest(max(self.panes.newest, 0))

    def each(self, span: Span, clock: int, of: Content = "metrics") -> list[tuple[State, ...]]:
        """Return the states of each pane of a span: of metrics, coverage or inputs.

        A pane has the same state objects until it gets new rows.
        """
        self._units(span, clock)
        place, first, last = span
        found = self._panes[of].each(place, first, last)
        for waiting in (self._waiting, self._waiting_observations):
            oldest = waiting.oldest()
            if oldest is not None:
                begin = self.config.tiers[place].number(oldest * self.join.unit)
                for number in range(max(begin, first), last + 1):
                    units = self._range(Span(place, number, number))
                    found[number - first] += tuple(waiting.over(*units, of))
        return found

    def last(self, n: int, clock: int) -> State:
        """Return the state of the newest n labelled rows."""
        newest, plan = self.newest.copy(), self.suite._plan
        for join in self._joins:
            rows = newest_labelled(self.suite, join, n, max(clock, join.newest))
            if rows is not None:
                newest.add(rows)
        state = plan.start
        for rows in newest.rows(n):
            state = plan.with_slices(state, batch_of(self.suite, rows.named))
        return state

    def oldest(self) -> int:
        """Return the start of the first pane with rows; without rows, the maximum time."""
        kept = [
            tier.start(row.states.keys()[0])
            for panes in (self.panes, self.counted)
            for tier, row in zip(panes.tiers, panes.rows, strict=True)
            if row.states
        ]
        starts = [int(join.table.present.starts.min(initial=NO_LIMIT)) for join in self._joins]
        return min([*kept, *starts])

    def busy(self) -> list[tuple[int, int]]:
        """Return the start and end of each run of panes with predictions or observations."""
        found: list[tuple[int, int]] = []
        for place, tier in enumerate(self.panes.tiers):
            kept = [*self.panes.rows[place].states, *self.counted.rows[place].states]
            numbers = np.array(kept, np.int64)
            if not place:
                starts = [tier.numbers(join.table.present.starts) for join in self._joins]
                numbers = np.concatenate([numbers, *starts])
            numbers = np.unique(numbers)
            runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
            ends = [(int(run[0]), int(run[-1])) for run in runs if run.size]
            found += [(tier.start(first), tier.start(last + 1)) for first, last in ends]
        return sorted(found)

    def coverage(self, span: Span, clock: int) -> Coverage:
        """Return the coverage of the predictions of a span."""
        state, join = self._counted(span, clock), self.join
        labels = join.unmatched_labels()
        waiting = 0 if labels is None else len(labels.keys)
        totals = self.totals
        refused = [totals[name] for name in Refused._fields]
        return coverage_of(state, (waiting, join.unmatched, *refused))

    def share(self, span: Span, clock: int) -> float:
        """Return the share of the predictions of a span that have a label."""
        return share_of(self._counted(span, clock))

    def _counted(self, span: Span, clock: int) -> State:
        """Return the coverage state of a span."""
        units = self._units(span, clock)
        return merged(COVERAGE, self.counted.over(*span) + self._waiting.over(*units, "coverage"))

    def unlabelled(self, span: Span, clock: int) -> Unlabelled:
        """Return the unlabelled rows of a span."""
        join = self.join
        first, last = self._units(span, clock)
        numbers, clock = join.table.times.values // join.unit, max(clock, join.newest)
        rows = np.flatnonzero((numbers >= first) & (numbers <= last))
        waiting = unlabelled(join, rows, clock)
        gone = coverage_of(merged(COVERAGE, self.counted.over(*span)), (0,) * 5)
        left = gone.displaced + (gone.expired if self.config.default_label is None else 0)
        return Unlabelled(
            self.left, self.left.over(span), left, named_columns(join, waiting), len(waiting)
        )

    def judgments(self, span: Span, clock: int) -> tuple[list[State], list[Batch]]:
        """Return what is estimated of a span: states of rows that left, and rows that wait."""
        first, last = self._units(span, clock)
        waiting: list[Batch] = []
        for join in self._joins:
            numbers = join.table.times.values // join.unit
            rows = np.flatnonzero((numbers >= first) & (numbers <= last))
            found = resolve(self.suite, join, rows, clock)
            waiting += [batch for _, batch in judged_rows(join, rows, found)]
        return self.judged.over(*span), waiting

    def input_parts(self, span: Span, clock: int) -> list[State]:
        """Return states whose merge is the state of the inputs of a span."""
        units = self._units(span, clock)
        waiting = (self._waiting, self._waiting_observations)
        parts = [state for each in waiting for state in each.over(*units, "inputs")]
        return self.watched.over(*span) + parts

    @property
    def _panes(self) -> dict[Content, Panes]:
        """The panes of rows that do not wait."""
        return {"metrics": self.panes, "coverage": self.counted, "inputs": self.watched}

    def _units(self, span: Span, clock: int) -> tuple[int, int]:
        """Update the waiting rows that a span covers; return their first and last pane."""
        first, last = self._range(span)
        clock = max(clock, self.join.newest)
        self._waiting.update(self.join, first, last, clock)
        self._waiting_observations.update(self.identified, first, last, clock)
        return first, last

    def _range(self, span: Span) -> tuple[int, int]:
        tier, unit = self.config.tiers[span.place], self.join.unit
        return tier.start(span.first) // unit, (tier.start(span.last + 1) - 1) // unit

    @property
    def nbytes(self) -> int:
        """Bytes used by the state."""
        waiting = self._waiting.nbytes + self._waiting_observations.nbytes
        parts = (self.panes, self.counted, self.left, self.judged, self.watched, self.newest)
        rows = sum(join.table.nbytes for join in self._joins)
        return waiting + rows + sum(part.nbytes for part in parts)

    def copy(self) -> Pipeline:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin.elsewhere = dict(self.elsewhere)
        twin.panes, twin.counted = self.panes.copy(), self.counted.copy()
        twin.left, twin.judged = self.left.copy(), self.judged.copy()
        twin.watched = self.watched.copy()
        twin.join, twin.newest = self.join.copy(), self.newest.copy()
        twin.identified = self.identified.copy()
        twin._begin_checks()
        twin.restart()
        return twin

    def restart(self) -> None:
        """Mark all panes of waiting rows as changed, so that the next read rebuilds them."""
        self._windows = {}
        self._waiting = Waiting(self.suite, self.join)
        self._waiting_observations = Waiting(self.suite, self.identified)
        for join in self._joins:
            join.changed = set((join.table.present.starts // join.unit).tolist())

    def check_alike(self, other: Pipeline) -> None:
        """Raise `IncompatibleMetricsError` unless another pipeline has the same configuration."""
        if not self.suite._alike(other.suite):
            told = f"a Live of {other.suite._titled()} into one of {self.suite._titled()}"
            raise IncompatibleMetricsError(f"cannot merge {told}: {self.differing(other)}")
        if told := self.differing(other):
            raise IncompatibleMetricsError(f"cannot merge these: {told}")

    def differing(self, other: Pipeline) -> str:
        """Return in what the configuration of another pipeline differs, empty if in nothing."""
        mine, theirs = self.suite, other.suite
        if not mine._alike(theirs):
            return f"they differ{mine._differing(theirs)}"
        return "" if other.config == self.config else self.config.differing(other.config)


def merged(suite: Mergeable, states: Sequence[State]) -> State:
    """Return the merge of states of a suite; the empty state if there are none."""
    plan = suite._plan
    return plan.merged(states[0], states[1:]) if states else plan.start


class SharedPipeline:
    """A pipeline shared by threads, with its lock; `current` may be replaced."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.current = pipeline
        self.suite, self.config = pipeline.suite, pipeline.config.with_all_panes
        self.activity: Activity = ""  # of the thread that holds the lock
        self._guard = Locked()  # replaced in forked processes

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, which is reentrant."""
        with self._guard._lock:
            yield

    @contextmanager
    def active(self, activity: Activity) -> Iterator[Pipeline]:
        """Record the activity of this thread, which holds the lock, for signal handlers."""
        before, self.activity = self.activity, activity
        try:
            yield self.current
        finally:
            self.activity = before

    def check_interrupted(self) -> None:
        """Raise if a signal handler interrupted its own thread while that was taking events."""
        if self.activity == "taking":
            raise StreamMetricsError(
                "this thread was interrupted while it takes events: a signal's handler may observe "
                "single events, and reads in a thread of its own"
            )
