"""Answers that are kept for a moment: however many ask, each is made once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable
    from concurrent.futures import Executor

    from streammetrics.core.types import Json

_LEAST = 0.25  # seconds that an answer is kept
_SHARE = 8  # times what it took to make it
_MOST = 64  # answers


class GoneError(Exception):
    """Nobody waits any more for an answer."""


class Making:
    """An answer that is made, and how many wait for it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.over = False  # as all have gone
        self.task: asyncio.Task[bytes]

    def go_on(self) -> None:
        """Raise `GoneError` where nobody waits any more."""
        if self.over:
            raise GoneError


class Cache:
    """Bodies by what was asked; one that took long is kept for longer, so reads leave room."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._kept: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._made: dict[Hashable, Making] = {}

    async def get(
        self,
        key: Hashable,
        make: Callable[[Callable[[], None]], Json],
        gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> bytes:
        """Return the body for a key, made if it is not there or too old.

        Args:
            key: What was asked.
            make: Makes the answer. It calls what it is given between two pieces of its work, which
                raises where nobody waits any more.
            gone: Waits until the client that asks is gone.

        Raises:
            GoneError: The client is gone.
        """
        until, body = self._kept.get(key, (0.0, b""))
        if time.monotonic() < until:
            return body
        making = self._made.get(key)
        if making is None:
            making = self._made[key] = Making()
            making.task = asyncio.ensure_future(self._make(key, making, make))
            making.task.add_done_callback(_heard)
        making.waiting += 1
        left = asyncio.ensure_future(gone())
        try:
            await asyncio.wait({making.task, left}, return_when=asyncio.FIRST_COMPLETED)
            if making.task.done():
                return making.task.result()
            raise GoneError
        finally:
            left.cancel()
            making.waiting -= 1
            if not making.waiting and not making.task.done():
                making.over = True
                self._forget(key, making)

    async def _make(
        self, key: Hashable, making: Making, make: Callable[[Callable[[], None]], Json]
    ) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            call = loop.run_in_executor(self._executor, _timed, make, making)
            body, took = await call
        except GoneError:
            return b""
        finally:
            self._forget(key, making)
        self._kept[key] = time.monotonic() + max(_LEAST, _SHARE * took), body
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return body

    def _forget(self, key: Hashable, making: Making) -> None:
        if self._made.get(key) is making:
            del self._made[key]


def _heard(task: asyncio.Task[bytes]) -> None:
    """Take note of an error: who asked for the answer gets it, or nobody waits any more."""
    if not task.cancelled():
        task.exception()


def _timed(make: Callable[[Callable[[], None]], Json], making: Making) -> tuple[bytes, float]:
    making.go_on()
    start = time.monotonic()
    body = json.dumps(make(making.go_on), separators=(",", ":"), allow_nan=False).encode()
    return body, time.monotonic() - start
