"""What is told of slices: those of enough rows, and the worst ones with their limits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.results.values import numbers
from streammetrics.slices.table import SliceTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.confidence import Unit
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Document
    from streammetrics.slices.fairness import Slice
    from streammetrics.slices.slices import Slices


@dataclass(frozen=True)
class Sliced:
    """What is told of slices.

    Attributes:
        table: Those of enough rows, without the one of all rows.
        read: All that were read, of which those of fewer than `min_rows` are left out.
        hidden: How many have too few rows.
        worst: The worst by one metric, if they were asked for, and its name.
        sure: Whether the table has limits of confidence.
    """

    table: SliceTable
    read: Slices
    min_rows: int
    hidden: int
    by: str | None
    worst: SliceTable | None
    sure: bool

    @classmethod
    def of(
        cls,
        slices: Slices,
        min_rows: int,
        by: str | None,
        worst: SliceTable | None,
        level: float | None = None,
        unit: Unit = ...,
    ) -> Sliced:
        """Read all slices, with limits of confidence where there is a level for them."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            table = slices.compute(confidence=level, unit=unit)
        whole, rows = table._whole(), table["n_rows"].tolist()
        parts = [place for place in range(len(table)) if place != whole]
        kept = [place for place in parts if rows[place] >= min_rows]
        hidden, sure = len(parts) - len(kept), level is not None
        return cls(taken(table, kept), slices, min_rows, hidden, by, worst, sure)

    def lines(self) -> Iterator[tuple[object, ...]]:
        """Yield each number: metric, part, value, certain limits, whether exact, rows, omitted.

        Limits of confidence come last, where there are any.
        """
        every = self.read._slices(self.read._accumulator.flush())
        shown = [each for each in every if each.columns and each.n_rows >= self.min_rows]
        for place, each in enumerate(shown):
            for name, metric in self.read._metrics.items():
                for part, line in _lines(each, name, metric):
                    yield *line, *self._limits(f"{name}_{part}" if part else name, place)

    def _limits(self, title: str, place: int) -> Iterator[object]:
        """Yield both limits of a line of the table; a curve has none, nor columns."""
        for side in ("low", "high") if self.sure else ():
            column = self.table.get(f"{title}_{side}")
            yield None if column is None else column[place]

    def without(self, metrics: Sequence[str]) -> SliceTable:
        """Return the table without the columns of some metrics."""

        def of(title: str) -> str:
            """Return the metric whose column this is, or an empty text."""
            names = (n for n in self.read._metrics if title == n or title.startswith(f"{n}_"))
            return max(names, key=len, default="")

        keys = {"by", *self.table._keys()}
        kept = [title for title in self.table if title in keys or of(title) not in metrics]
        return SliceTable({title: self.table[title] for title in kept})

    def document(self) -> Document:
        """Return the slices as JSON has them, column by column."""
        found: Document = {"slices": self.table.to_dict()}
        if self.worst is not None:
            found["worst"] = {"by": self.by, **self.worst.to_dict()}
        return found


def taken(table: SliceTable, places: list[int]) -> SliceTable:
    """Return some rows of a table."""
    return SliceTable({title: column[places] for title, column in table.items()})


def _lines(each: Slice, name: str, metric: Metric) -> Iterator[tuple[str, tuple[object, ...]]]:
    read = metric._chosen(each.state)
    exact = "true" if metric.is_exact(*read) else "false"
    with own_arithmetic():
        value, _ = metric._judged(*read)
        limits = dict(numbers(metric.interval(*read)))
    omitted = max(feed.n_omitted for feed in metric._chosen_feeds(each.state))
    for part, row in numbers(value):
        sides = limits.get(part, {})
        found = (row["value"], sides.get("low"), sides.get("high"))
        title = "/".join(filter(None, (each.title, part)))
        yield part, (name, title, *found, exact, metric._n_rows(each.state), omitted)
