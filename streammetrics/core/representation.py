"""How metrics are displayed: as a line, in a notebook, and as a plot."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from streammetrics.core.confidence import ConfidenceRequest, confidence_of
from streammetrics.core.errors import NoConfidenceError, StreamMetricsError
from streammetrics.core.results.hooks import Drawing, ReadNumber, drawn
from streammetrics.core.results.table import Table, shown
from streammetrics.core.results.values import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from streammetrics.core.accumulator import Accumulator, ReadOnly
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.states import State
    from streammetrics.core.results.values import Interval
    from streammetrics.core.statistic import Statistic

_CHEAP = 1 << 14  # largest state, in bytes, that repr() reads
_LOOKED = 1 << 20  # the same for notebooks, where a delay is acceptable


class _Metric(Protocol):
    """The methods of `Metric` used here; `metric` imports this module."""

    _accumulator: Accumulator | ReadOnly

    def readout(self, *statistics: object) -> object:
        """Return the value of the statistics."""

    def interval(self, *statistics: object) -> Interval[object]:
        """Return guaranteed limits of the exact value."""

    def is_exact(self, *statistics: object) -> bool:
        """Whether the readout is the exact value."""

    def _shape(self, *statistics: object) -> object:
        """Return the object to plot."""

    def _pictured(self) -> _Metric:
        """Return the metric of the same statistics whose value is plotted."""

    def _chosen(self, state: State) -> tuple[Statistic, ...]:
        """Return the statistics of a state that the metric reads."""

    def _n_rows(self, state: State) -> int:
        """Return the number of rows in a state."""

    def _titled(self) -> str:
        """Return the configuration as source code."""


def line_of(metric: _Metric, state: State) -> str:
    """Return the configuration, the number of rows, and the value if it is cheap to read."""
    value = _glimpse(metric, state, _CHEAP)
    equals = f" = {shown(value)}" if isinstance(value, int | float) else ""
    return f"{metric._titled()} <{metric._n_rows(state):,} rows>{equals}"


def html_of(metric: _Metric, state: State) -> str:
    """Return the HTML representation of a metric for notebooks."""
    line = f"<p>{escape(line_of(metric, state))}</p>"
    value = _glimpse(metric, state, _LOOKED)
    if isinstance(value, Result):
        return f"{line}{value._repr_html_() or ''}"
    look = {title: [cell] for title, cell in _looked_at(metric, state).items()}
    return f"{line}{Table({'metric': [type(metric).__name__]}, look).html()}"


def html_of_set(metrics: Mapping[str, _Metric], state: State) -> str:
    """Return the HTML representation of several metrics of one state for notebooks."""
    looks = [_looked_at(metric, state) for metric in metrics.values()]
    columns: dict[str, list[object]] = {
        "configuration": [repr(metric).partition(" <")[0] for metric in metrics.values()],
        **{title: [look[title] for look in looks] for title in (looks[0] if looks else ())},
    }
    return Table({"metric": list(metrics)}, columns).html()


def _glimpse(metric: _Metric, state: State, most: int) -> object:
    """Return the value, or None if there are no rows, too many bytes to read, or an error."""
    statistics = metric._chosen(state)
    if not metric._n_rows(state) or sum(s.nbytes for s in statistics) > most:
        return None
    try:
        return metric.readout(*statistics)
    except StreamMetricsError:  # `compute` will report it
        return None


def _looked_at(metric: _Metric, state: State) -> dict[str, object]:
    """Return the cells of a metric's row: value, guaranteed limits, exactness, number of rows."""
    value = _glimpse(metric, state, _LOOKED)
    cells: dict[str, object] = {"value": "", "certainly within": "", "exact": ""}
    if isinstance(value, int | float):
        statistics = metric._chosen(state)
        exact = metric.is_exact(*statistics)
        low, high = metric.interval(*statistics)
        within = "" if exact else f"{shown(low)} .. {shown(high)}"
        cells = {"value": value, "certainly within": within, "exact": "yes" if exact else "no"}
    return {**cells, "rows": metric._n_rows(state)}


def drawn_of(
    metric: _Metric,
    state: State,
    ax: object,
    *,
    kind: str | None,
    confidence: float | None,
    style: dict[str, object],
) -> Axes:
    """Plot a metric; return Matplotlib's axes."""
    statistics = metric._chosen(state)
    n_rows = metric._n_rows(state)
    value = metric._shape(*statistics)
    own = isinstance(value, type(metric.readout(*statistics)))
    certain = sure = None
    if own and not metric.is_exact(*statistics):
        certain = metric.interval(*statistics)
    pictured = metric._pictured()
    if confidence is not None and metric._accumulator.unit is not None:
        if pictured is metric:  # curves have no limits by unit
            sure = _by_unit(metric, confidence)
    elif confidence is not None and isinstance(value, type(pictured.readout(*statistics))):
        asked = ConfidenceRequest(confidence, anytime=False, n_rows=n_rows)
        sure = confidence_of(pictured, asked, *statistics)
    told = Drawing(
        kind,
        certain=certain,
        sure=sure,
        read=None if own else _read_number(metric, state, confidence),
        n_rows=n_rows,
        name=type(metric).__name__,
        style=style,
    )
    return drawn(value, ax, told)


def _by_unit(metric: Any, level: float) -> ConfidenceInterval | None:
    """Return the limits by the unit of the metric's set; None if the metric has no such limits."""
    with suppress(NoConfidenceError):
        found: ConfidenceInterval = metric.confidence(level)
        return found
    return None


def _read_number(metric: _Metric, state: State, level: float | None) -> ReadNumber | None:
    """Return the value with its bounds and limits; None if it is not a single number."""
    statistics = metric._chosen(state)
    value = metric.readout(*statistics)
    if not isinstance(value, float):
        return None
    bounds = None if metric.is_exact(*statistics) else metric.interval(*statistics)
    sure = None
    if level is not None and metric._accumulator.unit is not None:
        sure = _by_unit(metric, level)
    elif level is not None:
        with suppress(NoConfidenceError):
            asked = ConfidenceRequest(level, anytime=False, n_rows=metric._n_rows(state))
            sure = confidence_of(metric, asked, *statistics)
    return ReadNumber(value, bounds, sure)
