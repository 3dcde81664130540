"""One slice that was read, its limits, and the table of the worst ones."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.slices.fairness import Measured, adjusted, measured, p_value, plain_limits
from streammetrics.slices.table import SliceTable, key_columns, named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.layout import State
    from streammetrics.core.metric import Metric


class Slice:
    """One slice that was read; its state is made where it is asked for."""

    __slots__ = ("_made", "_state", "columns", "n_rows", "parts")

    def __init__(
        self, columns: tuple[str, ...], parts: Any, n_rows: int, state: Callable[[], State]
    ) -> None:
        self.columns, self.parts, self.n_rows, self._state = columns, parts, n_rows, state
        self._made: State | None = None

    @property
    def state(self) -> State:
        """The state of its rows."""
        if self._made is None:
            self._made = self._state()
        return self._made

    @property
    def title(self) -> str:
        """What it is called."""
        return named(self.columns, self.parts)

    def measured(self, name: str, metric: Metric, level: float | None) -> Measured:
        """Return the value and the limits of a metric."""
        return measured(name, metric, self.title, self.n_rows, self.state, level)

    def beside(self, name: str, metric: Metric, rest: State, level: float | None) -> Measured:
        """Return the value and the limits of a metric for all other rows."""
        return measured(name, metric, f"all but {self.title}", 0, rest, level)


def ranked(
    rows: Sequence[tuple[Slice, Measured, Measured | None]],
    name: str,
    k: int,
    level: float | None,
    *,
    low_is_bad: bool,
) -> SliceTable:
    """Return the worst slices as a table."""
    p = [
        math.nan if rest is None or level is None else p_value(one, rest, level)
        for _, one, rest in rows
    ]
    adjusted_p = adjusted(p)

    def badness(place: int) -> tuple[bool, float, float]:
        one = rows[place][1]
        low, high = (one.value, one.value) if level is None else plain_limits(one.confidence)
        limit = high if low_is_bad else -low
        value = one.value if low_is_bad else -one.value
        return math.isnan(limit), 0.0 if math.isnan(limit) else limit, value

    known = [place for place, (_, one, _) in enumerate(rows) if not math.isnan(one.value)]
    order = sorted(known, key=badness)[:k]
    chosen = [rows[place] for place in order]
    table = SliceTable(key_columns([(each.columns, each.parts) for each, _, _ in chosen]))
    table["n_rows"] = np.array([each.n_rows for each, _, _ in chosen], np.int64)
    table[name] = np.array([one.value for _, one, _ in chosen], float)
    if level is not None:
        limits = [plain_limits(one.confidence) for _, one, _ in chosen]
        table[f"{name}_low"] = np.array([low for low, _ in limits], float)
        table[f"{name}_high"] = np.array([high for _, high in limits], float)
        rests = [math.nan if rest is None else rest.value for _, _, rest in chosen]
        table[f"{name}_rest"] = np.array(rests, float)
        table["p"] = np.array([p[place] for place in order], float)
        table["p_adjusted"] = np.array([adjusted_p[place] for place in order], float)
    return table


def limits_of(
    metric: Metric, state: State, level: float, *, anytime: bool = False
) -> ConfidenceInterval | None:
    """Return the confidence limits of a metric at a state, ``None`` where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            return metric._confident(state, level, anytime=anytime)
        except NoConfidenceError:
            return None
