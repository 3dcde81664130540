"""OpenTelemetry: observable gauges and counters of a live state."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from streammetrics.core.errors import needs
from streammetrics.live.exporting.families import COUNTERS, HELP, Exported, families, families_of

with needs("opentelemetry-api", "otel"):
    from opentelemetry.metrics import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opentelemetry.metrics import CallbackOptions, Meter

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.exporting.families import Families
    from streammetrics.live.queries import Readable

_TOGETHER = 0.5  # seconds within which instruments share one reading


def observe(
    meter: Meter,
    live: Readable,
    *,
    window: str = "1h",
    rules: Sequence[Rule] = (),
    inputs: bool = False,
) -> None:
    """Create instruments, e.g. ``streammetrics.value``, that read the state at each collection.

    Names and labels are those of Prometheus, see `LiveCollector`, with dots.

    Args:
        meter: The meter that creates the instruments.
        live: The live state.
        window: The window of the values.
        rules: The alert rules.
        inputs: Whether to export the declared inputs.
    """
    queries, more = live._queries, Exported(inputs=inputs)
    read = _Reading(lambda: families(queries, window, more) | families_of(queries.alerts(rules)))
    for name, told in HELP.items():
        counts = name in COUNTERS
        make = meter.create_observable_counter if counts else meter.create_observable_gauge
        make(f"streammetrics.{name}", callbacks=[read.of(name)], description=told)


class _Reading:
    """A reading that all instruments of a collection share."""

    def __init__(self, read: Callable[[], Families]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._found: Families = {}
        self._at = float("-inf")

    def of(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return the callback of one instrument."""

        def callback(_: CallbackOptions) -> list[Observation]:
            with self._lock:
                if time.monotonic() - self._at > _TOGETHER:
                    self._found, self._at = self._read(), time.monotonic()
                samples = self._found.get(name, [])
            return [Observation(value, labels) for labels, value in samples]

        return callback
