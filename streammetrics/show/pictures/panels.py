"""Pictures of all metrics of a set, and of one metric of several models."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from streammetrics.core.errors import NoConfidenceError, StreamMetricsError, UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.curves import Curves
from streammetrics.core.results.hooks import Drawing, drawn, drawn_together, has_picture
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.result import Result
from streammetrics.core.results.values import KeyedValues, Report
from streammetrics.inference.comparison import Comparison
from streammetrics.show.pictures.canvas import grid
from streammetrics.show.pictures.curves import COMPARED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from matplotlib.axes import Axes

    from streammetrics.core.metric import Metric


_ACROSS = 3  # pictures side by side


class Picture(NamedTuple):
    """A metric, and the value that its picture shows."""

    name: str
    metric: Metric
    value: Any

    @property
    def first(self) -> Any:
        """The value, or the curve of the first class."""
        return self.value[0] if isinstance(self.value, Curves) and self.value else self.value


def pictures(metrics: Mapping[str, Metric]) -> Iterator[Picture]:
    """Yield the metrics that have a picture; of several with the same picture only the first.

    Curves come before the metrics that only read a number of one, because curves have bounds.
    """
    done: set[object] = set()
    for name, metric in sorted(metrics.items(), key=_is_read):
        try:
            picture = Picture(name, metric, metric._shape(*metric._read()))
        except (TypeError, StreamMetricsError):
            continue
        first = picture.first
        many = isinstance(first, LabelledArray) and first.ndim > 2
        if many or not has_picture(type(first)):
            continue
        own = isinstance(first, LabelledArray | Report | KeyedValues)
        key = name if own else (type(first), *(s._key for s in metric.statistics()))
        if key not in done:
            done.add(key)
            yield picture


def _is_read(item: tuple[str, Metric]) -> bool:
    metric = item[1]
    return not isinstance(metric.readout(*metric._read()), Result)


def together(models: Mapping[str, Mapping[str, Metric]]) -> Iterator[tuple[str, Curves]]:
    """Yield the curves of all models that one picture can show, with the name of the metric."""
    every = [{each.name: each.value for each in pictures(of)} for of in models.values()]
    for name in every[0]:
        curves = [of[name] for of in every if name in of]
        kinds = {*map(type, curves)}
        if len(curves) == len(every) and len(kinds) == 1 and kinds <= COMPARED:
            yield name, Curves(curves, models, "model")


@drawn_together.register(MetricSet)
def draw_set(suite: MetricSet, names: tuple[str, ...], level: float | None) -> dict[str, Axes]:
    """Draw every metric of a set, or those of the given names."""
    members = {name: suite[name] for name in names or suite}
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        found = {each.name for each in pictures(members)}
        axes = _panels(names or [name for name in members if name in found], members, "plot")
        for name, ax in axes.items():
            try:
                members[name].plot(ax, confidence=level)
            except NoConfidenceError:
                members[name].plot(ax)
    return axes


@drawn_together.register(Comparison)
def draw_models(duel: Comparison, names: tuple[str, ...], level: float | None) -> dict[str, Axes]:
    """Draw each curve of all models on the same axes."""
    if level is not None:
        raise TypeError(
            "plot(confidence=...): bands of several models would hide each other; draw one model, "
            f"as comparison[{duel.models[0]!r}].plot(confidence={level:g})"
        )
    members = names or duel.of_metrics
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        models = {model: {name: suite[name] for name in members} for model, suite in duel.items()}
        found = dict(together(models))
        for name in names:
            if name not in found:
                raise TypeError(f"{name} has no curve, and compute().plot() draws differences")
        axes = _panels(names or found, members, "curve, and compute().plot() draws differences")
        for name, ax in axes.items():
            drawn(found[name], ax, Drawing(name=name, n_rows=duel.n_rows))
    return axes


def _panels(shown: Collection[str], members: Iterable[str], what: str) -> dict[str, Axes]:
    """Return axes by name, on a new figure.

    Raises:
        TypeError: There is nothing to show.
    """
    if not shown:
        raise TypeError(f"none of the metrics has a {what}: {', '.join(members)}")
    across = min(len(shown), _ACROSS)
    down = -(-len(shown) // across)
    every = grid(down, across)
    for ax in every[len(shown) :]:
        ax.remove()
    return dict(zip(shown, every, strict=False))
