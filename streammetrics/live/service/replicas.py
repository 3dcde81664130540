"""Replicas: services on other hosts, whose states a service merges and shows."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from streammetrics.core.errors import IncompatibleMetricsError, StreamMetricsError
from streammetrics.live.client import connecting
from streammetrics.live.events import SECOND, shown_time
from streammetrics.live.pipeline import Pipeline
from streammetrics.live.serialization import pipeline_of
from streammetrics.live.service.logs import log

if TYPE_CHECKING:
    from streammetrics.core.types import Document
    from streammetrics.live.panes import Merges
    from streammetrics.live.service.toml import Section


_MOST = 1 << 30  # maximum bytes of a state


class ReplicaSettings(NamedTuple):
    """The services whose states are merged."""

    urls: tuple[str, ...]
    token: str = ""  # the bearer token that all of them accept for reading
    every: float = 10.0  # seconds between two readings
    timeout: float = 30.0  # seconds that a service may take to answer


def replica_settings_of(table: Section, store: str | None) -> ReplicaSettings | None:
    """Return the settings in a table, ``None`` if it names no service."""
    urls = table.take("replicas", list, [])
    token, every = table.secret("token"), table.seconds("every", "10s")
    timeout = table.seconds("timeout", "30s")
    table.end()
    for url in urls:
        try:
            connecting(str(url), timeout)
            is_plain = isinstance(url, str) and not set("@?#") & set(url)
        except ValueError:
            is_plain = False
        if not is_plain:
            example = "write http://10.0.0.1:8000 or unix:///run/live.sock"
            table.fail("replicas", f"{url!r} is not the address of a service: {example}")
    if len(set(urls)) < len(urls):
        table.fail("replicas", "one service is named twice: its rows would count twice")
    if urls and store is not None:
        table.fail("replicas", "a service that merges others has no store: leave out [live] store")
    return ReplicaSettings(tuple(urls), token, every, timeout) if urls else None


class Replica:
    """One service: its last state, and how its last reading went.

    Attributes:
        url: Its address.
        pipeline: Its last state, ``None`` before the first one.
        size: The bytes of this state.
        read: When it was last read or found unchanged, in seconds; 0 before.
        trouble: Why the last reading failed; empty after a success.
    """

    def __init__(self, url: str, merging: ReplicaSettings, mine: Pipeline) -> None:
        self.url, self._mine = url, mine
        self._connect = connecting(url, merging.timeout)
        self._path = "" if url.startswith("unix:") else urlsplit(url).path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {merging.token}"} if merging.token else {}
        self._tag = ""
        self.pipeline: Pipeline | None = None
        self.size, self.read, self.trouble = 0, 0.0, "it was not read yet"

    def pull(self) -> bool:
        """Read the state if it has changed; return whether there is another one.

        A reading that fails leaves the last state.
        """
        before, changed = self.trouble, False
        try:
            changed = self._pull()
        except Exception as error:  # any exception is reported; the next reading may work
            told = str(error) or "the connection is cut off"
            known = isinstance(error, StreamMetricsError | OSError | HTTPException)
            self.trouble = told if known else f"{type(error).__name__}: {told}"
        else:
            self.trouble, self.read = "", time.time()
        if self.trouble != before and (self.trouble or self.size):
            is_well = "it answers again" if not self.trouble else self.trouble
            log("warning" if self.trouble else "info", f"replica {self.url}: {is_well}")
        return changed

    def _pull(self) -> bool:
        headers = self._headers | ({"If-None-Match": self._tag} if self._tag else {})
        with closing(self._connect()) as connection:
            connection.request("GET", f"{self._path}/state", headers=headers)
            answer = connection.getresponse()
            body = answer.read(_MOST + 1)
        if len(body) > _MOST:
            raise StreamMetricsError(f"its state has more than {_MOST:,} bytes")
        if answer.length:
            raise StreamMetricsError("its answer is cut off")
        if answer.status == 304 and self._tag:
            return False
        if answer.status != 200:
            raise StreamMetricsError(f"it answers {answer.status}{_reason(body)}")
        found = pipeline_of(body)
        self._mine.check_alike(found)
        self.pipeline, self.size = found, len(body)
        self._tag = answer.getheader("ETag") or ""
        return True


def _reason(body: bytes) -> str:
    """Return the error in the answer of a service, "" if there is none."""
    try:
        found = json.loads(body)
        return f": {found['error']}"
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


class Replicas:
    """Keeps a live state equal to the merge of the last states of other services.

    Args:
        live: The live state, which nothing else changes.
        merging: The services.
    """

    def __init__(self, live: Any, merging: ReplicaSettings) -> None:
        self._shared, self._every = live._shared, merging.every
        empty = Pipeline(self._shared.suite, self._shared.config)
        self._replicas = [Replica(url, merging, empty) for url in merging.urls]
        self._ends, self._merging = threading.Event(), threading.Lock()
        self._made: Merges = {}  # the last merges of panes
        self._trouble = ""  # why the last states could not be merged
        self._warned = False  # of labels that came to another replica than their prediction

    def start(self) -> None:
        """Read each service again and again, in a thread of its own: one may hang."""
        for one in self._replicas:
            threading.Thread(target=self._run, args=(one,), name="replica", daemon=True).start()

    def close(self) -> None:
        """End the threads; readings in progress are left alone."""
        self._ends.set()

    def pull(self) -> None:
        """Read all services at once, and merge their states if one has changed."""
        with ThreadPoolExecutor(len(self._replicas), "replica") as pool:
            changed = [*pool.map(Replica.pull, self._replicas)]
        if any(changed):
            self._merge()

    def _merge(self) -> None:
        """Merge the last states; if they contradict each other, the last merge stays."""
        merged = Pipeline(self._shared.suite, self._shared.config)
        with self._merging:
            try:
                found = [one.pipeline for one in self._replicas if one.pipeline is not None]
                merged.merge(found, self._made)
            except IncompatibleMetricsError as error:
                before, self._trouble = self._trouble, f"the states cannot be merged: {error}"
                if self._trouble != before:
                    log("warning", f"replicas: {self._trouble}")
                return
            self._trouble = ""
            apart = merged.join.n_labelled - sum(one.join.n_labelled for one in found)
            if apart > 0 and not self._warned:
                self._warned = True
                log(
                    "warning",
                    f"{apart:,} labels came to another replica than their prediction: the merge "
                    "has them until the prediction expires there; send labels to the replica of "
                    "the prediction, e.g. by a hash of the id",
                )
            with self._shared.locked():
                self._shared.current = merged

    def _run(self, replica: Replica) -> None:
        trouble, due = "", False
        while not self._ends.wait(self._every):
            try:
                due |= replica.pull()
                if due:
                    self._merge()
                    due = False
            except Exception as error:  # any exception is reported; the next reading may work
                before, trouble = trouble, f"{type(error).__name__}: {error}"
                if trouble != before:
                    log("warning", f"the states of replicas are not merged: {trouble}")

    @property
    def health(self) -> Document:
        """When each service was last read, the size of its state, and why the last try failed."""
        return {
            one.url: {
                "read": shown_time(int(one.read * SECOND)) if one.read else None,
                "bytes": one.size,
                "trouble": one.trouble or self._trouble,
            }
            for one in self._replicas
        }

    @property
    def gauges(self) -> dict[str, tuple[str, dict[str, float]]]:
        """The numbers of each service, by the name of a family, with what they are."""
        every = self._replicas
        return {
            "replica_failing": (
                "1 if the last reading of a replica, or the merge, failed.",
                {one.url: float(bool(one.trouble or self._trouble)) for one in every},
            ),
            "replica_read_timestamp_seconds": (
                "When a replica was last read; absent before the first time.",
                {one.url: one.read for one in every if one.read},
            ),
            "replica_state_bytes": (
                "The size of the state of a replica.",
                {one.url: float(one.size) for one in every},
            ),
        }
