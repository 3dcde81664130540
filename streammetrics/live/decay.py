"""Windows in which what is older weighs less: panes scaled by a power of two, and merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.live.reading import Span
from streammetrics.live.stream import merged

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State
    from streammetrics.live.stream import Stream
    from streammetrics.live.tiers import Tier

_REACH = 8  # half-lives that a tier should reach back: what is older weighs less than 1/256


def decayed(stream: Stream, half_life: int, clock: int) -> list[State]:
    """Return the panes of a tier, each scaled by its age.

    A row in pane k weighs ``2 ** -((newest - k) * length / half_life)``. The tier is the finest one
    that reaches back eight half-lives, else the one that reaches back furthest.

    Raises:
        InvalidBatchError: Rows of a metric have no weights.
    """
    tiers = stream.config.tiers
    place = next((n for n, tier in enumerate(tiers) if _reaches(tier, half_life)), len(tiers) - 1)
    tier = tiers[place]
    newest = tier.number(clock)
    found = []
    for number in range(newest - tier.count + 1, newest + 1):
        weight = 2.0 ** -((newest - number) * tier.length / half_life)
        state = merged(stream.suite, stream.parts(Span(place, number, number), clock))
        if weight > 0 and any(feed.n_rows for feed in state.feeds):
            whole = stream.keys.whole(state)
            scaled = tuple([statistic.scaled(weight) for statistic in whole.statistics])
            found.append(whole._replace(statistics=scaled))
    return found


def _reaches(tier: Tier, half_life: int) -> bool:
    return tier.length * tier.count >= _REACH * half_life
