"""A device whose streams do nothing until somebody waits for them, with the names of PyTorch's."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

GARBAGE = 77
_LOCK = threading.RLock()


class Device(NamedTuple):
    """One of several devices of this kind."""

    type: str = "late"
    index: int = 0


FIRST = Device()


class Stream:
    """Operations in their order, which are done when an event after them is waited for."""

    def __init__(self, device=FIRST, *, late=True):
        self.device, self.late, self.todo, self.done = device, late, [], 0

    def add(self, operation):
        with _LOCK:
            self.todo.append(operation)
        if not self.late:
            self.run(len(self.todo))

    def run(self, end):
        with _LOCK:
            while self.done < end:
                self.done += 1
                self.todo[self.done - 1]()
                self.todo[self.done - 1] = None

    def wait_stream(self, other):
        end = len(other.todo)
        self.add(lambda: other.run(end))

    def record_event(self, event):
        event.stream, event.place = self, len(self.todo)
        return event


class Event:
    """A place in a stream."""

    def __init__(self, *, blocking):
        assert blocking

    def synchronize(self):
        self.stream.run(self.place)


class Backend:
    """What `torch.cuda` is for CUDA."""

    Stream, Event = Stream, Event

    def __init__(self, *, late):
        self.streams = {Device(index=i): Stream(Device(index=i), late=late) for i in range(2)}
        self.used = threading.local()

    def current_stream(self, device):
        return getattr(self.used, "stream", None) or self.streams[device]

    def stream(self, stream):
        return _Using(self.used, stream)


class _Using:
    def __init__(self, used, stream):
        self.used, self.stream = used, stream

    def __enter__(self):
        self.used.stream = self.stream

    def __exit__(self, *_):
        self.used.stream = None


class Tensor:
    """Values on a device, whose stream uses their memory again unless another one reads it."""

    is_cpu = requires_grad = False

    def __init__(self, backend, values, device=FIRST):
        self.backend, self.device, self.readers = backend, device, []
        self.memory = np.array(values)

    def _do(self, operation):
        self.backend.current_stream(self.device).add(operation)

    def numel(self):
        return self.memory.size

    def detach(self):
        return self

    def fill_(self, value):
        memory = self.memory
        self._do(lambda: memory.fill(value))

    def clone(self):
        twin = Tensor(self.backend, np.full_like(self.memory, GARBAGE), self.device)
        memory, source = twin.memory, self.memory
        self._do(lambda: np.copyto(memory, source))
        return twin

    def to(self, where, *, non_blocking):
        assert where == "cpu"
        assert non_blocking
        host, source = np.full_like(self.memory, GARBAGE), self.memory
        self._do(lambda: np.copyto(host, source))
        return host

    def record_stream(self, stream):
        self.readers.append(stream)

    def __del__(self):
        if not self.readers:
            self.fill_(GARBAGE)
