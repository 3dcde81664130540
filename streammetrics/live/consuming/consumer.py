"""The consumer: takes the messages of a queue, and stores with them how far it is read."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.consuming.kafka import KafkaTopic
from streammetrics.live.consuming.nats import NatsStream
from streammetrics.live.consuming.queue import Address, QueueError
from streammetrics.live.consuming.redis import RedisStream
from streammetrics.live.service.bodies import Bodies, BodyError
from streammetrics.live.service.logs import DeadLetters, log
from streammetrics.live.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import Event

    from streammetrics.live.consuming.queue import Message, Position, Queue
    from streammetrics.live.service.server import Names

_BATCH = 1000  # messages that are taken together
_WAIT = 1.0  # seconds to wait for messages, and between two tries to write the store
_FIRST, _LONGEST = 0.1, 15.0  # seconds between two tries to read a queue
_SAYS = 60.0  # seconds between two lines of the log about progress

_QUEUES: dict[str, Any] = {
    "redis": RedisStream,
    "rediss": RedisStream,
    "nats": NatsStream,
    "tls": NatsStream,
    "kafka": KafkaTopic,
    "kafkas": KafkaTopic,
}


def queue_of(url: str, stream: str, group: str, password: str = "") -> Queue:
    """Return the queue at a URL; nothing is opened.

    Raises:
        QueueError: The URL is not that of a queue.
        ImportError: The library of such queues is not installed.
    """
    address = Address.of(url, password)
    cls = _QUEUES.get(address.scheme)
    if cls is None:
        told = near(address.scheme, [*_QUEUES])
        raise QueueError(f"no queue {address.scheme!r}{told}")
    found: Queue = cls(address, stream, group)
    return found


class _Stopped(Exception):  # noqa: N818 - not an error: the consumer was asked to stop
    """The consumer ends before a batch is written."""


class _Written(Exception):  # noqa: N818 - not an error
    """A batch whose writing raised is in the store nevertheless."""


class Consumer:
    """Takes the messages of a queue to a live state with a durable store.

    Events and the position after them are written in one transaction, which checks that the
    position before them is still in the store. So after a crash at any moment each message counts
    once, and a second consumer of the same queue ends instead of counting messages again. While the
    store cannot be written, nothing is read.

    Args:
        live: The live state.
        names: The names of event columns.
        queue: The queue.
        letters: The file for refused events.
        stop: Ends the consumer once the current batch is written.

    Attributes:
        counts: The numbers of events taken by kind, too late, and refused.
    """

    def __init__(self, live: Any, names: Names, queue: Queue, letters: str, stop: Event) -> None:
        self._journal = live._ingest.journal
        self._letters = DeadLetters(letters)
        self._bodies = Bodies(live._ingest, names, self._letters)
        self._queue, self._title, self._stop = queue, f"consumed {queue.title}", stop
        self._position: Position = {}
        self._said = time.monotonic()
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """Continue after the stored position.

        Raises:
            StreamMetricsError: The store or the queue cannot be read.
        """

        def read(texts: Mapping[str, str]) -> dict[str, str]:
            self._position = _position_in(texts, self._title)
            return {}

        if not self._journal.exchange(read):
            raise StreamMetricsError(f"the store cannot be read: {self._journal.trouble}")
        self._open()

    def _open(self) -> None:
        for lost in self._queue.open(self._position):
            log("warning", lost)

    def run(self) -> None:
        """Take messages until `stop` is set; the consumer has started.

        Raises:
            StreamMetricsError: Another consumer takes the same messages.
        """
        pause, trouble = _FIRST, ""
        with suppress(_Stopped):
            while not self._stop.is_set():
                try:
                    if trouble:
                        self._open()
                    messages = self._queue.read(_BATCH, _WAIT)
                except QueueError as error:
                    if str(error) != trouble:
                        trouble = str(error)
                        log("warning", f"{trouble}; it is tried again")
                    self._stop.wait(pause)
                    pause = min(2 * pause, _LONGEST)
                    continue
                if trouble:
                    log("info", "the queue can be read again")
                pause, trouble = _FIRST, ""
                if messages:
                    self._take(messages)
                    self._queue.show(self._position)
                self._say()

    def _take(self, messages: Sequence[Message]) -> None:
        """Take the events of messages; those that are refused become dead letters."""
        position = self._position | {message.part: message.place for message in messages}
        body = b"\n".join([_lines(message.value) for message in messages])
        counts: Mapping[str, int] = {}
        while True:
            try:
                with self._journal.beside(partial(self._moved, position)):
                    counts = self._bodies.take(body, "", None) if body.strip() else {}
                break
            except BodyError as error:  # of the request as a whole, such as too many refused events
                if half := len(messages) // 2:
                    self._take(messages[:half])
                    self._take(messages[half:])
                    return
                self._write_letter(body, error)
                body, counts = b"", {}
                self.counts["refused"] += 1
            except StoreError as error:
                self._wait(error)
            except _Written:
                break
        self._position = position
        self.counts.update(counts)

    def _write_letter(self, body: bytes, why: BodyError) -> None:
        """Write a whole message as a dead letter."""
        while True:
            try:
                self._letters.write(body.decode(errors="replace"), why, "")
            except StoreError as error:
                self._wait(error)
            else:
                return

    def _moved(self, position: Position, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the text of a position; raise unless the one before is still stored."""
        stored = _position_in(texts, self._title)
        if stored == position:
            raise _Written
        if stored != self._position:
            raise StreamMetricsError(
                "another consumer has taken these messages to this store: run one for each stream, "
                "or give --group different names"
            )
        return {self._title: json.dumps(position)}

    def _wait(self, error: StoreError) -> None:
        """Wait before the next try to write; raise if the consumer is to end."""
        log("warning", str(error))
        if self._stop.wait(_WAIT):
            raise _Stopped

    def _say(self) -> None:
        if time.monotonic() - self._said > _SAYS:
            self._said = time.monotonic()
            log("info", "consumed", **self.counts, position=self._position)


def _position_in(texts: Mapping[str, str], title: str) -> Position:
    found: Position = json.loads(texts.get(title, "{}"))
    return found


def _lines(value: bytes) -> bytes:
    """Return the events of a message as lines; an array becomes a line for each of its values."""
    value = value.strip()
    if value.startswith(b"["):
        try:
            return b"\n".join([json.dumps(event).encode() for event in json.loads(value)])
        except (ValueError, RecursionError):
            return value.replace(b"\n", b" ")  # one line, which is refused
    return value
