"""Metrics of a Kafka topic, every message counted once: shard = partition, attempt = offset.

    python examples/engine_kafka.py

Whoever consumes a partition keeps a ledger of it in a file: the partition is the shard, its state
that of all messages so far, and the attempt the offset that comes next. State and offset are
written together, as the file is replaced as a whole; whoever starts again reads on from there. What
Kafka knows of committed offsets plays no part, so nothing is lost between the two, and nothing
counts twice. Ledgers of all partitions merge to that of the topic.

It runs with the broker that comes inside of confluent-kafka, for tests: `pip install
confluent-kafka`. A real one needs its address in the place of `servers`, and nothing else.
"""

from __future__ import annotations

import json
import random
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka as kafka

import streammetrics as sm

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC, PARTITIONS = "predictions", 3
SUITE = sm.MetricSet({"auc": sm.ROCAUC(), "brier": sm.BrierScore()})
BATCH = 200  # messages that are taken together


@contextmanager
def broker() -> Iterator[str]:
    """Run a broker inside of this process, and give its address."""
    holder = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    metadata = holder.list_topics(timeout=10)
    (found,) = metadata.brokers.values()
    yield f"{found.host}:{found.port}"
    holder.flush()


def produce(servers: str, n: int) -> list[dict[str, Any]]:
    """Send messages to all partitions, and return them."""
    chance = random.Random(5)
    producer = kafka.Producer({"bootstrap.servers": servers})
    messages = [{"y_true": chance.randint(0, 1), "y_score": chance.random()} for _ in range(n)]
    for place, message in enumerate(messages):
        producer.produce(TOPIC, json.dumps(message).encode(), partition=place % PARTITIONS)
        producer.poll(0)
    producer.flush()
    return messages


def consume(servers: str, folder: Path, stop_after: int | None = None) -> sm.Ledger:
    """Take messages to the end, or die after so many of them; return the ledger of all."""
    ledgers = {place: opened(folder, place) for place in range(PARTITIONS)}
    offsets = {place: ledger.attempts.get(place, 0) for place, ledger in ledgers.items()}
    states = {place: ledger.merged() for place, ledger in ledgers.items()}
    consumer = kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "metrics", "enable.auto.commit": False}
    )
    consumer.assign([kafka.TopicPartition(TOPIC, place, at) for place, at in offsets.items()])
    ends = {place: end(consumer, place) for place in range(PARTITIONS)}
    taken = 0
    while any(offsets[place] < ends[place] for place in ends):
        messages = consumer.consume(BATCH, timeout=1.0)
        for message in messages:
            place, offset, row = read(message)
            states[place].update(row)
            offsets[place] = offset + 1
            taken += 1
            if taken == stop_after:  # as if it were killed: of this batch nothing was saved
                consumer.close()
                return merged(folder)
        for place in {read(message)[0] for message in messages}:
            ledgers[place].add(place, states[place], attempt=offsets[place])
            ledgers[place].save(folder / f"{TOPIC}-{place}.ledger")
    consumer.close()
    return merged(folder)


def read(message: Any) -> tuple[int, int, dict[str, Any]]:
    """Return the partition of a message, its offset there, and what it says."""
    if message.error():
        raise kafka.KafkaException(message.error())
    return message.partition(), message.offset(), json.loads(message.value())


def opened(folder: Path, place: int) -> sm.Ledger:
    """Return the ledger of a partition as it was saved, empty where there is none."""
    path = folder / f"{TOPIC}-{place}.ledger"
    return sm.load(path, kind=sm.Ledger) if path.exists() else sm.Ledger(SUITE)


def merged(folder: Path) -> sm.Ledger:
    """Return the ledger of all partitions, as they were saved."""
    return sm.Ledger(SUITE).merge(*(opened(folder, place) for place in range(PARTITIONS)))


def end(consumer: kafka.Consumer, place: int) -> int:
    """Return the offset behind the last message of a partition."""
    return int(consumer.get_watermark_offsets(kafka.TopicPartition(TOPIC, place), timeout=10)[1])


if __name__ == "__main__":
    with broker() as address, tempfile.TemporaryDirectory() as folder:
        produce(address, 3000)
        consume(address, Path(folder), stop_after=1000)
        ledger = consume(address, Path(folder))
        print(ledger, ledger.compute())
