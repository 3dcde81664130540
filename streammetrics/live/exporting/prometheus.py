"""Prometheus: a collector of one live state, read whole at each scrape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streammetrics.core.needs import needs
from streammetrics.live.exporting.families import HELP, PREFIX, families

with needs("prometheus_client", "live"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.alerts.states import Alerts
    from streammetrics.live.asking import Asking

__all__ = ["LiveCollector", "exposition"]


class LiveCollector:
    """Gauges of a live state: values with their bounds, rows, coverage, delays and alerts.

    Every worker reads the whole service where there is a store, so that one target is enough and
    several say the same; no files of `prometheus_client`'s own are needed. `docs/alerts.md` lists
    the names.

    Args:
        live: The live state.
        window: Of which window values are told.
        rules: Rules of alerts.
        alerts: What tells how rules stand that are judged elsewhere, instead of `rules`.

    Example:
        >>> import streammetrics as sm
        >>> from prometheus_client import CollectorRegistry, generate_latest
        >>> from streammetrics.live.exporting.prometheus import LiveCollector
        >>> live = sm.Live(sm.Mean()).observe(time=[0, 60], values=[1.0, 4.0])
        >>> registry = CollectorRegistry()
        >>> registry.register(LiveCollector(live, window="1h"))
        >>> print(generate_latest(registry).decode().splitlines()[2])
        streammetrics_value{metric="value",window="1h"} 2.5
    """

    def __init__(
        self,
        live: Asking,
        *,
        window: str = "1h",
        rules: Sequence[Rule] = (),
        alerts: Callable[[], Alerts] | None = None,
    ) -> None:
        self._live, self._window = live, window
        self._alerts = alerts or partial(live.alerts, tuple(rules))

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families of one moment."""
        for name, samples in families(self._live, self._window, self._alerts()).items():
            labels = tuple(samples[0].labels) if samples else ()
            family = GaugeMetricFamily(PREFIX + name, HELP[name], labels=labels)
            for of, value in samples:
                family.add_metric(list(of.values()), value)
            yield family


def exposition(collector: LiveCollector, accept: str = "") -> tuple[bytes, str]:
    """Return what a scrape gets, and its content type, by the ``Accept`` header that it has."""
    registry = CollectorRegistry()
    registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
