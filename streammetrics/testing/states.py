"""Laws of single statistics: invariants, scaling and subtraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    an,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.statistic import Statistic


def broken_states(metric: Mergeable) -> Iterator[str]:
    """Yield the laws that do not hold for each statistic of a metric or a metric set."""
    for statistic in metric._accumulator.flush().statistics:
        name = type(statistic).__name__
        try:
            statistic.check()
        except StateFormatError as error:
            yield f"{an(name)} can be read again ({error})"
            continue
        twice = statistic.fork()
        twice.merge_all([statistic])
        if not _is_scaled(statistic, twice):
            yield f"scaling {an(name)} distributes over merge, and by 1 changes nothing"
        if not _is_taken_out(statistic, twice):
            yield f"what was merged into {an(name)} can be taken out again"


def _is_scaled(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether scaling satisfies its laws; True if the statistic cannot be scaled."""
    try:
        half = statistic.scaled(0.375)
    except InvalidBatchError:
        return True
    half.check()
    both = half.fork()
    both.merge_all([half])
    return both.is_same(twice.scaled(0.375)) and statistic.scaled(1.0).is_same(statistic)


def _is_taken_out(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether a doubled state minus itself is itself; True if it cannot be subtracted."""
    try:
        return twice.minus(statistic).is_same(statistic)
    except IncompatibleMetricsError:
        return True
