"""Prometheus: a collector that reads a whole live state at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import needs
from streammetrics.live.exporting.families import (
    COUNTERS,
    HELP,
    PREFIX,
    Exported,
    families,
    families_of,
)

with needs("prometheus_client", "live"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client import Metric
    from prometheus_client.registry import Collector

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.exporting.families import Families
    from streammetrics.live.queries import Readable


class LiveCollector:
    """Metrics of a live state: values with their bounds, rows, coverage, delays and alerts.

    With a store, every worker reads the events of the whole service. Scraping one worker is
    therefore enough, all workers report the same, and `prometheus_client`'s multiprocess files are
    not needed. `docs/alerts.md` lists the names.

    Args:
        live: The live state.
        window: The window of the values.
        rules: The alert rules.
        title: The name of the service in `streammetrics_info`, by which generated rules select it.
        slices: The maximum number of slices of each kind to export, those with the most rows first.
        confidence: Whether to export confidence intervals.
        possible: Whether to export what the missing labels could do.
        inputs: Whether to export the declared inputs.

    Example:
        >>> import streammetrics as sm
        >>> from prometheus_client import CollectorRegistry, generate_latest
        >>> from streammetrics.live.exporting.prometheus import LiveCollector
        >>> live = sm.Live(sm.Mean()).observe(time=[0, 60], values=[1.0, 4.0])
        >>> registry = CollectorRegistry()
        >>> registry.register(LiveCollector(live, window="1h"))
        >>> print(generate_latest(registry).decode().splitlines()[5])
        streammetrics_value{metric="value",window="1h"} 2.5
    """

    def __init__(
        self,
        live: Readable,
        *,
        window: str = "1h",
        rules: Sequence[Rule] = (),
        title: str = "Live metrics",
        slices: int = 0,
        confidence: bool = False,
        possible: bool = False,
        inputs: bool = False,
    ) -> None:
        self._more = Exported(slices, confidence, possible, inputs=inputs)
        self._queries, self._window, self._title = live._queries, window, title
        self._rules = tuple(rules)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one reading."""
        yield info(self._title)
        yield from metrics(
            families(self._queries, self._window, self._more)
            | families_of(self._queries.alerts(self._rules))
        )


def info(title: str) -> Metric:
    """Return the family that holds the name of the service."""
    family = GaugeMetricFamily(f"{PREFIX}info", "The service, by its title.", labels=("title",))
    family.add_metric([title], 1.0)
    return family


def metrics(found: Families) -> Iterator[Metric]:
    """Convert families to those of `prometheus_client`; monotone ones are counters."""
    for name, samples in found.items():
        labels = tuple(samples[0].labels) if samples else ()
        kind = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
        family = kind(PREFIX + name, HELP[name], labels=labels)
        for of, value in samples:
            family.add_metric(list(of.values()), value)
        yield family


def exposition(collector: Collector, accept: str = "") -> tuple[bytes, str]:
    """Return the body and the content type of a scrape, for an ``Accept`` header."""
    registry = CollectorRegistry()
    registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
