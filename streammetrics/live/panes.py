"""Panes of time: their states, a tree to merge windows from them, and label coverage."""

from __future__ import annotations

import hashlib
import operator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sortedcontainers import SortedDict

from streammetrics.core import tuning
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    undefined_expected,
)
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.states import owned
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.state.container import packed, unpacked
from streammetrics.live.events import QUARTER, SECOND
from streammetrics.live.index import CONFLICT, CORRECTED, LABELLED, LATE, REPEATED
from streammetrics.live.rows import batch_of, pieces
from streammetrics.metrics.classification.overall import ConfusionMatrix
from streammetrics.metrics.distributions import Quantile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Ints
    from streammetrics.live.events import Tier
    from streammetrics.live.rows import PaneRows


_BITS = 4  # a node has 2**4 = 16 children

Node = tuple[int, int]  # level and index


class Document:
    """A run of panes as it is in a store, read when one of them is needed; immutable.

    Attributes:
        name: The SHA-256 of the bytes. Equal panes have equal bytes, whoever writes them.
        blob: The bytes.
        numbers: The numbers of the panes, ascending.
    """

    __slots__ = ("_plan", "blob", "name", "numbers")

    def __init__(self, plan: Plan, blob: bytes, name: str, numbers: Sequence[int]) -> None:
        self._plan, self.blob, self.name, self.numbers = plan, blob, name, tuple(numbers)

    @classmethod
    def of(cls, plan: Plan, states: Mapping[int, State]) -> Document:
        """Return the document of some panes."""
        blob = packed({}, StateTable.of(plan, [*states.values()]).arrays())
        return cls(plan, blob, digest(blob), [*states])

    def states(self) -> dict[int, State]:
        """Return the states by the numbers of their panes.

        Raises:
            StateFormatError: The bytes are not what `of` gives for any panes.
        """
        arrays = unpacked(self.blob).arrays
        table = StateTable.restored(self._plan, arrays, len(self.numbers))
        if packed({}, table.arrays()) != self.blob:
            raise StateFormatError("panes of the store are not as they are written")
        return {number: table.at(place) for place, number in enumerate(self.numbers)}


