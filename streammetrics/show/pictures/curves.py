"""Pictures of curves: lines with bands, of one metric, of a set, and of several models."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.errors import (
    NoConfidenceError,
    StreamMetricsError,
    undefined_expected,
)
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.hooks import Drawing, drawn, drawn_together, has_picture
from streammetrics.core.results.values import (
    Curves,
    Interval,
    KeyedValues,
    LabelledArray,
    Report,
    Result,
)
from streammetrics.inference.comparison import Comparison
from streammetrics.inference.distributions import normal_quantile
from streammetrics.metrics.scores.areas import GainPoints, LiftPoints
from streammetrics.metrics.scores.base import DETPoints, PRPoints, ROCPoints
from streammetrics.metrics.scores.calibration import CalibrationPoints
from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    around,
    axes,
    between,
    certain_band,
    certain_gains,
    certain_pr,
    certain_roc,
    chosen,
    counted,
    empty,
    figure,
    grid,
    legend,
    logits,
    option,
    percent,
    short,
    stepped,
    sure_band,
    sure_det,
    sure_pr,
    sure_roc,
    thinned,
    titled,
    worst_of,
)
from streammetrics.show.pictures.values import draw_distributions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from matplotlib.axes import Axes

    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Points
    from streammetrics.core.types import Floats, Options
    from streammetrics.show.pictures.canvas import Outline


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
    with undefined_expected():
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
    with undefined_expected():
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


Rates = ROCPoints | PRPoints | DETPoints | GainPoints | LiftPoints
# Curves that several models are compared by.
COMPARED = {ROCPoints, PRPoints, DETPoints, GainPoints, LiftPoints, CalibrationPoints}


def path(curve: Any, kind: str) -> Outline:
    """Return the thinned points of a curve's picture."""
    match kind:
        case "pr":  # as in scikit-learn: precision holds until the next recall
            x, y = stepped(curve.recall, curve.precision)
        case "det":
            return _det(*_errors(curve))
        case "gains":
            x, y = _gains(curve)
        case "lift":
            x, y = _lift(curve)
        case _:
            x, y = curve.fpr, curve.tpr
    at = thinned(x, y)
    return x[at], y[at]


def certain(curve: Any, kind: str) -> Outline:
    """Return the polygon that certainly holds a curve with cells of several scores."""
    match kind:
        case "pr":
            return certain_pr(curve)
        case "det":
            x, y = _errors(curve)
            sides = certain_roc(x, 1 - y)
            best, worst = ((logits(across), logits(1 - up)) for across, up in sides)
            x, y = around(best, worst)
            return deviates(x), deviates(y)
        case "gains":
            return around(*certain_gains(*_gains(curve), _prevalence(curve)))
        case "lift":
            sides = certain_gains(*_gains(curve), _prevalence(curve), fine=True)
            most, least = ((x[x > 0], y[x > 0] / x[x > 0]) for x, y in sides)
            return around(most, least)
    return around(*certain_roc(curve.fpr, curve.tpr))


def why_not(curve: Rates) -> str:
    """Return the reason why a curve cannot be drawn, or ""."""
    if isinstance(curve, PRPoints):
        rates, none = {"positives": curve.recall}, not len(curve.thresholds)
    elif isinstance(curve, ROCPoints):
        rates, none = {"positives": curve.tpr, "negatives": curve.fpr}, len(curve.thresholds) < 2
    elif isinstance(curve, DETPoints):
        rates, none = {"positives": curve.fnr, "negatives": curve.fpr}, not len(curve.thresholds)
    else:
        height = curve.gain if isinstance(curve, GainPoints) else curve.lift
        rates, none = {"positives": height}, not len(curve.depth) or bool(np.isnan(curve.depth[-1]))
    missing = [name for name, rate in rates.items() if np.isnan(rate).any()]
    if none or len(missing) == 2:
        return "no rows were seen"
    return f"there are no {missing[0]}, all rows are of one class" if missing else ""


def why_no_errors(curve: ROCPoints | DETPoints) -> str:
    """Return the reason why no point of a curve fits the scale of error rates, or ""."""
    some = [((rate > 0) & (rate < 1)).any() for rate in _errors(curve)]
    return "" if any(some) else "all rates are 0 or 1,\nwhich its scale does not reach"


