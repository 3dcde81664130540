"""Explains the rules of a configuration: when they are evaluated, and how steady they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.live.alerts.rule import (
    Reading,
    WindowRule,
    alert_of,
    delay_of,
    metric_of,
    place_of,
    places_of,
    source_of,
)
from streammetrics.live.alerts.rules import Above, Below, BurnRate, Silence
from streammetrics.live.events import DAY, SECOND, duration, shown_duration
from streammetrics.live.live import Live
from streammetrics.live.validation import truth_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.config import Config
    from streammetrics.live.service.config import Settings
    from streammetrics.live.service.history import History

_MINUTE = 60 * SECOND
_PANES = 1440  # number of simulated verdicts
_OFTEN = 10.0  # changes of state a day that are too many
_WIDE = 0.25  # standard errors of a window that are too large, relative to the limit


def judging(found: Settings) -> Iterator[str]:
    """Yield a line for each rule of a configuration on the age of the panes that it judges."""
    with found.live(store=False) as live:
        config = live._config
        pipeline = live._queries.pipeline
    of_inputs = [rule for rule in found.rules if source_of(rule, pipeline)[1] == "inputs"]
    waiting, alone = (shown_duration(delay_of(config, None, waits=w)) for w in (True, False))
    for rule in found.rules:
        after = getattr(rule, "after", None)
        waits = bool(truth_of(found.suite)) and rule not in of_inputs
        if isinstance(rule, Silence):
            told = f"fires as soon as nothing has come for {rule.length}"
        elif after is not None:
            told = f"judges panes {after} old, by what is there then"
        elif not waits:
            told = f"judges panes {alone} old"
        else:
            told = (
                f"judges panes {waiting} old where labels come later (label_ttl + label_lateness; "
                f'after="1h" in the rule judges those an hour old), and {alone} old where none do'
            )
        yield f"{rule.title}: {told}{_memory(config, rule, waits=waits)}"


def _memory(config: Config, rule: Rule, *, waits: bool) -> str:
    """Return a warning if only the tier of its windows remembers that a rule waits for `clear`."""
    clear = getattr(rule, "clear", None)
    if not isinstance(rule, WindowRule) or clear is None:
        return ""
    tiers, lengths = config.tiers, rule.lengths
    place = place_of(tiers, min(lengths), rule.reach + delay_of(config, rule.after, waits=waits))
    if place == len(tiers) - 1 or len(places_of(tiers, lengths, place)) > 1:
        return ""
    tier = tiers[place]
    reach, length = shown_duration(tier.length * tier.count), shown_duration(tier.length)
    return (
        f"; ends without clear={clear:g} {reach} after it fired, as panes of {length} "
        "are kept no longer, and its window is not a whole number of coarser ones"
    )


def estimated(found: Settings, rate: float) -> Iterator[str]:
    """Yield a line for each rule: the rows of its windows, and whether chance will move it.

    Args:
        found: The configuration.
        rate: Rows with their labels a minute.
    """
    with found.live(store=False) as live:
        config = live._config
    for rule in found.rules:
        if isinstance(rule, Silence):
            quiet = rate * duration(rule.length, "length") / _MINUTE
            changes = 2 * rate * math.exp(-quiet) * DAY / _MINUTE
            told = f"{_rows(quiet)} in {rule.length}"
            told += f"; chance alone changes its state {changes:,.0f} times a day" * (changes > 1)
        elif isinstance(rule, WindowRule):
            sizes = [rate * length / _MINUTE for length in rule.lengths]
            windows = [
                f"{_rows(n)} in {shown_duration(w)}"
                for n, w in zip(sizes, rule.lengths, strict=True)
            ]
            told = ", ".join(windows) + _chance(found, config, rule, rate, min(sizes))
        else:
            told = f"{_rows(rate)} a minute"
        yield f"{rule.title}: {told}"


def _rows(n: float) -> str:
    return f"about {n:,.3g} rows" if n < 100 else f"about {n:,.0f} rows"


def _chance(found: Settings, config: Config, rule: WindowRule, rate: float, smallest: float) -> str:
    """Return a warning if a rule has too few rows for a steady state, otherwise nothing."""
    if smallest < rule.min_rows + 3 * math.sqrt(rule.min_rows) and rule.min_rows > 1:
        return f"; it often has no data, as min_rows = {rule.min_rows}"
    if not isinstance(rule, Below | Above | BurnRate) or getattr(rule, "by", None) is not None:
        return ""
    if isinstance(rule, BurnRate):
        level, advice = rule.limit * (1 - rule.objective), 'windows, or for_="10min"'
        if level >= 1:
            return f"; it never fires, as its limit is an error rate of {level:.3g}: give a factor"
    else:
        advice = "windows, or give clear=" if rule.clear is None else "windows"
        level = rule.threshold
    if rule.metric not in found.suite:  # an input, which may be a distance
        return ""
    metric = metric_of(found.suite, rule.metric)
    if metric.value_range != (0.0, 1.0) or not 0 < level < 1:
        return ""
    error = 2 * math.sqrt(level * (1 - level) / smallest)
    changes = _simulated(config, rule, rate, level, waits=bool(truth_of(found.suite)))
    if error < _WIDE * min(level, 1 - level) or changes < _OFTEN:
        return ""
    low, high = max(level - error, 0.0), min(level + error, 1.0)
    return (
        f"; it will flap: so few rows show a rate of {level:.3g} as {low:.2g} to {high:.2g}, and "
        f"near it the state changes {changes:,.0f} times a day: take longer {advice}"
    )


def _simulated(
    config: Config, rule: Below | Above | BurnRate, rate: float, level: float, *, waits: bool
) -> float:
    """Return how often a day the state of a rule changes if a metric is exactly at its limit."""
    back = rule.reach + delay_of(config, rule.after, waits=waits)
    pane = config.tiers[place_of(config.tiers, min(rule.lengths), back)].length
    counts = [length // pane for length in rule.lengths]
    rng = np.random.default_rng(0)
    rows = rng.poisson(rate * pane / _MINUTE, _PANES + max(counts))
    sums = np.cumsum([rows, rng.binomial(rows, level)], axis=1)
    moments = []
    for last in range(max(counts), sums.shape[1]):
        readings = []
        for n in counts:
            total, hits = (sums[:, last] - sums[:, last - n]).tolist()
            value = hits / total if total else math.nan
            readings.append(Reading(value, value, value, total))
        if isinstance(rule, BurnRate):
            burnt = tuple(rule.burnt(reading, right=False) for reading in readings)
            moments.append(rule.compare(last * pane, burnt))
        else:
            moments.append(rule.compare(last * pane, readings[0]))
    return len(alert_of(rule, moments, rule.reach).changes) * DAY / (_PANES * pane)


def replayed(found: Settings, events: History) -> Iterator[str]:
    """Yield a line for each rule: how often its alert changes state in a log of events."""
    times = [rows.times for _, rows in events.kinds]
    start, end = min(map(np.min, times)), max(map(np.max, times))
    with found.live(store=False) as live:
        tiers = live._config.tiers
    # Minutes are kept for as long as the log is, so that no change is lost.
    fine, longest = tiers[0].length, max(tier.length * tier.count for tier in tiers)
    reach = (longest + int(end - start)) // fine * fine + fine
    options = {**found.options, "tiers": [(shown_duration(fine), shown_duration(reach))]}
    with Live(found.suite, **{**options, "store": None}) as live:
        events.feed(live)
        alerts = live.alerts(found.rules)
        minutes = max(int(end - start) / _MINUTE, 1.0)
        yield from estimated(found, live.n_rows / minutes)
    for alert in alerts:
        changes = len(alert.changes)
        often = changes > 3 and changes * DAY / _MINUTE > _OFTEN * minutes
        told = "; it flaps" if often else ""
        span = f"{minutes / 60:,.3g} hours"
        yield f"{alert.name}: its state changes {changes:,} times in the {span} of the log{told}"
