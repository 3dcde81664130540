"""Two services on one store, four clients, and trouble of every kind: all windows are right.

The clients send a stream of predictions, labels, corrections and observations with ids, each
batch to either service, again where nobody answered and sometimes although somebody did. Meanwhile
services are killed, suspended, left without room and with a clock that jumps, and their store is
locked. What was acknowledged is the log; NumPy recomputes every window from it.
"""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import sqlite3
import struct
import time
import urllib.error
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest
from service.serving import Service, children, until

from streammetrics.live.service.config import settings

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("STREAMMETRICS_KILLS", "8"))  # 200 by hand, in half an hour
SEED = int(os.environ.get("STREAMMETRICS_SEED", "0"))
CLIENTS, ROWS, SITES, LEVELS = 4, 60, 5, 16
SPAN = 40 * 60  # seconds of event time that end at the start
LIVE = """
store = "live.db"
durable = true
by = [["site"]]
tiers = [["1min", "6h"]]
label_ttl = "2h"
dedupe = "3h"
"""
# A service whose clock is as far from the right one as a file says.
JUMPING = """
import mmap, struct, sys, time
from streammetrics.cli import main

with open({path!r}, "rb") as file:
    offset = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
real = time.time
time.time = lambda: real() + struct.unpack("d", offset)[0]
if __name__ == "__main__":
    sys.exit(main())
"""


