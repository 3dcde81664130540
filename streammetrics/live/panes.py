"""Panes of time, and their coverage."""

from __future__ import annotations

import warnings
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    UndefinedMetricWarning,
)
from streammetrics.core.feeding.states import owned
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.events import QUARTER, SECOND
from streammetrics.live.index import CONFLICT, CORRECTED, LABELLED, LATE, REPEATED
from streammetrics.live.rows import batch_of, pieces
from streammetrics.live.windows import PaneTree
from streammetrics.metrics.classification.reports import ConfusionMatrix
from streammetrics.metrics.distributions import Quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Ints
    from streammetrics.live.events import Tier
    from streammetrics.live.rows import PaneRows
    from streammetrics.live.windows import Node


KNOWN, PENDING, EXPIRED, DISPLACED, REFUSED = range(5)  # what became of a prediction
_FLAGS = (CORRECTED, CONFLICT, LATE, REPEATED)

_BINS = 1024  # of the delays in a pane


def _quantile(q: float) -> Quantile:
    return Quantile(q=q, max_bins=_BINS, nan_policy="omit")


# What is counted is a contingency table of what became of rows and of their flags, and the delays.
SUITE = MetricSet(
    {
        "table": ConfusionMatrix(labels=range(32)),
        "median": _quantile(0.5),
        "p90": _quantile(0.9),
        "p99": _quantile(0.99),
    },
    columns={"y_true": "status", "y_pred": "flags", "values": "delay"},
)


# What a table says of predictions, as far as there are any.
TOLD = ("predicted", "labelled", "pending", "expired", "displaced", "late", "conflicting")


class Coverage(NamedTuple):
    """The predictions of a window by what became of them, and of the whole stream what was refused.

    `predicted` is the sum of `labelled`, `pending`, `expired`, `displaced` and `refused`: each
    prediction is in exactly one of these.
    """

    predicted: int
    labelled: int  # with a label that counts
    pending: int  # which a label in time may still reach
    expired: int  # whose label's time is over
    displaced: int  # which had to leave before that, for want of room (`max_pending`)
    refused: int  # with a label that is good by itself, but not beside what was predicted
    corrected: int  # with two different labels, of which one counts
    conflicting: int  # with two different labels of one version and time
    late: int  # with a label that came after its time, and does not count
    repeated: int  # with two different predictions of one id, of which the earlier counts
    delay_median: float  # seconds from a prediction to its label
    delay_p90: float
    delay_p99: float
    labels_waiting: int  # of the stream: labels whose prediction has not come
    labels_unmatched: int  # of the stream: labels whose prediction never came
    predictions_refused: int  # of the stream: predictions that came when their row had left
    labels_refused: int  # of the stream: labels that came when their row had left
    observations_refused: int  # of the stream: rows that contradict those of other workers

    @property
    def coverage(self) -> float:
        """The part of the predictions whose label is known; ``nan`` where there are none."""
        return self.labelled / self.predicted if self.predicted else float("nan")


def batch_of_rows(status: Ints, flags: Array, delays: Ints) -> Batch:
    """Return rows as they are counted; a delay counts where the label is known."""
    seconds = np.where(status == KNOWN, delays / SECOND, np.nan)
    kept = flags.astype(np.int64) & ~LABELLED
    return batch_of(
        SUITE,
        {"status": Column(status), "flags": Column(kept), "delay": Column(seconds)},
        checked=True,
    )


