"""The result of a comparison of models: a line for each metric and pair of models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex, overload

from streammetrics.core.results.table import Table, aligned
from streammetrics.core.results.values import Result, plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from streammetrics.core.types import Document


class Difference(NamedTuple):
    """The difference between the values of one metric for two models.

    Attributes:
        metric: Name of the metric.
        model: Name of the model.
        against: Name of the model it is compared with.
        value: Value for `model`.
        other: Value for `against`.
        difference: ``value - other``.
        low: Lower confidence limit of the difference in the population that the rows are sampled
            from.
        high: Upper confidence limit.
        p: Two-sided p-value of the hypothesis that the difference in the population is zero.
        p_adjusted: `p`, adjusted for the number of pairs of models (Holm 1979).
        verdict: ``"a better"`` for a model a, or ``"no evidence"``.
        test: Name of the test that gives the limits and the p-value.
        n_rows: Number of rows behind both values. ``None`` if each model has its own rows, and for
            rankings, whose values are of the same queries.
        margin: Largest acceptable deterioration, which makes the verdict ``"better"``, ``"not
            worse"``, ``"worse"`` or ``"undecided"``. ``None`` if no margin was given.
    """

    metric: str
    model: str
    against: str
    value: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    verdict: str
    test: str
    n_rows: int | None = None
    margin: float | None = None

    def __str__(self) -> str:
        return str(Differences([self], level=math.nan))


class Differences(Result, tuple[Difference, ...]):
    """The lines of a comparison; ``found["auc"]`` has those of one metric. Prints as a table."""

    level: float
    n_rows: int | Mapping[str, int] | None  # rows that all models share, or each model's own

    def __new__(
        cls,
        lines: Iterable[Difference],
        level: float,
        n_rows: int | Mapping[str, int] | None = None,
    ) -> Self:
        """Return the lines; `level` is the confidence level of their limits."""
        self = super().__new__(cls, lines)
        self.level = level
        self.n_rows = n_rows
        return self

    @overload
    def __getitem__(self, place: SupportsIndex) -> Difference: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Difference, ...]: ...
    @overload
    def __getitem__(self, place: str) -> Differences: ...
    def __getitem__(self, place: SupportsIndex | slice | str) -> object:
        """Return a line by its index, or all lines of a metric by its name."""
        if not isinstance(place, str):
            return super().__getitem__(place)
        lines = [line for line in self if line.metric == place]
        if not lines:
            names = ", ".join(repr(name) for name in dict.fromkeys(line.metric for line in self))
            raise KeyError(f"no metric {place!r}; there are {names}")
        return Differences(lines, self.level, self.n_rows)

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """The value of each model, by metric and model."""
        found: dict[str, dict[str, float]] = {}
        for line in self:
            of = found.setdefault(line.metric, {})
            of.setdefault(line.model, line.value)
            of.setdefault(line.against, line.other)
        return found

    def to_dict(self) -> Document:
        """Return the confidence level, the rows, the values and the lines in plain Python."""
        lines = [plain(line._asdict()) for line in self]
        rows = dict(self.n_rows) if isinstance(self.n_rows, Mapping) else self.n_rows
        return {
            "confidence": self.level,
            "n_rows": rows,
            "values": plain(self.values),
            "differences": lines,
        }

    def _table(self) -> Table:
        columns = {name: [getattr(line, name) for line in self] for name in Difference._fields}
        index = {name: columns.pop(name) for name in ("metric", "model", "against")}
        return Table(index, columns)

    @property
    def rows_said(self) -> str:
        """The rows behind the values as text; empty if unknown or different between metrics."""
        if isinstance(self.n_rows, Mapping):
            sizes = ", ".join(f"{n:,} of {name}" for name, n in self.n_rows.items())
            return f"values of each one's own rows: {sizes}"
        rows = self._distinct_rows
        if len(rows) != 1 or None in rows:
            return ""
        return f"values of the {rows.pop():,} rows that all models have"

    @property
    def _distinct_rows(self) -> set[int | None]:
        return {line.n_rows for line in self}

    def grid(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header and the lines as formatted text."""
        several = any(line.p != line.p_adjusted for line in self)
        counted = len(self._distinct_rows) > 1
        margins = any(line.margin is not None for line in self)
        level = "" if math.isnan(self.level) else f" ({100 * self.level:g} %)"
        header = (
            "metric", "model", "value", "against", "value", "difference", f"within{level}", "p",
            *(["p adjusted"] if several else []), *(["rows"] if counted else []),
            *(["margin"] if margins else []), "verdict", "test",
        )  # fmt: skip
        lines = []
        for line in self:
            digits = _digits(line)
            value, other, difference, low, high = (_shown(x, digits) for x in line[3:8])
            adjusted = [_chance(line.p_adjusted)] if several else []
            if counted:
                adjusted.append("" if line.n_rows is None else f"{line.n_rows:,}")
            if margins:
                adjusted.append("" if line.margin is None else f"{line.margin:g}")
            lines.append(
                (
                    line.metric, line.model, value, line.against, other, difference,
                    f"{low} .. {high}", _chance(line.p), *adjusted, line.verdict, line.test,
                )
            )  # fmt: skip
        return header, lines

    def __repr__(self) -> str:
        header, lines = self.grid()
        table = aligned([header, *lines], {0, 1, 3, len(header) - 2, len(header) - 1})
        return f"{table}\n{self.rows_said}" if self.rows_said else table

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (tuple(self), self.level, self.n_rows)


def _digits(line: Difference) -> int:
    """Return how many decimals show the width of the interval to about two significant digits."""
    width = line.high - line.low
    if not 0 < width < math.inf:
        return 4
    return min(max(4, 2 - math.floor(math.log10(width))), 12)


def _shown(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else str(value)
    return f"{value:.{digits}f}" if abs(value) < 1e7 else f"{value:.6g}"


def _chance(p: float) -> str:
    """Format a p-value in few characters."""
    if math.isnan(p):
        return "undefined"
    if p <= 1e-300:
        return "< 1e-300"
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.1e}"
