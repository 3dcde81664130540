"""Topics of Kafka."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from streammetrics.core.errors import needs
from streammetrics.live.consuming.queue import Message, QueueError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Foreign
    from streammetrics.live.consuming.queue import Address, Position

_TIMEOUT = 10.0  # seconds to wait for an answer
_RENEWED = 60.0  # seconds between two looks at the number of partitions
_PROTOCOLS = {("kafka", False): "plaintext", ("kafka", True): "sasl_plaintext",
              ("kafkas", False): "ssl", ("kafkas", True): "sasl_ssl"}  # fmt: skip


class KafkaTopic:
    """A topic of Kafka. Its parts are the partitions, whose place is the next offset.

    All partitions are read. A consumer group of Kafka only shows the position; the store decides
    what is read.
    """

    def __init__(self, address: Address, topic: str, group: str) -> None:
        with needs("confluent-kafka", "kafka"):
            import confluent_kafka as kafka  # noqa: PLC0415 - an extra of its own
        self._kafka = kafka
        login = {"sasl.username": address.user, "sasl.password": address.password}
        self._settings = {
            "bootstrap.servers": address.servers,
            "security.protocol": _PROTOCOLS[address.scheme, bool(address.user)],
            **({"sasl.mechanisms": "PLAIN", **login} if address.user else {}),
            "log_level": 2,  # errors are reported by the calls that fail
            **address.options,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
        self.title = f"kafka {topic} {group}"
        self._topic = topic
        self._consumer: Foreign = None
        self._partitions: list[int] = []
        self._looked = 0.0  # time of the last look at the number of partitions

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (self._kafka.KafkaException, RuntimeError) as error:
            why = error.args[0]
            raise QueueError(f"Kafka: {why.str() if hasattr(why, 'str') else why}") from error

    def open(self, position: Position) -> list[str]:
        """Read what follows a position; see `Queue`."""
        self.close()
        kafka, starts, lost = self._kafka, [], []
        with self._reading():
            self._consumer = kafka.Consumer(self._settings)
            self._partitions = self._found()
            for partition in self._partitions:
                place = kafka.TopicPartition(self._topic, partition)
                first, end = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT)
                start = int(position.get(str(partition), first))
                if start > end:
                    raise QueueError(
                        f"partition {partition} of {self._topic!r} ends at {end}, before {start}, "
                        "up to which it was read: it was made anew; --group with another name "
                        "reads it from its beginning"
                    )
                if start < first:
                    lost.append(
                        f"{first - start:,} messages of partition {partition} were deleted before "
                        "they were read"
                    )
                starts.append(kafka.TopicPartition(self._topic, partition, max(start, first)))
            self._consumer.assign(starts)
        return lost

    def _found(self) -> list[int]:
        """Return the numbers of the partitions that exist."""
        topic = self._consumer.list_topics(self._topic, timeout=_TIMEOUT).topics[self._topic]
        self._looked = time.monotonic()
        if topic.error is not None or not topic.partitions:
            raise QueueError(f"Kafka has no topic {self._topic!r}")
        return sorted(topic.partitions)

    def read(self, n: int, seconds: float) -> list[Message]:
        """Return up to `n` messages; see `Queue`."""
        with self._reading():
            found = self._consumer.consume(n, timeout=seconds)
            if time.monotonic() - self._looked > _RENEWED and self._found() != self._partitions:
                raise QueueError(f"Kafka: {self._topic!r} has other partitions now")
        for message in found:
            if message.error() is not None:
                raise QueueError(f"Kafka: {message.error().str()}")
        return [
            Message(message.value() or b"", str(message.partition()), message.offset() + 1)
            for message in found
        ]

    def show(self, position: Position) -> None:
        """Show the position as that of a consumer group; see `Queue`."""
        offsets = [
            self._kafka.TopicPartition(self._topic, int(partition), int(place))
            for partition, place in position.items()
        ]
        with suppress(self._kafka.KafkaException):
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