def area(curve: Rates) -> float:
    """Return a score of a curve, higher is better: the area below it, or above it for DET."""
    if isinstance(curve, ROCPoints):
        return float(np.trapezoid(curve.tpr, curve.fpr))
    if isinstance(curve, PRPoints):
        return float(-np.sum(np.diff(curve.recall) * curve.precision[:-1]))
    if isinstance(curve, DETPoints):
        return float(1 + np.trapezoid(curve.fnr, curve.fpr))
    return float(np.trapezoid(*reversed(curve[:2])))


def deviates(places: Floats) -> Floats:
    """Convert logits to normal deviates, the scale of DET axes."""
    return np.array([normal_quantile(1 / (1 + np.exp(-place))) for place in places])


def _errors(curve: ROCPoints | DETPoints) -> Outline:
    return curve.fpr, curve.fnr if isinstance(curve, DETPoints) else 1 - curve.tpr


def _det(x: Floats, y: Floats) -> Outline:
    inside = (x > 0) & (x < 1) & (y > 0) & (y < 1)
    x, y = logits(x[inside]), logits(y[inside])
    at = thinned(x, y) if len(x) else np.zeros(0, np.intp)
    return deviates(x[at]), deviates(y[at])


def _gains(curve: ROCPoints | GainPoints | LiftPoints) -> Outline:
    """Return the share of rows at or above each threshold, and the share of the positives there."""
    if isinstance(curve, GainPoints):
        return curve.depth, curve.gain
    if isinstance(curve, LiftPoints):
        return np.append(0.0, curve.depth), np.append(0.0, curve.lift * curve.depth)
    share = _prevalence(curve)
    return curve.tpr * share + curve.fpr * (1 - share), curve.tpr


def _lift(curve: ROCPoints | GainPoints | LiftPoints) -> Outline:
    if isinstance(curve, LiftPoints):
        return curve.depth, curve.lift
    depth, gain = _gains(curve)
    return depth[depth > 0], gain[depth > 0] / depth[depth > 0]


def _prevalence(curve: Points) -> float:
    if curve.positives is None or curve.negatives is None:
        raise TypeError("gains and lift need the counts of a curve that a metric computed")
    return float(curve.positives / (curve.positives + curve.negatives))


_WIDE = (8.4, 4.2)


def draw_thresholds(curve: PRPoints, ax: object, drawing: Drawing) -> Axes:
    """Draw measures by threshold; `cost` is (cost of a false positive, of a false negative)."""
    cost = option(drawing, "cost")
    ax = axes(ax, _WIDE)
    ax.set_xlabel("threshold: scores from here on are positive")
    ax.set_ylabel("share")
    rows = 0 if curve.positives is None else curve.positives + (curve.negatives or 0)
    told = f"n = {rows:,}, {curve.positives:,} positive" if rows else ""
    titled(ax, "Precision, recall, F1 and cost by threshold", told, stacked=True)
    finite = np.isfinite(curve.thresholds)
    precision, recall = curve.precision[:-1][finite], curve.recall[:-1][finite]
    at = curve.thresholds[finite]
    if not len(at) or np.isnan(recall).any():
        return empty(ax, "there are no positives" if len(at) else "no rows were seen")
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    lines = {"precision": precision, "recall": recall, "F1": f1}
    best = {"F1": int(f1.argmax())}
    if rows and curve.positives:
        lines["cost"], name = _costs(curve, precision, recall, cost or (1.0, 1.0), rows)
        best["cost"] = int(lines["cost"].argmin())
    right = ax.twinx() if lines.get("cost", f1).max() > 1 else ax
    for number, (title, values) in enumerate(lines.items()):
        places = thinned(at, values)
        label = name if title == "cost" else title
        style = {"color": COLOURS[number], "linestyle": DASHES[number], "label": label}
        on = right if title == "cost" else ax
        on.plot(at[places], values[places], **{**style, **drawing.style})
    for title, place in best.items():
        colour = COLOURS[list(lines).index(title)]
        value, threshold = float(lines[title][place]), float(at[place])
        ax.axvline(threshold, color=colour, linewidth=0.8, alpha=0.6)
        word = "highest F1" if title == "F1" else "lowest cost"
        text = f"{word} {figure(value)} at {figure(threshold)}"
        on = right if title == "cost" else ax
        on.plot([threshold], [value], "o", color=colour, label=text)
    if right is not ax:
        right.set_ylim(bottom=0)
        right.set_ylabel("cost a row")
        right.spines[["top", "left"]].set_visible(False)
        for line in right.lines:  # the legend is on the other axes
            ax.plot(
                [],
                [],
                color=line.get_color(),
                linestyle=line.get_linestyle(),
                marker=line.get_marker(),
                label=line.get_label(),
            )
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25, color=GREY)
    legend(ax, loc="upper left", bbox_to_anchor=(1.12 if right is not ax else 1.01, 1.0))
    return ax


