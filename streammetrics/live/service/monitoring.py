"""What is read in background threads: alert rules, and the metrics of the service itself."""

from __future__ import annotations

import json
import os
import threading
import time
from bisect import bisect_left
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

from streammetrics.core.errors import needs
from streammetrics.live.alerts.rule import Alert, Alerts, alert_of
from streammetrics.live.exporting.families import COUNTERS, PREFIX, families_of
from streammetrics.live.exporting.prometheus import info, metrics
from streammetrics.live.service.logs import RequestLog

with needs("prometheus_client", "live"):
    from prometheus_client import ProcessCollector
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from prometheus_client import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streammetrics.core.types import Foreign
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.exporting.families import Families
    from streammetrics.live.journal import Journal
    from streammetrics.live.queries import Queries
    from streammetrics.live.service.bodies import Intake
    from streammetrics.live.service.delivery import Deliverer
    from streammetrics.live.service.replicas import Replicas


PATIENCE = 0.5  # seconds that a request for alerts waits for new ones
FIRST = 10.0  # seconds that the start waits for alerts if the store has none to show until then

T = TypeVar("T")


class Latest(Generic[T]):
    """A value that is read in a background thread whenever it is requested.

    Args:
        read: Reads the value.
        known: The value before the first reading is complete.
        name: The name of the thread.
    """

    def __init__(self, read: Callable[[], T], known: T, name: str) -> None:
        self._read, self._known, self._name = read, known, name
        self._guard = threading.Lock()
        self._made: Future[T] | None = None
        self._rests = 0.0  # time until which it pauses

    def get(self, patience: float) -> T:
        """Return the current value, or the last known one if reading takes longer than `patience`.

        After a slow reading, reads pause for as long as it took, so that events get through.

        Args:
            patience: Seconds to wait.
        """
        with self._guard:
            self._take()
            if self._made is None and time.monotonic() >= self._rests:
                self._made = Future()
                arguments = (self._made, patience)
                threading.Thread(
                    target=self._make, args=arguments, name=self._name, daemon=True
                ).start()
            made = self._made
        if made is not None:
            wait([made], patience)
        with self._guard:
            self._take()
            return self._known

    def _take(self) -> None:
        """Store the result of a finished reading."""
        if self._made is not None and self._made.done():
            made, self._made = self._made, None
            self._known = made.result()

    def _make(self, made: Future[T], patience: float) -> None:
        began = time.monotonic()
        try:
            found = self._read()
        except Exception as error:  # any exception is passed to the caller
            made.set_exception(error)
        else:
            took = time.monotonic() - began
            self._rests = time.monotonic() + (took if took > patience else 0.0)
            made.set_result(found)


class Watching:
    """Alert rules that are evaluated in a background thread.

    The first evaluation over weeks of panes takes long. Until it is complete, requests get the last
    evaluation, which is kept in the store, so that a restart ends no alert.

    Args:
        queries: The live state.
        rules: The rules.

    Attributes:
        unjudged: The alerts of rules before any evaluation.
    """

    def __init__(self, queries: Queries, rules: Sequence[Rule]) -> None:
        self._queries, self._rules = queries, tuple(rules)
        self.unjudged = Alerts(alert_of(rule, (), rule.reach) for rule in self._rules)
        self._saved = "{}"
        self._judged: Latest[Alerts | None] = Latest(self._judge, None, "rules")

    def start(self) -> None:
        """Evaluate the rules, and wait longer if there is no last evaluation to show."""
        if self._rules:
            with suppress(Exception):  # the next request evaluates again and gets the error
                self._judged.get(PATIENCE if self._restored() else FIRST)

    def alerts(self) -> Alerts:
        """Return the alerts of the current or the last evaluation; none before the first."""
        if not self._rules:
            return Alerts()
        found = self._judged.get(PATIENCE)
        return self._restored() if found is None else found

    def _judge(self) -> Alerts:
        """Evaluate the rules, and write the alerts to the store if they have changed."""
        found, journal = self._queries.alerts(self._rules), self._queries.ingest.journal
        told = json.dumps({alert.name: alert.to_dict() for alert in found})
        if journal is None or told == self._saved:
            return found
        if journal.exchange(lambda _: {"judged": told}):
            self._saved = told
        return found

    def _restored(self) -> Alerts:
        """Return the alerts that any worker stored last, for rules that have not changed."""
        journal = self._queries.ingest.journal
        if journal is not None:
            self._saved = journal.texts().get("judged", "{}")
        found, saved = [], json.loads(self._saved)
        for rule in self._rules:
            with suppress(KeyError, ValueError, TypeError):
                told = saved[rule.title]
                if told["rule"] == repr(rule):
                    found.append(Alert.from_dict(told, rule))
        return Alerts(found)


_PROCESS = ProcessCollector(registry=None)
DEADLINE = 2.0  # seconds for a scrape to read the state, before it gets the last reading
_DELIVERIES = {  # names of families: what they count, and its name in the health of a receiver
    "delivered_changes": ("Changes of alerts that a receiver took.", "delivered"),
    "undelivered_changes": ("Changes of alerts that became dead letters.", "undelivered"),
    "waiting_changes": ("Changes of alerts that wait for their receiver.", "waiting"),
}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class UnreadError(Exception):
    """There is no reading yet that a scrape could show."""


