"""What Prometheus scrapes of a service: its live state, its alerts, and what it did itself."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from streammetrics.core.needs import needs

with needs("prometheus_client", "live"):
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

from streammetrics.live.exporting.families import COUNTERS, PREFIX, families_of
from streammetrics.live.exporting.prometheus import info, metrics
from streammetrics.live.service.watching import Latest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from prometheus_client import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streammetrics.live.exporting.families import Families
    from streammetrics.live.service.intake import Intake
    from streammetrics.live.service.watching import Watching

DEADLINE = 2.0  # seconds in which a scrape reads the state, or has what was read last
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class UnreadError(Exception):
    """Nothing has been read yet of which a scrape could tell."""


class Scrape:
    """A collector of a service. It never waits for long: no other read holds it up.

    Args:
        read: Reads the live state.
        title: The name of the service.
        watching: How the rules stand.
        intake: Which events came.
        requests: How long requests took.
        shared: Whether other workers answer scrapes, too: counters then say which worker counted.
    """

    def __init__(
        self,
        read: Callable[[], Families],
        title: str,
        watching: Watching,
        intake: Intake,
        requests: Requests,
        *,
        shared: bool,
    ) -> None:
        self._title, self._watching, self._intake = title, watching, intake
        self._requests = requests
        self._worker = {"worker": str(os.getpid())} if shared else {}
        self._read = Latest(lambda: (read(), time.time()), None, "scrape")

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one moment.

        Raises:
            UnreadError: The first reading is not over.
        """
        found = self._read.get(DEADLINE)
        if found is None:
            raise UnreadError
        families, at = found
        counted = {
            name: [
                sample._replace(labels=self._worker | sample.labels) for sample in families[name]
            ]
            for name in COUNTERS
        }
        yield info(self._title)
        yield from metrics(families | counted | families_of(self._watching.alerts()))
        yield GaugeMetricFamily(
            f"{PREFIX}read_timestamp_seconds", "When the state that this scrape shows was read.", at
        )
        yield self._counter("taken_events", "Events taken, by kind.", "kind", self._intake.taken)
        told = "Requests with events that were refused, by the status of the answer."
        yield self._counter("refused_requests", told, "status", self._intake.refused)
        yield self._requests.family(self._worker)

    def _counter(
        self, name: str, told: str, label: str, counts: Mapping[str, int]
    ) -> CounterMetricFamily:
        family = CounterMetricFamily(PREFIX + name, told, labels=(*self._worker, label))
        for key, count in counts.items():
            family.add_metric([*self._worker.values(), key], count)
        return family


class Requests:
    """How long requests took, by path and by the status of the answer; around all that answers.

    Args:
        paths: Which paths are told apart; all others are one.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._seen: dict[tuple[str, str], tuple[list[int], list[float]]] = {}

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return an application whose requests are counted here."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began, status = time.perf_counter(), 499  # the client is gone before there is an answer

            async def told(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, told)
            finally:
                path = scope["path"].removeprefix(scope.get("root_path", ""))
                self._add(path, status, time.perf_counter() - began)

        return timed

    def _add(self, path: str, status: int, seconds: float) -> None:
        key = (path if path in self._paths else "other", str(status))
        counts, total = self._seen.setdefault(key, ([0] * (len(BUCKETS) + 1), [0.0]))
        counts[bisect_left(BUCKETS, seconds)] += 1
        total[0] += seconds

    def family(self, labels: Mapping[str, str]) -> HistogramMetricFamily:
        """Return the histogram, with some labels before its own."""
        family = HistogramMetricFamily(
            f"{PREFIX}request_duration_seconds",
            "How long requests took.",
            labels=(*labels, "path", "status"),
        )
        edges = [*map(str, BUCKETS), "+Inf"]
        for key, (counts, total) in list(self._seen.items()):
            buckets = list(zip(edges, accumulate(counts), strict=True))
            family.add_metric([*labels.values(), *key], buckets, total[0])
        return family