def digest(blob: bytes) -> str:
    """Return the name of a document with these bytes."""
    return hashlib.sha256(blob).hexdigest()


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Split ascending numbers of panes into those of each document."""
    return [list(run) for _, run in groupby(numbers, lambda number: number >> _BITS)]


class PaneTree:
    """States of panes by number, and merges of any run of them.

    The node at level l and index k is the merged state of the panes k·16^l to (k+1)·16^l - 1.
    Sixteen states are merged in one step, which costs less than merging in pairs. A run of n panes
    consists of at most 30 log16(n) nodes. A changed pane invalidates the log16(n) nodes above it.
    """

    def __init__(self, plan: Plan, most: int) -> None:
        self.plan = plan
        self.states: SortedDict[int, State | Document] = SortedDict()
        # The states of each run, as they were when it was last read or written, and its document's
        # name and size. Copies share it.
        self._written: dict[int, tuple[list[State], str, int]] = {}
        self._unread: set[Document] = set()
        self._levels = range(_BITS, most.bit_length() + 1, _BITS)
        self._nodes: dict[tuple[int, int], State] = {}
        self._open: dict[int, int] = {}  # next statistic to compact, by pane with new rows
        self._most = (0, 0)  # newest pane, and the size above which a statistic is compacted

    def put(self, changed: Mapping[int, State]) -> None:
        """Set the states of some panes."""
        for number, state in changed.items():
            self.states[number] = state
        self._open.update(dict.fromkeys(changed, 0))
        self._forget(changed)

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove panes."""
        gone = list(numbers)
        for number in gone:
            del self.states[number]
            self._open.pop(number, None)
        self._unread -= {d for d in self._unread if self.states.keys().isdisjoint(d.numbers)}
        self._forget(gone)

    def before(self, number: int) -> list[int]:
        """Return the numbers of the panes before a number."""
        return list(self.states.irange(maximum=number, inclusive=(True, False)))

    def work(self, newest: int) -> bool:
        """Do one step of the pending work; return whether there was any.

        Buffered rows of the newest pane are fed to its statistics once there are many. Older panes
        are compacted to the size of their serialized form: there may be thousands of them, most get
        no more rows, and buffered rows use much memory.
        """
        state = self.states.get(newest)
        if state is not None and not isinstance(state, Document):
            if state.pending >= tuning.PANE_ROWS:
                self.settled(newest)
                return True
            if self._large(newest, state):
                return True
        number = next((number for number in self._open if number < newest), None)
        if number is None:
            return False
        state = self.state(number)
        assert state is not None  # it has got rows
        if state.buffered:
            self.settled(number)
            return True
        sizes, place = [statistic.nbytes for statistic in state.statistics], self._open[number]
        while place < len(sizes) and sizes[place] <= tuning.SMALL_STATE:
            place += 1
        if place < len(sizes):
            self._make_small(number, state, place)
        self._open[number] = place + 1
        if place + 1 >= len(sizes):
            del self._open[number]
        return True

    def _large(self, number: int, state: State) -> bool:
        """Compact a statistic of the newest pane if it has grown much; return whether it was."""
        sizes = [statistic.nbytes for statistic in state.statistics]
        largest = max(sizes)
        if self._most[0] != number:
            self._most = number, tuning.PANE_BYTES
        if largest <= self._most[1]:
            return False
        size = self._make_small(number, state, sizes.index(largest)).nbytes
        self._most = number, max(tuning.PANE_BYTES, 2 * size)
        return True

    def _make_small(self, number: int, state: State, place: int) -> Statistic:
        """Compact a statistic by serializing and restoring it; keep the smaller of both."""
        statistics = list(state.statistics)
        statistic = statistics[place]
        written = statistic.restored(statistic.arrays())
        statistics[place] = min(written, statistic, key=attrgetter("nbytes"))
        self.states[number] = state._replace(statistics=tuple(statistics))
        return statistics[place]

    def state(self, number: int) -> State | None:
        """Return the state of a pane, or ``None`` for an empty pane."""
        state: State | Document | None = self.states.get(number)
        if isinstance(state, Document):
            self.fill(state, state.states())
            state = self.states[number]
            assert not isinstance(state, Document)
        return state

    def unread(self, first: int, last: int) -> list[Document]:
        """Return the documents of a run of panes that have not been read."""
        return [d for d in self._unread if d.numbers[0] <= last and first <= d.numbers[-1]]

    def put_unread(self, documents: Iterable[Document]) -> None:
        """Set panes that are read when they are needed."""
        for document in documents:
            self.states.update(dict.fromkeys(document.numbers, document))
            self._unread.add(document)

    def fill(self, document: Document, states: Mapping[int, State]) -> None:
        """Set the states of a document, except those that were read or dropped meanwhile."""
        for number, state in states.items():
            if self.states.get(number) is document:
                self.states[number] = state
        self._unread.discard(document)
        run = document.numbers[0] >> _BITS
        self._written[run] = [*states.values()], document.name, len(document.blob)

    def documents(self, known: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Yield the name of the document of each run of panes, its size, and its bytes.

        The bytes are left out if `known` has the name and no pane has changed since.
        """
        written: dict[int, tuple[list[State], str, int]] = {}
        for numbers in runs(self.states):
            run, whole = numbers[0] >> _BITS, self.states[numbers[0]]
            if isinstance(whole, Document) and self._is_whole(whole, numbers):
                yield whole.name, len(whole.blob), whole.blob
                continue
            states = {number: state for number in numbers if (state := self.settled(number))}
            before, name, size = self._written.get(run, ([], "", 0))
            blob = b""
            if name not in known or not same(before, [*states.values()]):
                found = Document.of(self.plan, states)
                name, size, blob = found.name, len(found.blob), found.blob
            written[run] = [*states.values()], name, size
            yield name, size, blob
        self._written.clear()
        self._written.update(written)

    def _is_whole(self, document: Document, numbers: Sequence[int]) -> bool:
        """Return whether some panes are those of a document, none of which was read."""
        unread = all(self.states[number] is document for number in numbers)
        return unread and document.numbers == tuple(numbers)

    def settled(self, number: int) -> State | None:
        """Return the state of a pane without buffered rows, or ``None`` for an empty pane."""
        state = self.state(number)
        if state is not None and state.buffered:
            state = self.states[number] = self._fed(number, state)
        return state

    def _fed(self, number: int, state: State) -> State:
        try:
            return self.plan.fed(state)
        except MemoryError:  # not caused by the rows
            raise
        except Exception:  # any type: the statistic may be user-defined
            self.states[number], refused = self.plan.sifted(state)
            raise InvalidBatchError("; ".join(map(str, refused))) from refused[0].error

    @property
    def nbytes(self) -> int:
        """Bytes used by states, and by documents that have not been read."""
        rest = [n for n, state in self.states.items() if not isinstance(state, Document)]
        unread = sum(len(document.blob) for document in self._unread)
        return unread + size_of(filter(None, map(self.settled, rest)))

    def over(self, first: int, last: int) -> list[State]:
        """Return states whose merge is the state of the panes `first` to `last`."""
        nodes = (self._node(*node) for node in self._run(first, last))
        return [state for state in nodes if state is not None]

    def unmerged(self, first: int, last: int) -> Iterator[Node]:
        """Yield the nodes that `over` has to merge first, children before parents."""
        for level, place in self._run(first, last):
            yield from self._unmerged(level, place)

    def parts(self, node: Node) -> list[State]:
        """Return the states of the children of a node."""
        level, place = node
        below = range(place << _BITS, (place + 1) << _BITS)
        found = (self._node(level - _BITS, part) for part in below)
        return [state for state in found if state is not None]

    def keep(self, node: Node, parts: Sequence[State], state: State) -> None:
        """Cache the merge of the parts of a node, unless new rows have changed them."""
        if same(self.parts(node), parts):
            self._nodes[node] = state

    def _run(self, first: int, last: int) -> Iterator[Node]:
        """Yield the largest nodes that make up a run of panes, without those that hold none."""
        while (found := next(self.states.irange(first, last), None)) is not None:
            level = 0
            for higher in self._levels:
                start = found >> higher << higher
                if start < first or start + (1 << higher) - 1 > last:
                    break
                level = higher
            yield level, found >> level
            first = ((found >> level) + 1) << level

    def _unmerged(self, level: int, place: int) -> Iterator[Node]:
        if level == 0 or (level, place) in self._nodes:
            return
        start = place << level
        if self._has(start, start + (1 << level) - 1):
            for part in range(place << _BITS, (place + 1) << _BITS):
                yield from self._unmerged(level - _BITS, part)
            yield level, place

    def each(self, first: int, last: int) -> list[tuple[State, ...]]:
        """Return a tuple with the state of each pane in a run; empty panes have none."""
        there = (self.settled(number) for number in range(first, last + 1))
        return [() if state is None else (state,) for state in there]

    def _node(self, level: int, place: int) -> State | None:
        if level == 0:
            return self.settled(place)
        node: State | None = self._nodes.get((level, place))
        if node is None:
            start = place << level
            if not self._has(start, start + (1 << level) - 1):
                return None
            parts = self.parts((level, place))
            node = self._nodes[level, place] = self.plan.merged(parts[0], parts[1:])
        return node

    def _has(self, first: int, last: int) -> bool:
        return next(self.states.irange(first, last), None) is not None

    def _forget(self, numbers: Iterable[int]) -> None:
        if self._nodes:
            for number in numbers:
                for level in self._levels:
                    self._nodes.pop((level, number >> level), None)


def same(mine: Sequence[State], theirs: Sequence[State]) -> bool:
    """Return whether two sequences hold the same state objects, which never change."""
    return len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))


def size_of(states: Iterable[State]) -> int:
    """Return the number of bytes that states use."""
    return sum(statistic.nbytes for state in states for statistic in state.statistics)


KNOWN, PENDING, EXPIRED, DISPLACED, REFUSED = range(5)  # the status of a prediction
_FLAGS = (CORRECTED, CONFLICT, LATE, REPEATED)

_BINS = 1024  # maximum bins of the label delays in a pane


def _quantile(q: float) -> Quantile:
    return Quantile(q=q, max_bins=_BINS, nan_policy="omit")


# Coverage statistics: a contingency table of status by flags, and quantiles of label delays.
SUITE = MetricSet(
    {
        "table": ConfusionMatrix(labels=range(32)),
        "median": _quantile(0.5),
        "p90": _quantile(0.9),
        "p99": _quantile(0.99),
    },
    columns={"y_true": "status", "y_pred": "flags", "values": "delay"},
)


# Counts of `Coverage` that a report shows, unless they are zero.
TOLD = ("predicted", "labelled", "pending", "expired", "displaced", "late", "conflicting")


class Coverage(NamedTuple):
    """The predictions of a window by status, and counts of the whole stream.

    `predicted` is the sum of `labelled`, `pending`, `expired`, `displaced` and `refused`; each
    prediction is in exactly one of these.
    """

    predicted: int
    labelled: int  # with a label that counts
    pending: int  # a label may still arrive in time
    expired: int  # no label arrived in time
    displaced: int  # left early because more than `max_pending` predictions waited
    refused: int  # the label is valid, but does not fit the prediction
    corrected: int  # with different labels, one of which counts
    conflicting: int  # with different labels of one version and time
    late: int  # with a label that arrived too late to count
    repeated: int  # with different predictions of one id, the earliest of which counts
    delay_median: float  # seconds from a prediction to its label
    delay_p90: float
    delay_p99: float
    labels_waiting: int  # of the stream: labels whose prediction has not arrived yet
    labels_unmatched: int  # of the stream: labels whose prediction never arrived
    predictions_refused: int  # of the stream: predictions that arrived after their row had left
    labels_refused: int  # of the stream: labels that arrived after their row had left
    observations_refused: int  # of the stream: rows that contradict those of other workers

    @property
    def coverage(self) -> float:
        """The share of the predictions with a label; ``nan`` without predictions."""
        return self.labelled / self.predicted if self.predicted else float("nan")


def batch_of_rows(status: Ints, flags: Array, delays: Ints) -> Batch:
    """Return a batch of status, flags and delay; only labelled rows have a delay."""
    seconds = np.where(status == KNOWN, delays / SECOND, np.nan)
    kept = flags.astype(np.int64) & ~LABELLED
    return batch_of(
        SUITE,
        {"status": Column(status), "flags": Column(kept), "delay": Column(seconds)},
        checked=True,
    )


def share_of(state: State) -> float:
    """Return the share of the predictions with a label, as `Coverage.coverage`."""
    with undefined_expected():
        table = np.asarray(SUITE._at(state)["table"].compute(), np.int64)
    status = table.sum(axis=1)
    return float(status[KNOWN] / status.sum()) if status.any() else float("nan")


def coverage_of(state: State, stream: tuple[int, ...]) -> Coverage:
    """Return the coverage at a state of `SUITE`; `stream` holds the counts of the whole stream."""
    counted = SUITE._at(state)
    with undefined_expected():
        values = counted.compute()
    table = np.asarray(values["table"], np.int64)
    status = table.sum(axis=1).tolist()
    flags = [int(table[:, np.arange(32) & flag > 0].sum()) for flag in _FLAGS]
    delays = [float(values[name]) for name in ("median", "p90", "p99")]
    counts = [sum(status), *status[:5], *flags]
    return Coverage._make([*counts, *delays, *stream])


NEVER = -1  # the newest time before any event

# The states merged into a pane, by tier and number, and the result.
Merges = dict[tuple[int, int], tuple[list["State"], "State"]]


def _alike(mine: Sequence[State], theirs: Sequence[State]) -> bool:
    """Whether two sequences hold the same statistics, which never change, and row information."""
    return len(mine) == len(theirs) and all(
        one.infos == two.infos and all(map(operator.is_, one.statistics, two.statistics))
        for one, two in zip(mine, theirs, strict=True)
    )


class Panes:
    """The states of the panes that each tier keeps; they depend only on the rows and their times.

    A tier keeps the panes after ``newest - count``, where `newest` is the pane of the newest event.
    Rows outside of all kept panes are dropped, regardless of arrival. If the panes of a finer tier
    divide a pane, it stores only rows that the finer tier no longer keeps: finer panes are folded
    into it when they expire, and reads combine both. Each row is thus counted once.
    """

    def __init__(self, plan: Plan, tiers: Sequence[Tier]) -> None:
        self.plan = plan
        self.tiers = tuple(tiers)
        self.rows = tuple(PaneTree(plan, tier.count) for tier in tiers)
        self._finer = tuple([_finer(self.tiers, place) for place in range(len(self.tiers))])
        self.newest = NEVER
        self._idle = True  # whether there is no pending work
        self.dropped = 0  # rows that came too late for every tier; not part of the state
        # Of all rows, including those in the join.
        self.facts: tuple[Facts, ...] = tuple({} for _ in plan.schemas)

    def advance(self, newest: int) -> None:
        """Advance to a new newest time."""
        if newest > self.newest:
            self._put(self._unchanged(), newest)

    def add(self, times: Ints, batch: Batch, *, known: bool = False) -> None:
        """Add rows; on an error, nothing changes. `known` rows do not advance `newest`."""
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

    def take_back(self, times: Ints, batch: Batch) -> list[tuple[tuple[int, int], int]]:
        """Take rows out of the panes that hold them, where the states determine what is left.

        Returns:
            The start and end of each other pane, and the number of its rows.
        """
        plan, refused = self.plan, []
        oldest = [tier.oldest(self.newest) for tier in self.tiers]
        for panes, rows, n in list(pieces(plan, self.tiers, times, batch)):
            kept = [pane >= first for pane, first in zip(panes, oldest, strict=True)]
            gone = plan.with_rows(plan.start, rows)
            for place, finer in enumerate(self._finer):
                if not kept[place] or (finer is not None and kept[finer]):
                    continue
                row, number, tier = self.rows[place], panes[place], self.tiers[place]
                try:
                    left = plan.without(row.settled(number) or plan.start, gone)
                except IncompatibleMetricsError:
                    refused.append(((tier.start(number), tier.start(number + 1)), n))
                    continue
                if any(info.n_rows or info.n_omitted for info in left.infos):
                    row.put({number: left})
                else:
                    row.drop([number])
        return refused

    @property
    def start(self) -> int | None:
        """The start of the oldest pane with rows, ``None`` if there is none."""
        pairs = zip(self.tiers, self.rows, strict=True)
        starts = [tier.start(row.states.keys()[0]) for tier, row in pairs if row.states]
        return min(starts, default=None)

    def outside(self, times: Ints, newest: int = NEVER) -> int:
        """Return how many rows no tier keeps when they arrive in this order, after `newest`."""
        newest = max(self.newest, newest)
        last = max(newest, int(times.max(initial=NEVER)))
        if int(times.min(initial=last)) >= min(t.start(t.oldest(last)) for t in self.tiers):
            return 0
        newests = np.maximum(np.maximum.accumulate(times), newest)
        kept = [
            t.numbers(times) >= np.maximum(t.numbers(newests) - t.count + 1, t.floor)
            for t in self.tiers
        ]
        return int((~np.any(kept, axis=0)).sum())

    def _unchanged(self) -> list[dict[int, State]]:
        return [{} for _ in self.tiers]

    def _grow(
        self, changed: list[dict[int, State]], piece: PaneRows, oldest: Sequence[int]
    ) -> bool:
        """Add rows to the changed states of the panes that keep them; return whether any does."""
        plan, (panes, rows, n) = self.plan, piece
        kept = [pane >= first for pane, first in zip(panes, oldest, strict=True)]
        for place, finer in enumerate(self._finer):
            if kept[place] and (finer is None or not kept[finer]):
                pane, states = panes[place], changed[place]
                state = states.get(pane) or self.rows[place].state(pane) or plan.start
                states[pane] = grown(plan, state, rows, n)
        return any(kept)

    def _put(self, changed: Sequence[dict[int, State]], newest: int) -> None:
        """Set the states of panes, and drop panes that expire at the newest time."""
        before, self.newest, self._idle = self.newest, newest, False
        for row, states in zip(self.rows, changed, strict=True):
            row.put(states)
        for place, (tier, row) in enumerate(zip(self.tiers, self.rows, strict=True)):
            if newest > before >= 0 and tier.number(newest) > tier.number(before):
                gone = row.before(tier.oldest(newest))
                self._fold(place, gone)
                row.drop(gone)

    def evict(self, tiers: Sequence[Tier]) -> None:
        """Let the panes before the floors of these tiers expire."""
        self.tiers = tuple(tiers)
        for place, (tier, row) in enumerate(zip(self.tiers, self.rows, strict=True)):
            gone = row.before(tier.floor)
            self._fold(place, gone)
            row.drop(gone)

    def work(self) -> bool:
        """Do one step of the pending work; return whether there was any."""
        if not self._idle:
            pairs = zip(self.rows, self.tiers, strict=True)
            self._idle = not any(row.work(tier.number(self.newest)) for row, tier in pairs)
        return not self._idle

    def _fold(self, place: int, gone: Sequence[int]) -> None:
        """Merge panes that expire from a tier into the coarser panes that contain them."""
        fine, row = self.tiers[place], self.rows[place]
        for target, finer in enumerate(self._finer):
            if finer != place:
                continue
            coarse, into = self.tiers[target], self.rows[target]
            starts = np.array([fine.start(number) for number in gone], np.int64)
            for number, group in groupby(
                zip(coarse.numbers(starts).tolist(), gone, strict=True), lambda pair: pair[0]
            ):
                states = [s for _, n in group if (s := row.settled(n)) is not None]
                mine = into.settled(number) or self.plan.start
                # Where this tier does not keep the pane either, its turn to expire comes next.
                into.put({number: self.plan.merged(mine, states)})

    def merge(self, others: Sequence[Panes], made: Merges | None = None) -> None:
        """Merge others, which stay unchanged; on an error, nothing changes.

        Args:
            others: What to merge.
            made: The merges of the last call, which are used again for states that are the same
                objects, and replaced by those of this one.
        """
        newest = max([self.newest, *(other.newest for other in others)])
        if newest == NEVER:
            return
        changed, before = self._unchanged(), made or {}
        after: Merges = {}
        moved = [other.copy() for other in others]
        self.advance(newest)  # expired panes are folded on both sides
        for other in moved:
            other.evict(self.tiers)
            other.advance(newest)
        for place, (tier, mine) in enumerate(zip(self.tiers, self.rows, strict=True)):
            theirs = [other.rows[place] for other in moved]
            oldest = tier.oldest(newest)
            for number in sorted({n for row in theirs for n in row.states.irange(oldest)}):
                found = [s for row in (mine, *theirs) if (s := row.settled(number)) is not None]
                last, state = before.get((place, number), ([], None))
                if state is None or not _alike(last, found):
                    state = self.plan.merged(found[0], found[1:])
                changed[place][number] = state
                after[place, number] = found, state
        try:
            facts = self._agreed(changed)
            for other in others:  # also the facts of rows in the join
                facts = tuple(map(joined_facts, facts, other.facts))
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(f"they saw different kinds of rows: {error}") from None
        self._put(changed, newest)
        self.facts = facts
        self.dropped += sum(other.dropped for other in others)
        if made is not None:
            made.clear()
            made.update(after)

    def over(self, place: int, first: int, last: int) -> list[State]:
        """Return states whose merge is the state of some panes of a tier."""
        return self.rows[place].over(first, last) + self._within(place, first, last)

    def unmerged(self, place: int, first: int, last: int) -> Iterator[tuple[PaneTree, Node]]:
        """Yield the nodes that `over` has to merge first, with their trees."""
        row = self.rows[place]
        yield from ((row, node) for node in row.unmerged(first, last))
        finer = self._finer[place]
        if finer is not None:
            yield from self.unmerged(finer, *self._fine_run(place, first, last))

    def unread(self, place: int, first: int, last: int) -> Iterator[tuple[PaneTree, Document]]:
        """Yield the documents that `over` has to read first, with their trees."""
        row = self.rows[place]
        yield from ((row, document) for document in row.unread(first, last))
        finer = self._finer[place]
        if finer is not None:
            yield from self.unread(finer, *self._fine_run(place, first, last))

    def each(self, place: int, first: int, last: int) -> list[tuple[State, ...]]:
        """Return the states of each pane of a run in a tier."""
        found, finer = self.rows[place].each(first, last), self._finer[place]
        if finer is not None and self.newest != NEVER:
            fine, tier = self.tiers[finer], self.tiers[place]
            begin = tier.number(max(fine.start(fine.oldest(self.newest)), 0))
            for number in range(max(begin, first), last + 1):
                found[number - first] += tuple(self._within(place, number, number))
        return found

    def _within(self, place: int, first: int, last: int) -> list[State]:
        """Return the states of the kept finer panes within a run of panes."""
        finer = self._finer[place]
        return [] if finer is None else self.over(finer, *self._fine_run(place, first, last))

    def _fine_run(self, place: int, first: int, last: int) -> tuple[int, int]:
        """Return the first and last kept finer pane within a run of panes."""
        finer = self._finer[place]
        if finer is None or self.newest == NEVER:
            return 0, -1
        fine, tier = self.tiers[finer], self.tiers[place]
        start = max(fine.number(tier.start(first)), fine.oldest(self.newest))
        end = min(fine.number(tier.start(last + 1) - 1), fine.number(self.newest))
        return start, end

    def agree(self) -> None:
        """Compute the facts of all rows from states that were read."""
        numbers = [list(row.states) for row in self.rows]
        found = [
            {n: state for n in mine if (state := row.state(n))}
            for row, mine in zip(self.rows, numbers, strict=True)
        ]
        self.facts = self._agreed(found)

    def _agreed(self, changed: Sequence[Mapping[int, State]]) -> tuple[Facts, ...]:
        """Return the facts of all rows; raise `InvalidBatchError` if they contradict each other."""
        facts = self.facts
        for states in changed:
            for state in states.values():
                more = [feed.facts for feed in state.agreed or state.infos]
                if any(one != other for one, other in zip(facts, more, strict=True)):
                    facts = tuple(map(joined_facts, facts, more))
        return facts

    def copy(self) -> Panes:
        """Return an independent copy."""
        twin = Panes(self.plan, self.tiers)
        for mine, row in zip(twin.rows, self.rows, strict=True):
            mine.states.update(row.states)
            mine._written, mine._unread = row._written, set(row._unread)
        twin.newest, twin.dropped, twin.facts = self.newest, self.dropped, self.facts
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes used by states."""
        return sum(row.nbytes for row in self.rows)


def _finer(tiers: Sequence[Tier], place: int) -> int | None:
    """Return the coarsest tier whose panes divide those of a tier, ``None`` if there is none."""
    coarse = tiers[place]
    for finer in range(place - 1, -1, -1):
        fine = tiers[finer]
        if not fine.zone and (not coarse.zone or QUARTER % fine.length == 0):
            return finer
    return None


def grown(plan: Plan, state: State, rows: tuple[Rows, ...], n: int) -> State:
    """Return a state with more rows, which are only buffered while they are few."""
    if n > tuning.PANE_ROWS or (plan.can_refuse and plan.may_refuse(state, rows)):
        return plan.with_rows(state, rows)
    if state.pending >= tuning.PANE_ROWS:
        state = plan.fed(state)
    return plan.with_buffered(state, tuple(map(owned, rows)), n)
