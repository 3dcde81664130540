"""Queues for tests: servers of Redis and NATS in processes of their own, and a mock of Kafka."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys

import confluent_kafka as kafka
import nats
import redis
from nats.js import api
from service.serving import free_port, until

STREAM = "events"


class Server:
    """A server in a process, which keeps its data when it is started again."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()
        self.close()

    def start(self):
        self.process = subprocess.Popen(
            self.words(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self.answers, seconds=30)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def answers(self):
        try:
            self.connect()
        except Exception:  # it starts
            return False
        return True

    def close(self):
        """Close what the test has opened."""


class Redis(Server):
    needs = shutil.which("redis-server")
    reason = "there is no redis-server"

    def words(self):
        words = ["--port", self.port, "--dir", self.folder, "--appendonly", "yes", "--save", ""]
        return ["redis-server", *map(str, words)]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def connect(self):
        self.client = redis.Redis(port=self.port)
        self.client.ping()

    def send(self, values):
        pipe = self.client.pipeline(transaction=False)
        for value in values:
            pipe.xadd(STREAM, {"event": value})
        pipe.execute()

    def make_anew(self):
        self.client.delete(STREAM)
        self.client.xadd(STREAM, {"event": "{}"}, id="1-1")

    def close(self):
        self.client.close()


class Nats(Server):
    needs = shutil.which("nats-server")
    reason = "there is no nats-server"

    def __init__(self, folder):
        super().__init__(folder)
        self.runner = asyncio.Runner()

    def words(self):
        words = ["-js", "-p", self.port, "-sd", self.folder]
        return ["nats-server", *map(str, words)]

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def connect(self):
        self.runner.run(self._with(self._add))

    async def _with(self, call, *arguments):
        connection = await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False)
        try:
            return await call(connection.jetstream(), *arguments)
        finally:
            await connection.close()

    async def _add(self, stream, **more):
        await stream.add_stream(api.StreamConfig(name=STREAM, subjects=["scored.*"], **more))

    async def _send(self, stream, values):
        for value in values:
            await stream.publish_async("scored.x", value)
        await stream.publish_async_completed()

    def send(self, values):
        self.runner.run(self._with(self._send, values))

    async def _purge(self, stream):
        await stream.delete_stream(STREAM)
        await self._add(stream)

    def make_anew(self):
        self.runner.run(self._with(self._purge))

    def close(self):
        self.runner.close()


class Kafka(Server):
    """The mock of a cluster that is part of librdkafka; there is no broker, and no disk."""

    needs, reason = True, ""
    _SCRIPT = """
import sys, time, confluent_kafka as kafka
holder = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
(found,) = holder.list_topics(timeout=10).brokers.values()
print(f"{found.host}:{found.port}", flush=True)
sys.stdin.read()
"""

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", self._SCRIPT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.servers = self.process.stdout.readline().strip()
        self.producer = kafka.Producer({"bootstrap.servers": self.servers})
        self.sent = 0

    def end(self):
        self.process.communicate("")

    @property
    def url(self):
        return f"kafka://{self.servers}"

    def send(self, values):
        for value in values:
            self.producer.produce(STREAM, value, partition=self.sent % 3)
            self.sent += 1
            if self.sent % 1000 == 0:
                self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def close(self):
        del self.producer
