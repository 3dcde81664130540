"""Answers that are kept for a moment: however many ask, each is made once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from concurrent.futures import Executor

    from streammetrics.core.types import Json

_LEAST = 0.25  # seconds that an answer is kept
_SHARE = 8  # times what it took to make it
_MOST = 64  # answers


class Cache:
    """Bodies by what was asked; one that took long is kept for longer, so reads leave room."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._kept: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._made: dict[Hashable, asyncio.Task[bytes]] = {}

    async def get(self, key: Hashable, make: Callable[[], Json]) -> bytes:
        """Return the body for a key, made if it is not there or too old."""
        until, body = self._kept.get(key, (0.0, b""))
        if time.monotonic() < until:
            return body
        task = self._made.get(key)
        if task is None:
            task = self._made[key] = asyncio.ensure_future(self._make(key, make))
            task.add_done_callback(lambda _: self._made.pop(key, None))
        return await asyncio.shield(task)

    async def _make(self, key: Hashable, make: Callable[[], Json]) -> bytes:
        loop = asyncio.get_running_loop()
        body, took = await loop.run_in_executor(self._executor, _timed, make)
        self._kept[key] = time.monotonic() + max(_LEAST, _SHARE * took), body
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return body


def _timed(make: Callable[[], Json]) -> tuple[bytes, float]:
    start = time.monotonic()
    body = json.dumps(make(), separators=(",", ":"), allow_nan=False).encode()
    return body, time.monotonic() - start