class Client:
    """One that sends batches of a stream of its own until each of them is acknowledged."""

    def __init__(self, number, services, start):
        self.name, self.services, self.start = f"c{number}", services, start
        self.dice = random.Random(f"{SEED} {number}")
        self.rows = []  # time, site, score, and the label by version of each prediction
        self.observed, self.batches, self.answers = [], [], Counter()

    def batch(self, at):
        """Return events of some moment: predictions, labels of some before, and corrections."""
        dice, made = self.dice, []
        for _ in range(ROWS // 2):
            time, site = at + dice.random() * 60, dice.randrange(SITES)
            score = dice.randrange(LEVELS) / LEVELS
            head = {"time": time, "site": f"s{site}", "score": score}
            if dice.random() < 0.3:
                label = dice.randrange(2)
                name = f"{self.name}-o{len(self.observed)}"
                made.append({"kind": "observe", "id": name, "label": label, **head})
                self.observed.append((time, site, score, label))
            else:
                made.append({"kind": "predict", "id": f"{self.name}-{len(self.rows)}", **head})
                self.rows.append((time, site, score, []))
        for _ in range(ROWS // 2):
            place = dice.randrange(len(self.rows))
            time, _, _, labels = self.rows[place]
            labels.append(dice.randrange(2))
            name, version = f"{self.name}-{place}", len(labels)
            label = {"id": name, "version": version, "time": time + 30, "label": labels[-1]}
            made.append({"kind": "label", **label})
        dice.shuffle(made)
        return made

    def send(self, events):
        """Post until it is said that all are taken; whoever was killed may have taken them, too."""

        def taken():
            service = self.dice.choice(self.services)
            try:
                answer = service.post(events)
            except urllib.error.HTTPError as error:
                with error:
                    self.answers[error.code] += 1
                    told = error.read().decode()
                # What is ahead of a clock that was set back is refused.
                if error.code not in {503, 507} and "ahead of the clock" not in told:
                    raise
                return False
            except OSError:
                self.answers["nobody"] += 1
                return False
            assert answer["taken"] == len(events), answer
            self.answers[202] += 1
            return True

        until(taken)

    def run(self, goes_on):
        while goes_on():
            at = self.start + len(self.batches) % 40 * 60 - 90
            self.batches.append(self.batch(at))
            self.send(self.batches[-1])
            if self.dice.random() < 0.1:
                self.send(self.dice.choice(self.batches))
            time.sleep(0.05)


@contextmanager
def locked(path):
    """Hold the store as one does who copies it by hand."""
    with sqlite3.connect(path, isolation_level=None, timeout=30) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")
    other.close()


@contextmanager
def suspended(service):
    pids = [*children(service.process.pid), service.process.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def full(services):
    """Leave no room: nothing can be written beyond the first page of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(most):
        for pid in [each.process.pid for each in services]:
            with suppress(ProcessLookupError, FileNotFoundError):  # it has ended
                for each in [pid, *children(pid)]:
                    resource.prlimit(each, resource.RLIMIT_FSIZE, (most, before[1]))

    limit(4096)
    yield
    limit(before[0])


@contextmanager
def jumped(offset, seconds):
    offset[:] = struct.pack("d", seconds)
    yield
    offset[:] = struct.pack("d", 0.0)


def trouble(services, store, offset, told):
    """Kill a service, or a worker of it, again and again, with other trouble in between."""
    dice = random.Random(f"{SEED} trouble")
    others = [
        ("lock", lambda: locked(store)),
        ("stop", lambda: suspended(dice.choice(services))),
        ("full disk", lambda: full(services)),
        ("clock", lambda: jumped(offset, dice.choice([-86_400.0, -3_000.0, 3_000.0, 1e6]))),
    ]
    kills = 0
    while kills < KILLS:
        name, make = others[kills % len(others)]
        with make():
            time.sleep(dice.uniform(0.2, 7))
        told[name] += 1
        for each in services:
            if each.process.poll() is not None:  # a worker that was killed could not be replaced
                assert each.process.returncode == 2, each.process.stderr.read()
                told["ended"] += 1
                each.start()
        time.sleep(dice.uniform(0.1, 1.5))
        service = dice.choice(services)
        workers = children(service.process.pid)
        if workers and dice.random() < 0.5:
            with suppress(ProcessLookupError):
                os.kill(dice.choice(workers), signal.SIGKILL)
            told["worker killed"] += 1
        else:
            service.end(signal.SIGKILL)
            service.start()
            told["service killed"] += 1
        kills += 1


def expected(rows):
    """Return the number of rows of a window, the accuracy and the ROC AUC, by NumPy alone."""
    scores, labels = (np.array([row[place] for row in rows]) for place in (2, 3))
    right = int(((scores >= 0.5) == labels).sum())
    up, down = (
        np.bincount((scores[labels == label] * LEVELS).astype(int), minlength=LEVELS)
        for label in (1, 0)
    )
    pairs = 2 * int(up.sum()) * int(down.sum())
    below = int((up * (2 * (np.cumsum(down) - down) + down)).sum())
    return len(rows), right / len(rows), below / pairs if pairs else float("nan")


def values(window):
    found = window.compute()
    return window.n_rows, found["accuracy"], found["auc"]


def check(found, rows, where):
    np.testing.assert_array_equal(found, expected(rows), err_msg=where)


def test_chaos(config, tmp_path):
    clock, program = tmp_path / "clock", tmp_path / "streammetrics"
    clock.write_bytes(bytes(8))
    program.write_text(JUMPING.format(path=str(clock)))
    path = config(live=LIVE)
    other = tmp_path / "other.toml"
    other.write_text(path.read_text().replace("[server]", "[server]\nworkers = 2"))
    told, start = Counter(), time.time() - SPAN
    with ExitStack() as stack:
        file = stack.enter_context(open(clock, "r+b"))
        offset = stack.enter_context(mmap.mmap(file.fileno(), 8))
        services = [
            stack.enter_context(Service(each, program=[str(program)])) for each in (path, other)
        ]
        clients = [Client(number, services, start) for number in range(CLIENTS)]
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS + 1))
        causer = pool.submit(trouble, services, tmp_path / "live.db", offset, told)
        for done in [
            causer,
            *(pool.submit(each.run, lambda: not causer.done()) for each in clients),
        ]:
            done.result()
        assert told["worker killed"] + told["service killed"] == KILLS
        until(lambda: all(each.get("/health")["status"] == "ok" for each in services))
        ended = [(each.end(), each.process.returncode) for each in services]
        assert [code for _, code in ended] == [0, 0], ended
    answers = sum((each.answers for each in clients), Counter())
    print(f"trouble: {dict(told)}; answers: {dict(answers)}")
    predicted = [row for each in clients for row in each.rows]
    labelled = [(*row[:3], row[3][-1]) for row in predicted if row[3]]
    rows = labelled + [row for each in clients for row in each.observed]
    print(f"{len(predicted):,} predictions, {len(rows):,} rows")
    by_minute = defaultdict(list)
    for row in rows:
        by_minute[int(row[0] // 60)].append(row)
    with settings(path).live() as live:
        found = live.coverage("6h")
        corrected = sum(len(row[3]) > 1 for row in predicted)
        assert (found.predicted, found.labelled) == (len(predicted), len(labelled))
        assert found.corrected == corrected
        check(values(live.window("6h")), rows, "all")
        for minute, here in by_minute.items():
            check(values(live.window("1min", end=(minute + 1) * 60)), here, f"minute {minute}")
        sites = live.window("6h", by="site").compute().to_dict()
        for place, site in enumerate(sites["site"]):
            here = [row for row in rows if row[1] == int(site[1:])]
            check([sites[name][place] for name in ("n_rows", "accuracy", "auc")], here, site)
        assert len(sites["site"]) == SITES
