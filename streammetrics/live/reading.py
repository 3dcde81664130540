"""Which panes a window is made of, and what numbers it gives."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.time import duration, shown_duration, shown_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from streammetrics.live.tiers import Tier


ALONE = "value"  # what a metric is called that is in no set


def metrics_of(suite: object) -> dict[str, Any]:
    """Return the metrics of a set, or one that is alone, by name."""
    return dict(suite.items()) if isinstance(suite, MetricSet) else {ALONE: suite}


class Span(NamedTuple):
    """Some panes of a tier, one after the other."""

    place: int  # of the tier
    first: int
    last: int


def span_of(
    tiers: Sequence[Tier], window: str | timedelta, newest: int, end: int | None, now: int
) -> Span:
    """Return the panes of a window.

    Args:
        tiers: The tiers, the finest first.
        window: How long it is.
        newest: The newest time that was seen, by which panes are kept.
        end: The end of the window, which is in its last pane or at the end of it; without it, the
            last pane is that of `now`.
        now: The time of reading, not before the newest.

    Raises:
        ValueError: No tier has such panes, or they are no longer kept; the message says what is.
    """
    length = duration(window, "window")
    fitting = [place for place, tier in enumerate(tiers) if _fits(tier, length)]
    if not fitting:
        raise ValueError(
            f"a window of {shown_duration(length)} is no whole number of panes, or longer than "
            f"they are kept; there are {'; '.join(tier.shown for tier in tiers)}"
        )
    for place in fitting:
        tier = tiers[place]
        last = tier.number(now if end is None else max(end - 1, 0))
        first = last - length // tier.length + 1
        if first >= tier.oldest(max(newest, 0)):
            return Span(place, first, last)
    reach = tiers[fitting[-1]]
    raise ValueError(
        f"a window of {shown_duration(length)} that ends at {shown_time(end or now)} is no longer "
        f"kept: its panes begin at {shown_time(max(reach.start(reach.oldest(max(newest, 0))), 0))}"
    )


def _fits(tier: Tier, length: int) -> bool:
    return length % tier.length == 0 and length <= tier.length * tier.count


def spans_of(
    tiers: Sequence[Tier], window: str | timedelta, every: str | timedelta, newest: int, now: int
) -> list[Span]:
    """Return the windows of a series, the oldest first, the last one that of `now`.

    None ends before 1970, and there are none where nobody has said what time it is.
    """
    step = duration(every, "every")
    kept = [tier for tier in tiers if step % tier.length == 0]
    if not kept:
        raise ValueError(
            f"every={shown_duration(step)} is no whole number of panes; there are "
            f"{'; '.join(tier.shown for tier in tiers)}"
        )
    place, _, last = span_of(kept, window, newest, None, now)
    tier = kept[place]
    place = list(tiers).index(tier)
    panes, stride = duration(window, "window") // tier.length, step // tier.length
    if newest < 0 and not now:
        return []
    oldest = tier.oldest(newest if newest >= 0 else now)  # before any event, what it would keep
    lasts = range(last, max(oldest + panes - 2, tier.number(0) - 1), -stride)
    return [Span(place, number - panes + 1, number) for number in reversed(lasts)]


def numbers_of(window: Any) -> dict[str, tuple[float, float, float]]:
    """Return those values of a window that are numbers, each with what holds the exact one.

    That of a single metric is called ``value``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values, bounds = window.compute(), window.bounds()
    if not isinstance(window, MetricSet):
        values, bounds = {ALONE: values}, {ALONE: bounds}
    return {
        name: (float(value), float(bounds[name][0]), float(bounds[name][1]))
        for name, value in values.items()
        if isinstance(value, int | float | np.number)
    }
