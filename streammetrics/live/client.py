"""A client of a service: sends events in batches, again until the service has taken them."""

from __future__ import annotations

import atexit
import json
import random
import socket
import threading
import time
import uuid
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from streammetrics.core.errors import StreamMetricsError, warn_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPConnection
    from types import TracebackType

    from streammetrics.core.types import Document

    Refused = Callable[[Document, str], object]

_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
_FIRST, _LONGEST = 0.1, 15.0  # seconds between two tries
_AT_EXIT = 10.0  # seconds to send what waits when the process ends without `close`


class ClientError(StreamMetricsError):
    """Events cannot be sent: the queue is full, the service refuses the client, or time is over."""


class _Event(NamedTuple):
    """An event of the queue: its kind and the names of its columns, and its line of JSON."""

    form: tuple[str, frozenset[str]]
    line: bytes


class Client:
    """Sends events to a service from a thread of its own, and loses none while it can be reached.

    Calls return at once. Events are sent in the order of the calls, in batches. A batch is sent
    again, after growing pauses and with the same idempotency key, until the service has taken it;
    so it counts once, also if the service has restarted meanwhile. The client is thread-safe.

    Args:
        url: The address of the service, ``http://``, ``https://``, or ``unix:///run/live.sock``.
        token: The bearer token, if the service needs one.
        rows: The maximum number of events in a request.
        every: The maximum seconds that an event waits for others.
        queue: The maximum number of events that wait.
        full: What a call does if so many wait: ``"wait"`` until there is room, or ``"raise"``.
        timeout: Seconds to wait for an answer.
        refused: Called in the client's thread with each event that the service refuses, or that is
            too large for it, and the reason. The other events of the batch are sent. By default,
            there is one warning.
        idempotent: Whether requests have keys. Services of metrics whose observations take no ids
            (boxes, tags, pixels) need ``False``; a batch may then count twice.

    Attributes:
        taken: The number of events that the service has taken.
        late: The number of events that it received too late to take.
        n_refused: The number of events that it refused, or put into its dead-letter file.
        trouble: Why the last try failed; empty after a success.

    Example:
        >>> import streammetrics as sm
        >>> with sm.live.Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
        ...     client.observe(time=time.time(), label=1, score=0.83)
        ...     client.predict(id="r1", time=time.time(), score=0.83)
        ...     client.label(id="r1", time=time.time(), label=1)
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        rows: int = 1000,
        every: float = 1.0,
        queue: int = 100_000,
        full: str = "wait",
        timeout: float = 30.0,
        refused: Refused | None = None,
        idempotent: bool = True,
    ) -> None:
        if full not in {"wait", "raise"}:
            raise ValueError(f'full={full!r}: expected "wait" or "raise"')
        if rows < 1 or queue < rows:
            raise ValueError(f"rows={rows}, queue={queue}: expected 1 <= rows <= queue")
        self._connect = connecting(url, timeout)
        self._path = urlsplit(url).path if not url.startswith("unix:") else ""
        self._token, self._rows, self._every, self._most = token, rows, every, queue
        self._full, self._refused, self._idempotent = full, refused, idempotent
        self._queue: deque[_Event] = deque()
        self._sending = 0  # events of the batch that is being sent
        self._since = 0.0  # when the first event of the queue came
        self._changed = threading.Condition()
        self._hurry = self._ends = False  # send without waiting for more; end when all are sent
        self._given_up = threading.Event()
        self._failure: ClientError | None = None
        self._connection: HTTPConnection | None = None
        self.taken = self.late = self.n_refused = 0
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="live-client", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    @property
    def waiting(self) -> int:
        """The number of events that the service has not acknowledged."""
        with self._changed:
            return len(self._queue) + self._sending

    def observe(self, **event: object) -> Self:
        """Queue an event with its label: its time and columns, as the service names them."""
        return self._put("observe", event)

    def predict(self, **event: object) -> Self:
        """Queue a prediction: its id, time and columns, as the service names them."""
        return self._put("predict", event)

    def label(self, **event: object) -> Self:
        """Queue a label: the id, time, label and possibly version, as the service names them."""
        return self._put("label", event)

    def _put(self, kind: str, event: Mapping[str, object]) -> Self:
        line = json.dumps({"kind": kind, **event}, allow_nan=False, default=_plain).encode()
        with self._changed:
            self._check()
            if self._full == "raise" and self._is_full():
                raise ClientError(f"{self._most:,} events wait, the limit: {self._why()}")
            self._changed.wait_for(lambda: not self._is_full() or self._is_over())
            self._check()
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append(_Event((kind, frozenset(event)), line))
            if len(self._queue) in {1, self._rows}:
                self._changed.notify_all()
        return self

    def _is_full(self) -> bool:
        return len(self._queue) + self._sending >= self._most

    def _is_over(self) -> bool:
        return self._failure is not None or self._ends

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._ends:
            raise ClientError("this client is closed")

    def _why(self) -> str:
        return self.trouble or "the service takes fewer than arrive"

    def flush(self, timeout: float | None = None) -> Self:
        """Wait until the service has taken all events; return this object.

        Raises:
            ClientError: It has not after `timeout` seconds, or refuses the client.
        """
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(
                lambda: self._failure is not None or not (self._queue or self._sending), timeout
            )
            self._hurry = False
            if self._failure is not None:
                raise self._failure
        if not done:
            raise ClientError(f"{self.waiting:,} events are not sent: {self._why()}")
        return self

    def close(self, timeout: float | None = 30.0) -> None:
        """Send all events, and take no more.

        Raises:
            ClientError: Events are lost, because the service was not reached for `timeout` seconds
                or refuses the client.
        """
        atexit.unregister(self._at_exit)
        try:
            if self._thread.is_alive() or self.waiting:
                self.flush(timeout)
        finally:
            with self._changed:
                self._ends = True
                self._changed.notify_all()
            self._given_up.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def _at_exit(self) -> None:
        self.close(_AT_EXIT)

    # --- the client's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while batch := self._next():
                self._deliver(batch)
        except ClientError as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            self._disconnect()

    def _next(self) -> list[_Event]:
        """Wait for events, and return those of the next request; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ends)
            left = self._since + self._every - time.monotonic()
            self._changed.wait_for(
                lambda: len(self._queue) >= self._rows or self._hurry or self._ends, max(left, 0.0)
            )
            batch: list[_Event] = []
            names: dict[str, frozenset[str]] = {}
            while self._queue and len(batch) < self._rows:
                kind, own = self._queue[0].form
                if names.setdefault(kind, own) != own:
                    break  # events of a kind have the same keys in a request
                batch.append(self._queue.popleft())
            self._sending, self._since = len(batch), time.monotonic()
            return batch

    def _deliver(self, batch: list[_Event]) -> None:
        """Send a batch until the service has taken or refused each of its events."""
        parts = [batch]
        while parts:
            part = parts.pop()
            status, told = self._post(b"\n".join([event.line for event in part]))
            if status in {413, 422}:  # too large, or with an event that is refused
                place = told.get("row") if status == 422 else None
                if not isinstance(place, int) or not 0 <= place < len(part):
                    if len(part) > 1:  # any of them
                        parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                        continue
                    place = 0
                self._refuse(part[place], told.get("error", f"status {status}"))
                if rest := part[:place] + part[place + 1 :]:
                    parts.append(rest)
                self._done(1)
                continue
            if not 200 <= status < 300:
                why = told.get("error", "it is not a streammetrics service")
                raise ClientError(f"the service refuses requests with status {status}: {why}")
            self.taken += told.get("taken", 0)
            self.n_refused += told.get("refused", 0)
            self.late += told.get("late", 0)
            self._done(len(part))

    def _done(self, n: int) -> None:
        with self._changed:
            self._sending -= n
            self._changed.notify_all()

    def _refuse(self, event: _Event, why: str) -> None:
        self.n_refused += 1
        if self._refused is not None:
            self._refused(json.loads(event.line), why)
        elif self.n_refused == 1:
            warn_caller(f"the service refuses an event, and others are counted: {why}")

    def _post(self, body: bytes) -> tuple[int, Document]:
        """Send a request until it is answered with more than a request to try again."""
        headers = {"content-type": "application/x-ndjson"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if self._idempotent:
            headers["idempotency-key"] = uuid.uuid4().hex
        pause = _FIRST
        while True:
            after = 0.0
            try:
                status, after, told = self._ask(body, headers)
            except _errors() as error:
                self._disconnect()
                self.trouble = f"the service cannot be reached: {error or type(error).__name__}"
            else:
                if status not in _RETRIED:
                    self.trouble = ""
                    return status, told
                self.trouble = f"status {status}: {told.get('error', '')}"
            if self._given_up.wait(max(pause * random.uniform(0.5, 1.0), after)):
                raise ClientError(f"the client is closed: {self.trouble}")
            pause = min(2 * pause, _LONGEST)

    def _ask(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, float, Document]:
        """Send a request once; return the status, the seconds to wait, and the answer."""
        if self._connection is None:
            self._connection = self._connect()
        path = f"{self._path.rstrip('/')}/events"
        self._connection.request("POST", path, body, dict(headers))
        answer = self._connection.getresponse()
        text, after = answer.read(), answer.getheader("retry-after", "")
        try:
            told = json.loads(text)
        except ValueError:
            told = {}
        wait = min(float(after), _LONGEST) if after.isdigit() else 0.0
        return answer.status, wait, told if isinstance(told, dict) else {}

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a connection that fails."""
    from http.client import HTTPException  # noqa: PLC0415 - slow to load, and few use a client

    return (OSError, HTTPException)


def connecting(url: str, timeout: float) -> Callable[[], HTTPConnection]:
    """Return a function that connects to an address.

    Raises:
        ValueError: It is not the address of a service.
    """
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - slow to load

    parts = urlsplit(url)
    if parts.scheme == "unix" and parts.path:
        return lambda: _over_socket(HTTPConnection("localhost", timeout=timeout), parts.path)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(
            f"{url!r} is not an address: write http://127.0.0.1:8000 or unix:///run/live.sock"
        )
    cls = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    host, port = parts.hostname, parts.port
    return lambda: cls(host, port, timeout=timeout)


def _over_socket(connection: HTTPConnection, path: str) -> HTTPConnection:
    """Return a connection through a unix socket."""
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own.settimeout(connection.timeout)
    try:
        own.connect(unquote(path))
    except OSError:
        own.close()
        raise
    connection.sock = own
    return connection


def _plain(value: Any) -> object:
    """Return a value that JSON has no form for as one that it has."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"{value.isoformat()} needs its zone: datetime.now(UTC)")
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "tolist"):  # of NumPy
        return value.tolist()
    raise TypeError(f"{value!r} has no form in JSON")
