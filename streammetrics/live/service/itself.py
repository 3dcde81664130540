"""Metrics of the service itself: its process, its queue, its dead letters and its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import needs
from streammetrics.live.exporting.families import PREFIX

with needs("prometheus_client", "live"):
    from prometheus_client import ProcessCollector
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Metric

    from streammetrics.live.journal import Journal

_PROCESS = ProcessCollector(registry=None)


def itself(
    journal: Journal | None, queue: tuple[int, int], letters: int, labels: Mapping[str, str]
) -> Iterator[Metric]:
    """Yield the families of a worker.

    Args:
        journal: The journal, if there is a store.
        queue: The number of requests with events that wait, and of the bytes of their bodies.
        letters: The number of refused events in the dead-letter file.
        labels: The labels of all samples.
    """
    gauges = {
        "waiting_requests": ("Requests with events that wait for their turn.", queue[0]),
        "waiting_bytes": ("Bytes of the bodies of waiting requests.", queue[1]),
    }
    counters = {"dead_letters": ("Refused events written to the dead-letter file.", letters)}
    if journal is not None:
        gauges |= {
            "store_bytes": ("Size of the store and its log.", journal.size),
            "store_unwritten_events": ("Events only in memory.", journal.unwritten),
            "store_degraded": ("1 if the store cannot be written.", int(bool(journal.trouble))),
        }
        counters["store_failures"] = ("Failed uses of the store.", journal.failures)
    for kind, found in ((GaugeMetricFamily, gauges), (CounterMetricFamily, counters)):
        for name, (told, value) in found.items():
            family = kind(PREFIX + name, told, labels=tuple(labels))
            family.add_metric([*labels.values()], value)
            yield family
    for family in _PROCESS.collect():
        family.samples = [
            sample._replace(labels={**labels, **sample.labels}) for sample in family.samples
        ]
        yield family
