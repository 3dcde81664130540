"""Explains when each rule of a configuration is evaluated, for its author."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.live.alerts.rule import WindowRule, delay_of, place_of, places_of
from streammetrics.live.alerts.rules import Silence
from streammetrics.live.events import shown_duration
from streammetrics.live.validation import truth_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.config import Config
    from streammetrics.live.service.config import Settings


def judging(found: Settings) -> Iterator[str]:
    """Yield a line for each rule of a configuration on the age of the panes that it judges."""
    with found.live(store=False) as live:
        config = live._config
    waiting, alone = (shown_duration(delay_of(config, None, waits=w)) for w in (True, False))
    for rule in found.rules:
        after = getattr(rule, "after", None)
        if isinstance(rule, Silence):
            told = f"fires as soon as nothing has come for {rule.length}"
        elif after is not None:
            told = f"judges panes {after} old, by what is there then"
        elif not truth_of(found.suite):
            told = f"judges panes {alone} old"
        else:
            told = (
                f"judges panes {waiting} old where labels come later (label_ttl + label_lateness; "
                f'after="1h" in the rule judges those an hour old), and {alone} old where none do'
            )
        yield f"{rule.title}: {told}{_memory(config, rule, waits=bool(truth_of(found.suite)))}"


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
