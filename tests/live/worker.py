"""Processes that send events to a store, until they are done or killed."""

from __future__ import annotations

import multiprocessing

from live.events import START, joined


def send(into, number):
    """Send event `number` of a stream that is the same for everybody."""
    name = f"r{number // 2}"
    if number % 2 == 0:
        into.predict(id=name, time=START + number / 50, y_score=number % 16 / 16)
    else:
        into.label(id=name, time=START + number / 50 + 5, y_true=number // 2 % 2)


def _work(path, numbers, told):
    with joined(store=path) as service:
        for place, number in enumerate(numbers):
            send(service, number)
            if place % 97 == 0:
                service.flush()
                told.send(number)  # everything up to it has returned


def start(path, numbers):
    """Return a process that sends some events, and where it tells what it has flushed.

    It is forked, so that nothing is imported again.
    """
    fork = multiprocessing.get_context("fork")
    hears, tells = fork.Pipe(duplex=False)
    process = fork.Process(target=_work, args=(path, numbers, tells))
    process.start()
    tells.close()
    return process, hears


def told(hears):
    """Return all that a process has told until it ended."""
    found = []
    with hears:
        try:
            while True:
                found.append(hears.recv())
        except EOFError:
            return found