def share_of(state: State) -> float:
    """Return which part of the predictions has a label, as `Coverage.coverage`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = np.asarray(SUITE._at(state)["table"].compute(), np.int64)
    status = table.sum(axis=1)
    return float(status[KNOWN] / status.sum()) if status.any() else float("nan")


def coverage_of(state: State, stream: tuple[int, ...]) -> Coverage:
    """Return what a state of `SUITE` says; `stream` is what is said of the whole stream."""
    counted = SUITE._at(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = counted.compute()
    table = np.asarray(values["table"], np.int64)
    status = table.sum(axis=1).tolist()
    flags = [int(table[:, np.arange(32) & flag > 0].sum()) for flag in _FLAGS]
    delays = [float(values[name]) for name in ("median", "p90", "p99")]
    counts = [sum(status), *status[:5], *flags]
    return Coverage._make([*counts, *delays, *stream])


NEVER = -1  # the newest time where there was none


class Panes:
    """The states of the panes that each tier keeps: a function of the rows and their times.

    A tier keeps the panes above ``newest - count``, where `newest` is the pane of the newest time
    seen; a row that falls into none of them is nowhere, however it came. A pane that is made up of
    panes of a finer tier holds only what these keep no longer: they are folded into it when they
    leave, and what is asked of it is asked of both. So a row is counted once.
    """

    def __init__(self, plan: Plan, tiers: Sequence[Tier]) -> None:
        self.plan = plan
        self.tiers = tuple(tiers)
        self.rows = tuple(PaneTree(plan, tier.count) for tier in tiers)
        self._finer = tuple([_finer(self.tiers, place) for place in range(len(self.tiers))])
        self.newest = NEVER
        self._idle = True  # whether nothing is left to do since rows came
        self.dropped = 0  # rows that came too late for every tier; of no state
        # Of all rows, also those that wait.
        self.facts: tuple[Facts, ...] = tuple({} for _ in plan.schemas)

    def advance(self, newest: int) -> None:
        """Learn of a newest time."""
        if newest > self.newest:
            self._put(self._unchanged(), newest)

    def add(self, times: Ints, batch: Batch, *, known: bool = False) -> None:
        """Take rows, or raise and be as before; rows whose times are `known` move nothing on."""
        if not len(times):
            return
        newest = self.newest if known else max(self.newest, int(times.max()))
        dropped, changed = 0, self._unchanged()
        oldest = [tier.oldest(newest) for tier in self.tiers]
        for piece in list(pieces(self.plan, self.tiers, times, batch)):
            if not self._grow(changed, piece, oldest) and not known:
                dropped += piece.n
        facts = self._agreed(changed)
        self._put(changed, newest)
        self.facts = facts
        self.dropped += dropped

    def _unchanged(self) -> list[dict[int, State]]:
        return [{} for _ in self.tiers]

    def _grow(
        self, changed: list[dict[int, State]], piece: PaneRows, oldest: Sequence[int]
    ) -> bool:
        """Bring rows to the changed states of the panes that keep them; return whether any does."""
        plan, (panes, rows, n) = self.plan, piece
        kept = [pane >= first for pane, first in zip(panes, oldest, strict=True)]
        for place, finer in enumerate(self._finer):
            if kept[place] and (finer is None or not kept[finer]):
                pane, states = panes[place], changed[place]
                state = states.get(pane) or self.rows[place].states.get(pane) or plan.start
                states[pane] = grown(plan, state, rows, n)
        return any(kept)

    def _put(self, changed: Sequence[dict[int, State]], newest: int) -> None:
        """Set the states of panes, and take away those that are too old for the newest time."""
        before, self.newest, self._idle = self.newest, newest, False
        for row, states in zip(self.rows, changed, strict=True):
            row.put(states)
        for place, (tier, row) in enumerate(zip(self.tiers, self.rows, strict=True)):
            if newest > before >= 0 and tier.number(newest) > tier.number(before):
                gone = row.before(tier.oldest(newest))
                self._fold(place, gone)
                row.drop(gone)

    def work(self) -> bool:
        """Do a piece of what rows have left to do; return whether there was one."""
        if not self._idle:
            pairs = zip(self.rows, self.tiers, strict=True)
            self._idle = not any(row.work(tier.number(self.newest)) for row, tier in pairs)
        return not self._idle

    def _fold(self, place: int, gone: Sequence[int]) -> None:
        """Bring panes that leave a tier to those that they are part of."""
        fine, row = self.tiers[place], self.rows[place]
        for target, finer in enumerate(self._finer):
            if finer != place:
                continue
            coarse, into = self.tiers[target], self.rows[target]
            oldest = coarse.oldest(self.newest)
            starts = np.array([fine.start(number) for number in gone], np.int64)
            for number, group in groupby(
                zip(coarse.numbers(starts).tolist(), gone, strict=True), lambda pair: pair[0]
            ):
                if number >= oldest:
                    states = [s for _, n in group if (s := row.settled(n)) is not None]
                    mine = into.settled(number) or self.plan.start
                    into.put({number: self.plan.merged(mine, states)})

    def merge(self, others: Sequence[Panes]) -> None:
        """Take what others hold, which are untouched, or raise and be as before."""
        newest = max([self.newest, *(other.newest for other in others)])
        if newest == NEVER:
            return
        changed = self._unchanged()
        moved = [other.copy() for other in others]
        self.advance(newest)  # so that each has folded what leaves
        for other in moved:
            other.advance(newest)
        for place, (tier, mine) in enumerate(zip(self.tiers, self.rows, strict=True)):
            theirs = [other.rows[place] for other in moved]
            oldest = tier.oldest(newest)
            for number in sorted({n for row in theirs for n in row.states.irange(oldest)}):
                found = [state for row in theirs if (state := row.settled(number)) is not None]
                start = mine.settled(number) or self.plan.start
                changed[place][number] = self.plan.merged(start, found)
        try:
            facts = self._agreed(changed)
            for other in others:  # also what rows that wait have agreed on
                facts = tuple(map(joined_facts, facts, other.facts))
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(f"they saw different kinds of rows: {error}") from None
        self._put(changed, newest)
        self.facts = facts
        self.dropped += sum(other.dropped for other in others)

    def over(self, place: int, first: int, last: int) -> list[State]:
        """Return states that together have seen what some panes of a tier have."""
        return self.rows[place].over(first, last) + self._within(place, first, last)

    def unmerged(self, place: int, first: int, last: int) -> Iterator[tuple[PaneTree, Node]]:
        """Yield the nodes that `over` has to merge first, and their trees."""
        row = self.rows[place]
        yield from ((row, node) for node in row.unmerged(first, last))
        finer = self._finer[place]
        if finer is not None:
            yield from self.unmerged(finer, *self._fine_run(place, first, last))

    def each(self, place: int, first: int, last: int) -> list[tuple[State, ...]]:
        """Return for each of some panes of a tier the states that it is made of."""
        found, finer = self.rows[place].each(first, last), self._finer[place]
        if finer is not None and self.newest != NEVER:
            fine, tier = self.tiers[finer], self.tiers[place]
            begin = tier.number(max(fine.start(fine.oldest(self.newest)), 0))
            for number in range(max(begin, first), last + 1):
                found[number - first] += tuple(self._within(place, number, number))
        return found

    def _within(self, place: int, first: int, last: int) -> list[State]:
        """Return the states of finer panes that make up some of a tier, and are kept."""
        finer = self._finer[place]
        return [] if finer is None else self.over(finer, *self._fine_run(place, first, last))

    def _fine_run(self, place: int, first: int, last: int) -> tuple[int, int]:
        """Return the first and the last finer pane that make up some of a tier, and are kept."""
        finer = self._finer[place]
        if finer is None or self.newest == NEVER:
            return 0, -1
        fine, tier = self.tiers[finer], self.tiers[place]
        start = max(fine.number(tier.start(first)), fine.oldest(self.newest))
        end = min(fine.number(tier.start(last + 1) - 1), fine.number(self.newest))
        return start, end

    def agree(self) -> None:
        """Learn what rows are from states that were read."""
        self.facts = self._agreed([row.states for row in self.rows])

    def _agreed(self, changed: Sequence[Mapping[int, State]]) -> tuple[Facts, ...]:
        """Return what all rows agree on, or raise `InvalidBatchError` where they do not."""
        facts = self.facts
        for states in changed:
            for state in states.values():
                more = [feed.facts for feed in state.agreed or state.infos]
                if any(one != other for one, other in zip(facts, more, strict=True)):
                    facts = tuple(map(joined_facts, facts, more))
        return facts

    def copy(self) -> Panes:
        """Return independent panes at the same states."""
        twin = Panes(self.plan, self.tiers)
        for mine, row in zip(twin.rows, self.rows, strict=True):
            mine.states.update(row.states)
        twin.newest, twin.dropped, twin.facts = self.newest, self.dropped, self.facts
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(row.nbytes for row in self.rows)


def _finer(tiers: Sequence[Tier], place: int) -> int | None:
    """Return the coarsest tier whose panes make up those of a tier, ``None`` for none."""
    coarse = tiers[place]
    for finer in range(place - 1, -1, -1):
        fine = tiers[finer]
        if not fine.zone and (not coarse.zone or QUARTER % fine.length == 0):
            return finer
    return None


def grown(plan: Plan, state: State, rows: tuple[Rows, ...], n: int) -> State:
    """Return a state after rows, which wait in it as long as they are few."""
    if n > tuning.PANE_ROWS or (plan.can_refuse and plan.may_refuse(state, rows)):
        return plan.with_rows(state, rows)
    if state.pending >= tuning.PANE_ROWS:
        state = plan.fed(state)
    return plan.with_buffered(state, tuple(map(owned, rows)), n)
