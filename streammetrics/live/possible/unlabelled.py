"""Rows without a label: those that left the join, as panes keep them, and those that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from streammetrics.core.columns.batch import WEIGHT, Batch
from streammetrics.core.feeding.plan import Plan
from streammetrics.live.panes import Panes
from streammetrics.live.possible.rules import rule_of
from streammetrics.live.spans import metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Array
    from streammetrics.live.events import Tier
    from streammetrics.live.panes import Node, PaneTree
    from streammetrics.live.possible.remembered import Remembered
    from streammetrics.live.spans import Span

    NamedColumns = Mapping[str, Column]

R = TypeVar("R", bound="Remembered")


class UnlabelledPanes:
    """Panes of rows that left without a label, with the statistics that rules need of each column.

    As with labelled rows, the panes depend only on the events. Columns are independent, because no
    rule reads two of them. Rows with weights and nested columns are not kept, because no rule
    supports them.
    """

    def __init__(self, suite: Mergeable, tiers: Sequence[Tier]) -> None:
        titles: Mapping[str, str] = getattr(suite, "columns", {})
        rules = filter(None, [rule_of(metric, titles) for metric in metrics_of(suite).values()])
        wanted: dict[str, list[Remembered]] = {}
        for rule in rules:
            wanted.setdefault(rule.asks.of, []).append(rule.asks)
        self.columns = {title: Panes(Plan(asked), tiers) for title, asked in wanted.items()}
        self.weight = titles.get(WEIGHT, WEIGHT)

    def advance(self, newest: int) -> None:
        """Advance the panes to a new newest time."""
        for panes in self.columns.values():
            panes.advance(newest)

    def evict(self, tiers: Sequence[Tier]) -> None:
        """Let the panes before the floors of these tiers expire."""
        for panes in self.columns.values():
            panes.evict(tiers)

    def add(self, times: Array, columns: NamedColumns) -> None:
        """Add rows that leave without a label."""
        for title, panes in self.columns.items():
            batch = self.batch(title, columns)
            if batch is not None:
                panes.add(times, batch, known=True)

    def batch(self, title: str, columns: NamedColumns) -> Batch | None:
        """Return a column as a batch, ``None`` if no rule supports its rows."""
        column = columns.get(title)
        if column is None or column.values.ndim > 1 or self.weight in columns:
            return None
        batch = Batch({title: column})
        batch.column(title)
        return batch

    def work(self) -> bool:
        """Do one step of pending work; return whether there was one."""
        return any(panes.work() for panes in self.columns.values())

    def over(self, span: Span) -> dict[str, State]:
        """Return the merged state of a span, by column."""
        return {
            title: panes.plan.merged(panes.plan.start, panes.over(*span))
            for title, panes in self.columns.items()
        }

    def unmerged(self, span: Span) -> Iterator[tuple[PaneTree, Node]]:
        """Yield the nodes that `over` would have to merge first, with their trees."""
        for panes in self.columns.values():
            yield from panes.unmerged(*span)

    def merge(self, others: Sequence[UnlabelledPanes]) -> None:
        """Merge others, which stay unchanged."""
        for title, panes in self.columns.items():
            panes.merge([other.columns[title] for other in others])

    def copy(self) -> UnlabelledPanes:
        """Return an independent copy."""
        twin = object.__new__(UnlabelledPanes)
        twin.columns = {title: panes.copy() for title, panes in self.columns.items()}
        twin.weight = self.weight
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes used by states."""
        return sum(panes.nbytes for panes in self.columns.values())


class Unlabelled(NamedTuple):
    """The unlabelled rows of a window: those that left, and those that wait."""

    left: UnlabelledPanes
    states: Mapping[str, State]  # by column, of the rows that left
    n_left: int
    waiting: NamedColumns
    n_waiting: int

    def of(self, asked: R) -> R | None:
        """Return a statistic of all unlabelled rows, ``None`` if it lacks some of them.

        It lacks rows that left before it was kept, and rows that no rule supports. Rows that wait
        are added without any limit on memory.
        """
        plan = self.left.columns[asked.of].plan
        place, state = plan.places[asked._key, asked.schema], self.states[asked.of]
        feed = state.infos[plan.sources[place]]
        if feed.n_rows + feed.n_omitted != self.n_left:
            return None
        kept: Any = state.statistics[place]
        found: R = kept.widened()
        if self.n_waiting:
            batch = self.left.batch(asked.of, self.waiting)
            if batch is None:
                return None
            alone = Plan([type(found)(**found.config)])
            read: Any = alone.with_slices(alone.start, batch).statistics[0]
            found = found.fork()
            found.merge(read)
        return found
