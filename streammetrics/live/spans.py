"""Spans: runs of panes that make up windows, and the values of a window's metrics."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from streammetrics.core.errors import StreamMetricsError, undefined_expected
from streammetrics.core.metric import Metric, read_together
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.events import duration, shown_duration, shown_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.types import Json
    from streammetrics.live.events import Tier
    from streammetrics.slices.slices import Slices


ALONE = "value"  # the name of a metric that is not in a set

T = TypeVar("T")


def metrics_of(suite: object) -> dict[str, Any]:
    """Return the metrics of a set, or a single metric, by name."""
    return dict(suite.items()) if isinstance(suite, MetricSet) else {ALONE: suite}


class Span(NamedTuple):
    """A run of successive panes of a tier."""

    place: int  # index of the tier
    first: int
    last: int


def span_of(
    tiers: Sequence[Tier], window: str | timedelta, newest: int, end: int | None, now: int
) -> Span:
    """Return the panes of a window in the finest tier that provides it.

    Windows of whole days that end at midnight in a tier's time zone are calendar days of that tier.

    Args:
        tiers: The tiers, the finest first.
        window: The length of the window.
        newest: The newest event time, which determines the panes kept.
        end: The end of the window, which lies in its last pane or at its end. ``None`` ends the
            window with the pane of `now`.
        now: The time of reading, not earlier than `newest`.

    Raises:
        ValueError: No tier has such panes, or they are no longer kept; the message lists what
            exists.
    """
    length = duration(window, "window")
    fitting = [place for place, tier in enumerate(tiers) if _fits(tier, length)]
    if not fitting:
        raise _no_window(tiers, length)
    if end is not None:
        fitting.sort(key=lambda place: not _is_midnight(tiers[place], end))
    for place in fitting:
        tier = tiers[place]
        last = tier.number(now if end is None else max(end - 1, 0))
        first = last - length // tier.length + 1
        if first >= tier.oldest(max(newest, 0)):
            return Span(place, first, last)
    reach = tiers[max(fitting)]
    raise ValueError(
        f"a window of {shown_duration(length)} that ends at {shown_time(end or now)} is no longer "
        f"kept: its panes begin at {shown_time(max(reach.start(reach.oldest(max(newest, 0))), 0))}"
    )


def _is_midnight(tier: Tier, time: int) -> bool:
    """Return whether a time is the start of a calendar day of a tier."""
    return bool(tier.zone) and tier.start(tier.number(time)) == time


def _no_window(tiers: Sequence[Tier], length: int) -> ValueError:
    return ValueError(
        f"a window of {shown_duration(length)} is not a whole number of panes, or longer than "
        f"they are kept; there are {'; '.join(tier.shown for tier in tiers)}"
    )


def _fits(tier: Tier, length: int) -> bool:
    return length % tier.length == 0 and length <= tier.length * tier.count


def spans_of(
    tiers: Sequence[Tier],
    window: str | timedelta,
    every: str | timedelta,
    newest: int,
    now: int,
    oldest: int,
) -> list[Span]:
    """Return the windows of a series, oldest first; the last one contains `now`.

    They come from the finest tier that has such windows, or from a tier of calendar days if
    `window` and `every` are whole days. Beyond the reach of that tier, the series continues in
    coarser tiers, as far back as there are rows. There, windows and steps are rounded up to whole
    panes.

    The first window is the first with rows. Before any event, there are no windows.

    Args:
        tiers: The tiers, the finest first.
        window: The length of each window.
        every: The distance between the ends of windows.
        newest: The newest event time, which determines the panes kept.
        now: The time of reading, not earlier than `newest`.
        oldest: The start of the first pane with rows.

    Raises:
        ValueError: No tier has such windows at this distance; the message lists what exists.
    """
    length, step = duration(window, "window"), duration(every, "every")
    begin = _first_place(tiers, length, step)
    if newest < 0:
        return []
    found: list[Span] = []
    for place in range(begin, len(tiers)):
        tier = tiers[place]
        panes, stride = -(-length // tier.length), -(-step // tier.length)
        last, least = tier.number(now), max(tier.oldest(newest) + panes - 1, tier.number(oldest))
        if found:
            if bounds_of(tiers, found[0])[0] <= oldest:
                break
            last, found = _continued(tiers, tier, found)
        lasts = range(last, least - 1, -stride)
        found = [*(Span(place, n - panes + 1, n) for n in reversed(lasts)), *found]
    return found


def _first_place(tiers: Sequence[Tier], length: int, step: int) -> int:
    """Return the tier of the newest windows of a series."""
    kept = [place for place, tier in enumerate(tiers) if step % tier.length == 0]
    if not kept:
        raise ValueError(
            f"every={shown_duration(step)} is not a whole number of panes; there are "
            f"{'; '.join(tier.shown for tier in tiers)}"
        )
    fitting = [place for place in kept if _fits(tiers[place], length)]
    if not fitting:
        raise _no_window([tiers[place] for place in kept], length)
    return next((place for place in fitting if tiers[place].zone), fitting[0])


def bounds_of(tiers: Sequence[Tier], span: Span) -> tuple[int, int]:
    """Return the start and the end of a span."""
    tier = tiers[span.place]
    return tier.start(span.first), tier.start(span.last + 1)


def length_of(tiers: Sequence[Tier], span: Span) -> int:
    """Return the length of a span; calendar days count as 24 hours."""
    return (span.last - span.first + 1) * tiers[span.place].length


def _continued(tiers: Sequence[Tier], tier: Tier, found: list[Span]) -> tuple[int, list[Span]]:
    """Return the last pane of a coarse tier before finer windows, and the finer windows to keep.

    There is no gap between them: if the pane before the first window ends too early, the next pane
    replaces the windows that end in it, provided that others remain.
    """
    start, end = bounds_of(tiers, found[0])
    last = tier.number(end - 1)
    if tier.start(last + 1) >= end:
        last -= 1
    if tier.start(last + 1) < start:
        until = tier.start(last + 2)
        rest = [span for span in found if bounds_of(tiers, span)[1] > until]
        if rest:
            return last + 1, rest
    return last, found


def attempt(read: Callable[[], T]) -> tuple[T | None, str]:
    """Return what is read from a metric, and "", or ``None`` and why it cannot be read.

    One metric that cannot be read leaves all others, and their alerts, as they are.
    """
    try:
        with undefined_expected():
            return read(), ""
    except (StreamMetricsError, ArithmeticError, ValueError) as error:  # of own metrics too
        return None, str(error) or type(error).__name__


class Number(NamedTuple):
    """A value with its certain bounds; NaN with the reason if it cannot be read."""

    value: float
    low: float
    high: float
    why: str = ""


def number_of(metric: Metric) -> Number | None:
    """Return the value of a metric; ``None`` if it is not a number."""
    read, why = attempt(lambda: (metric.compute(), metric.bounds()))
    if read is None:
        return Number(math.nan, math.nan, math.nan, why)
    value, bounds = read
    if not isinstance(value, int | float | np.number):
        return None
    return Number(float(value), float(bounds.low), float(bounds.high))


def numbers_of(window: object) -> dict[str, Number]:
    """Return the numeric values of a window's metrics; a single metric is named ``value``."""
    with read_together():
        every = {name: number_of(metric) for name, metric in metrics_of(window).items()}
    return {name: number for name, number in every.items() if number is not None}


def confidence_of(metric: Metric) -> ConfidenceInterval | None:
    """Return the 95 % confidence interval of a metric; ``None`` if it has none."""
    return attempt(lambda: metric.confidence(0.95))[0]


def slice_columns(slices: Slices) -> dict[str, list[Json]]:
    """Return the table of slices as columns; metrics that cannot be read have NaN."""
    state = slices._accumulator.flush()
    columns = slices._read(state, None, anytime=False, only=()).to_dict()
    blank = [math.nan] * len(columns["n_rows"])
    for name in slices:
        read, _ = attempt(partial(slices._read, state, None, anytime=False, only=(name,)))
        columns |= {name: blank} if read is None else read.to_dict()
    return columns