def _costs(
    curve: PRPoints, precision: Floats, recall: Floats, cost: tuple[float, float], rows: float
) -> tuple[Floats, str]:
    """Return the mean cost per row at each threshold, and its name."""
    positives = float(curve.positives or 0)
    tp = recall * positives
    called = np.divide(tp, precision, out=np.zeros_like(tp), where=precision > 0)
    # Where precision is 0, the shares do not determine the number of predicted positives.
    wrong, missed = cost
    fp = np.where(precision > 0, called - tp, 0.0)
    name = f"cost a row ({wrong:g} a false positive, {missed:g} a missed one)"
    return (wrong * fp + missed * (positives - tp)) / rows, name


_SQUARE = (5.6, 5.4)


@drawn.register(CalibrationPoints)
def draw_calibration_points(curve: CalibrationPoints, ax: object, drawing: Drawing) -> Axes:
    """Draw the calibration curve of one class."""
    return draw_calibration(Curves([curve], [""]), ax, drawing)


def draw_calibration(curves: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw the calibration curves of classes, with a histogram of the scores beneath."""
    chosen(drawing, "a calibration curve", ("calibration",))
    ax = axes(ax, _SQUARE)
    ax.set_ylabel("fraction of positives")
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.01)
    known = [
        place
        for place, curve in enumerate(curves)
        if not np.isnan(curve._named()["prob_true"]).any()
    ]
    rows = float(sum(curve.rows.sum() for curve in curves[:1] if curve.rows is not None))
    weighs = not rows.is_integer()
    titled(
        ax, "Calibration", counted(drawing) or (f"n = {rows:,.0f}" if rows and not weighs else "")
    )
    if not known:
        ax.set_xlabel("mean score")
        return empty(ax, "no rows were seen")
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1.0, label="calibrated")
    beneath = ax.inset_axes((0, -0.30, 1, 0.24), sharex=ax)
    beneath.spines[["top", "right"]].set_visible(False)
    coloured = worst_of(known, lambda place: -_error(curves[place]))
    for place in set(known) - set(coloured):
        far: Any = curves[place]
        ax.plot(far.prob_pred, far.prob_true, color=GREY, alpha=0.4, linewidth=0.7)
    for number, place in enumerate(coloured):
        colour = COLOURS[number]
        curve: Any = curves[place]
        name = short(str(curves.labels[place]), 28)
        style = {
            "color": colour, "marker": "o", "markersize": 4,
            "linestyle": DASHES[number % len(DASHES)], "label": name or "measured",
        }  # fmt: skip
        _limits(ax, curve, _of_one(drawing, place, len(curves)), colour)
        ax.plot(curve.prob_pred, curve.prob_true, **{**style, **drawing.style})
        _bars(beneath, curve, colour, filled=len(known) == 1)
    ax.tick_params(labelbottom=False)
    beneath.set_xlabel("mean score")
    beneath.set_ylabel("weight" if weighs else "rows")
    beneath.set_ylim(bottom=0)
    beneath.yaxis.set_major_formatter("{x:,.0f}")
    more = len(known) - len(coloured)
    legend(ax, title=f"the worst 3, {more} more in grey" if more else None)
    return ax


def _error(curve: Any) -> float:
    """Return the mean distance of a curve from the diagonal, weighted by rows."""
    rows = np.ones(len(curve.prob_true)) if curve.rows is None else curve.rows
    return float(np.average(abs(curve.prob_true - curve.prob_pred), weights=rows))


def _of_one(drawing: Drawing, place: int, several: int) -> Drawing:
    """Return the drawing options of one of several classes."""
    if several == 1:
        return drawing
    sure, certain = drawing.sure, drawing.certain
    if isinstance(certain, Interval):
        certain = Interval(certain.low[place], certain.high[place])
    if sure is not None:
        sure = ConfidenceInterval(sure.low[place], sure.high[place], sure.level, sure.method)
    return replace(drawing, certain=certain, sure=sure)


def _limits(ax: Axes, curve: CalibrationPoints, drawing: Drawing, colour: str) -> None:
    """Draw a box for the certain bounds of each point, and a bar for its confidence limits."""
    if isinstance(drawing.certain, Interval):
        low, high = drawing.certain
        ax.bar(
            low.prob_pred, high.prob_true - low.prob_true,
            width=np.maximum(high.prob_pred - low.prob_pred, 0.004), bottom=low.prob_true,
            align="edge", color=colour, alpha=0.45, linewidth=0, label="certain bounds",
        )  # fmt: skip
    if drawing.sure is not None:
        low, high = drawing.sure
        ax.vlines(
            curve.prob_pred, low.prob_true, high.prob_true, color=colour, alpha=0.4, linewidth=3,
            label=f"{percent(drawing.sure.level)} confidence",
        )  # fmt: skip


def _bars(ax: Axes, curve: Any, colour: str, *, filled: bool) -> None:
    x = curve.prob_pred
    width = min(0.05, 0.7 * float(np.diff(x).min(initial=1.0)))
    if filled:
        ax.bar(x, curve.rows, width=max(width, 0.008), color=colour, alpha=0.6)
    else:
        ax.plot(x, curve.rows, color=colour, linewidth=1.0, drawstyle="steps-mid")


_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)  # tick marks of DET axes
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_TITLES = {
    "roc": ("ROC", "false positive rate", "true positive rate"),
    "det": ("Detection error tradeoff", "false positive rate", "false negative rate"),
    "gains": ("Cumulative gains", "share of rows, highest scores first", "share of positives"),
    "lift": ("Lift", "share of rows, highest scores first", "times the positives of a random pick"),
    "pr": ("Precision and recall", "recall", "precision"),
}
_KINDS: dict[type, tuple[str, tuple[str, ...]]] = {
    ROCPoints: ("a ROC curve", ("roc", "det", "gains", "lift")),
    PRPoints: ("a precision-recall curve", ("pr", "thresholds")),
    DETPoints: ("a DET curve", ("det",)),
    GainPoints: ("cumulative gains", ("gains",)),
    LiftPoints: ("a lift curve", ("lift",)),
}


@drawn.register(ROCPoints)
@drawn.register(PRPoints)
@drawn.register(DETPoints)
@drawn.register(GainPoints)
@drawn.register(LiftPoints)
def draw_curve(curve: Rates, ax: object, drawing: Drawing) -> Axes:
    """Draw a curve; `kind` selects DET, gains or lift for a ROC curve."""
    kind = _kind(curve, drawing)
    if kind == "thresholds":
        return draw_thresholds(cast("PRPoints", curve), ax, drawing)
    ax = _framed(axes(ax), kind)
    titled(ax, _TITLES[kind][0], _count(curve, drawing))
    why = why_not(curve) or (kind == "det" and why_no_errors(cast("ROCPoints", curve)))
    if why:
        return empty(ax, why)
    _bands(ax, curve, drawing.sure and tuple(drawing.sure), drawing, kind, COLOURS[0])
    label = "measured"
    if kind in {"roc", "pr"}:
        label = _read(drawing) or _told(curve, kind)
    ax.plot(*path(curve, kind), **{"color": COLOURS[0], "label": label, **drawing.style})
    _reference(ax, kind, curve)
    legend(ax)
    return ax


@drawn.register(Curves)
def draw_curves(curves: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw the curves of several classes or models on the same axes."""
    if not curves:
        return empty(axes(ax), "there are no classes")
    if isinstance(curves[0], CalibrationPoints):
        return draw_calibration(curves, ax, drawing)
    if type(curves[0]) not in _KINDS:
        return draw_distributions(curves, ax, drawing)
    rates = [cast("Rates", curve) for curve in curves]
    kind = _kind(rates[0], drawing)
    if kind == "thresholds":
        raise TypeError("plot(kind='thresholds'): of several classes draw one, as compute()[0]")
    ax = _framed(axes(ax), kind)
    known = [place for place, curve in enumerate(rates) if not why_not(curve)]
    totals = {(curve.positives or 0) + (curve.negatives or 0) for curve in rates}
    told = f"n = {max(totals):,}" if len(totals) == 1 and max(totals) else counted(drawing)
    several = {"class": "classes"}.get(curves.of, f"{curves.of}s")
    titled(ax, f"{_TITLES[kind][0]} of {len(rates)} {several}", told)
    if not known:
        return empty(ax, why_not(rates[0]))
    coloured = worst_of(known, lambda place: area(rates[place]))
    for place in set(known) - set(coloured):
        ax.plot(*path(rates[place], kind), color=GREY, alpha=0.4, linewidth=0.7)
    for number, place in enumerate(coloured):
        curve, colour = rates[place], COLOURS[number]
        sure = drawing.sure and tuple(side[place] for side in drawing.sure)
        _bands(ax, curve, sure, drawing, kind, colour)
        style = {"color": colour, "linestyle": DASHES[number % len(DASHES)]}
        label = ": ".join(filter(None, (short(str(curves.labels[place]), 28), _told(curve, kind))))
        ax.plot(*path(curve, kind), **{**style, "label": label, **drawing.style})
    if kind != "pr":  # the chance level of precision differs between classes
        _reference(ax, kind, rates[0])
    more = len(known) - len(coloured)
    legend(ax, title=f"the lowest 3, {more} more in grey" if more else None)
    return ax


def _kind(curve: Rates, drawing: Drawing) -> str:
    kind = chosen(drawing, *_KINDS[type(curve)])
    if isinstance(curve, ROCPoints) and kind in {"gains", "lift"} and drawing.sure is not None:
        raise TypeError(
            f"plot(kind={kind!r}, confidence=...): limits of a ROC curve are not those of {kind}; "
            "CumulativeGains().plot(confidence=0.95) has its own, and lift has none"
        )
    return kind


def _bands(ax: Axes, curve: Rates, sure: Any, drawing: Drawing, kind: str, colour: str) -> None:
    """Draw the confidence band between two curves, and the certain band."""
    if sure is not None:
        if kind == "gains":
            outline = around(*((curve[0], side.gain) for side in reversed(sure)))
        elif kind == "det":
            x, y = sure_det(sure)
            outline = deviates(x), deviates(y)
        else:
            outline = (sure_roc if kind == "roc" else sure_pr)(sure)
        sure_band(ax, *outline, colour, drawing.sure.level)
    countless = kind in {"gains", "lift"} and curve.positives is None
    if not curve.exact and not countless:
        certain_band(ax, *certain(curve, kind), colour)


def _framed(ax: Axes, kind: str) -> Axes:
    _, x, y = _TITLES[kind]
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if kind == "det":
        places = [normal_quantile(share) for share in _TICKS]
        names = [f"{100 * share:g} %" for share in _TICKS]
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
        ax.set_xlim(places[0], places[-1])
        ax.set_ylim(places[0], places[-1])
        ax.grid(alpha=0.25)
    else:
        ax.set_xlim(-0.01, 1.01)
        ax.set_xticks(_SHARES)
        if kind != "lift":
            ax.set_ylim(-0.01, 1.01)
            ax.set_yticks(_SHARES)
    return ax


def _count(curve: Rates, drawing: Drawing) -> str:
    if curve.positives is None or curve.negatives is None:
        return counted(drawing)
    return f"n = {curve.positives + curve.negatives:,}, {curve.positives:,} positive"


def _read(drawing: Drawing) -> str:
    """Return the number that a metric computes from the curve, with its limits."""
    if drawing.read is None:
        return ""
    limits = between(drawing.read.bounds, drawing.read.sure)
    return f"{drawing.name} {figure(drawing.read.value)}{limits}"


def _told(curve: Rates, kind: str) -> str:
    if kind not in {"roc", "pr"}:
        return ""
    about = "" if curve.exact else "about "
    what = "area" if isinstance(curve, ROCPoints) else "average precision"
    return f"{what} {about}{figure(area(curve))}"


def _reference(ax: Axes, kind: str, curve: Rates) -> None:
    """Draw the reference line of a random classifier."""
    style: Options = {
        "color": GREY, "linestyle": ":", "linewidth": 1.0, "label": "chance",
    }  # fmt: skip
    if kind in {"roc", "gains"}:
        ax.plot([0, 1], [0, 1], **style)
    elif kind == "lift":
        ax.axhline(1.0, **style)
        ax.set_ylim(bottom=0)
    elif kind == "pr" and curve.positives is not None:
        ax.axhline(curve.positives / (curve.positives + (curve.negatives or 0)), **style)