class Scrape:
    """The Prometheus collector of a service, which never waits long for other reads.

    Args:
        read: Reads the live state.
        title: The name of the service.
        watching: The states of the alert rules.
        intake: Counts of events.
        requests: Durations of requests.
        journal: The journal, if there is a store.
        deliverer: Counts of changes of alerts, by receiver.
        replicas: The services whose states are shown, if there are any.
        shared: Whether other workers answer scrapes as well; counters then have a worker label.
    """

    def __init__(
        self,
        read: Callable[[], Families],
        title: str,
        watching: Watching,
        intake: Intake,
        requests: Requests,
        journal: Journal | None,
        deliverer: Deliverer,
        replicas: Replicas | None,
        *,
        shared: bool,
    ) -> None:
        self._journal, self._deliverer, self._replicas = journal, deliverer, replicas
        self._title, self._watching, self._intake = title, watching, intake
        self._requests = requests
        self._worker = {"worker": str(os.getpid())} if shared else {}
        self._read = Latest(lambda: (read(), time.time()), None, "scrape")

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one reading.

        Raises:
            UnreadError: The first reading is not complete.
        """
        found = self._read.get(DEADLINE)
        if found is None:
            raise UnreadError
        families, at = found
        counted = {name: self._of_worker(families[name]) for name in COUNTERS}
        yield info(self._title)
        yield from metrics(families | counted | families_of(self._watching.alerts()))
        yield GaugeMetricFamily(
            f"{PREFIX}read_timestamp_seconds", "When the state that this scrape shows was read.", at
        )
        yield self._counted("taken_events", "Events taken, by kind.", "kind", self._intake.taken)
        told = "Requests with events that were refused, by the status of the answer."
        yield self._counted("refused_requests", told, "status", self._intake.refused)
        yield self._requests.family(self._worker)
        yield from self._others()
        yield from self._itself()

    def _others(self) -> Iterator[Metric]:
        """Yield the families of the receivers of alerts and of the replicas, if there are any."""
        health = self._deliverer.health
        for name, (told, key) in _DELIVERIES.items() if health else ():
            counts = {receiver: found[key] for receiver, found in health.items()}
            yield self._counted(name, told, "receiver", counts, is_gauge=key == "waiting")
        gauges = {} if self._replicas is None else self._replicas.gauges
        for name, (told, values) in gauges.items():
            yield self._counted(name, told, "replica", values, is_gauge=True)

    def _itself(self) -> Iterator[Metric]:
        """Yield the families of the process, its queue, its dead letters and its store."""
        intake, journal, labels = self._intake, self._journal, self._worker
        gauges = {
            "waiting_requests": ("Requests with events that wait for their turn.", intake.waiting),
            "waiting_bytes": ("Bytes of the bodies of waiting requests.", intake.held),
        }
        told = "Refused events written to the dead-letter file."
        counters = {"dead_letters": (told, intake.dead_letters)}
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
            family.samples = self._of_worker(family.samples)
            yield family

    def _of_worker(self, samples: Sequence[Foreign]) -> list[Foreign]:
        """Return samples with the label of this worker, if there are several."""
        return [sample._replace(labels=self._worker | sample.labels) for sample in samples]

    def _counted(
        self,
        name: str,
        told: str,
        label: str,
        counts: Mapping[str, float],
        *,
        is_gauge: bool = False,
    ) -> Metric:
        kind = GaugeMetricFamily if is_gauge else CounterMetricFamily
        family = kind(PREFIX + name, told, labels=(*self._worker, label))
        for key, count in counts.items():
            family.add_metric([*self._worker.values(), key], count)
        return family


class ModelScrapes:
    """The Prometheus collector of several models, which a label tells apart.

    Args:
        scrapes: The collector of each model.
    """

    def __init__(self, scrapes: Mapping[str, Scrape]) -> None:
        self._scrapes = scrapes

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of all models; those of the process once, without a label.

        Raises:
            UnreadError: The first reading of a model is not complete.
        """
        found: dict[str, Metric] = {}
        for model, scrape in self._scrapes.items():
            for family in scrape.collect():
                if family.name.startswith(PREFIX):
                    label = {"model": model}
                    family.samples = [s._replace(labels=label | s.labels) for s in family.samples]
                    found.setdefault(family.name, family)
                    if found[family.name] is not family:
                        found[family.name].samples += family.samples
                else:
                    found[family.name] = family
        yield from found.values()


class Requests:
    """Durations of requests, by path and status; wraps the whole application.

    Args:
        paths: Paths to count separately; all others are counted together.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths, self._log = frozenset(paths), RequestLog()
        self._seen: dict[tuple[str, str], tuple[list[int], list[float]]] = {}

    def around(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application to measure its requests."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began, status = time.perf_counter(), 499  # the client disconnected before the answer

            async def told(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, told)
            except Exception:
                status = 500
                raise
            finally:
                path = scope["path"].removeprefix(scope.get("root_path", ""))
                self._add(scope["method"], path, status, time.perf_counter() - began)

        return timed

    def _add(self, method: str, path: str, status: int, seconds: float) -> None:
        key = (path if path in self._paths else "other", str(status))
        self._log.add(method, key[0], status, seconds)
        counts, total = self._seen.setdefault(key, ([0] * (len(BUCKETS) + 1), [0.0]))
        counts[bisect_left(BUCKETS, seconds)] += 1
        total[0] += seconds

    def family(self, labels: Mapping[str, str]) -> HistogramMetricFamily:
        """Return the histogram, with additional labels before its own."""
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
