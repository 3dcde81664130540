"""Real processes: ended, killed, several on one store, beside slow clients and junk."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from service.serving import Service, children, resident, until

from streammetrics.cli import main
from streammetrics.live.service.config import settings

pytestmark = pytest.mark.long


def observed(n, at=None):
    start = time.time() if at is None else at
    return [
        {"kind": "observe", "time": start, "label": i % 2, "score": (i * 7 % 10) / 10}
        for i in range(n)
    ]


def stored(path):
    with settings(path).live() as live:
        return live.n_rows


def test_what_was_taken_is_there_after_an_end_by_signal(config):
    path = config()
    for number, rows in ((signal.SIGTERM, 70), (signal.SIGINT, 140)):
        with Service(path) as service:
            service.post(observed(70))
            told = service.end(number)
            assert "Traceback" not in told
            assert service.process.returncode == 0
        assert stored(path) == rows


JUDGING = """
import atexit, sys, threading
if __name__ == SERVING:
    atexit.register(print, "the interpreter is finalized", file=sys.stderr)
import numpy as np
import streammetrics as sm
from streammetrics.cli import main

numbers = np.arange(200_000)

def work(*_):
    while True:
        np.unique(numbers)  # which is C++

def judge(*_):
    print("judging", file=sys.stderr, flush=True)
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    work()

sm.Below.compare = judge
if __name__ == "__main__":
    sys.exit(main())
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_rules_that_are_evaluated_at_the_end_do_not_abort_it(config, tmp_path, workers):
    program = tmp_path / "streammetrics"
    serving = "__main__" if workers == 1 else "__mp_main__"  # the module of what judges
    program.write_text(f"SERVING = {serving!r}{JUDGING}")
    rule = 'low = \'Below("auc", 0.5, window="5min", after="1min")\''
    live = 'store = "live.db"\nlabel_ttl = "1min"\nlabel_lateness = "1min"'
    path = config("[alerts]", rule, server=f"workers = {workers}", live=live)
    for stop in range(3):
        with Service(path, program=[str(program)]) as service:
            service.post(observed(70, time.time() - 1000))
            for _ in range(4 * workers - 3):  # whichever worker answers
                service.get("/api/alerts")
            told = service.end()
            assert service.process.returncode == 0, told
        assert {*told.splitlines()} == {"judging"}
        assert stored(path) == 70 * (stop + 1)


SLOW = """
import sys, time
from streammetrics.cli import main
from streammetrics.live.service import running
from streammetrics.live.service.bodies import Bodies

take = Bodies.take

def slow(*said):
    time.sleep(3)
    return take(*said)

Bodies.take, running._GRACE = slow, 1
if __name__ == "__main__":
    sys.exit(main())
"""


def test_requests_that_take_longer_than_the_end_waits_are_answered(config, tmp_path):
    program = tmp_path / "streammetrics"
    program.write_text(SLOW)
    path, found = config(), []

    def post():
        try:
            found.append((202, service.post(observed(7))["taken"]))
        except urllib.error.HTTPError as error:
            found.append((error.code, json.loads(error.read())["error"]))

    with Service(path, program=[str(program)]) as service:
        asked = [threading.Thread(target=post) for _ in range(3)]
        for each in asked:
            each.start()
        until(lambda: service.get("/health")["queue"]["waiting"] == 3)
        told = service.end()
        for each in asked:
            each.join()
        assert service.process.returncode == 0
    why = "the service is shutting down and did not take this: send it again"
    assert sorted(found) == [(202, 7), (503, why), (503, why)]
    assert "Traceback" not in told
    assert stored(path) == 7


@pytest.mark.parametrize("workers", [1, 2])
def test_events_that_are_lost_at_the_end_are_told_and_the_exit_code_says_so(
    config, tmp_path, workers
):
    with Service(config(server=f"workers = {workers}")) as service:
        service.post(observed(3))
        (tmp_path / "live.db").unlink()
        service.post(observed(7))
        told = service.end().splitlines()
        assert service.process.returncode == 2
    assert all(line.startswith(("warning: ", "error: ")) for line in told), told
    # With two workers one may have made a new file, so that another finds this in its place.
    lost = [line for line in told if "events are lost: " in line]
    assert 1 <= len(lost) <= workers, told  # whichever took them
    assert lost[0].startswith("error: the store cannot be written, ")


@pytest.mark.parametrize("workers", [1, 2])
def test_without_its_log_a_service_ends_with_all_events(config, tmp_path, workers):
    path = config(server=f"workers = {workers}")
    with Service(path) as service:
        for _ in range(10):
            service.post(observed(3))
        time.sleep(2.5)
        (tmp_path / "live.db-wal").unlink()
        for _ in range(10):
            service.post(observed(7))
        until(lambda: "was deleted" in service.get("/health")["store"]["trouble"])
        told = service.end().splitlines()
        assert service.process.returncode == 0, told
    assert all(line.startswith("warning: the store cannot be used") for line in told), told
    assert stored(path) == 100


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.4, 0.8])
def test_a_service_that_has_not_begun_ends_at_a_signal(config, wait):
    command = [Path(sys.executable).parent / "streammetrics", "live", "serve", config()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"serving on")
        time.sleep(wait)
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_a_killed_service_loses_at_most_its_last_second(config):
    path = config()
    with Service(path) as service:
        service.post(observed(50))
        until(lambda: service.get("/api/now")["n_rows"] == 50)
        time.sleep(3)  # in which it has written
        service.post(observed(7))
        service.end(signal.SIGKILL)
        service.start()
        assert service.get("/api/now")["n_rows"] in {50, 57}
        service.post(observed(3))
        until(lambda: service.get("/api/now")["n_rows"] in {53, 60})


def test_a_bad_first_event_leaves_the_store_as_it_was(tmp_path):
    config = tmp_path / "live.toml"
    text = '[metrics]\nhamming = "HammingLoss"\n[live]\nstore = "live.db"\n'
    config.write_text(f"{text}types = {{ y_true = 3, y_pred = 3 }}\n")
    one = {"kind": "observe", "time": time.time()}
    bad, good = ({**one, "y_true": row, "y_pred": row} for row in ([1, 0], [1, 0, 1]))
    for n in (1, 2):
        with Service(config) as service:
            with pytest.raises(urllib.error.HTTPError, match="422") as refused:
                service.post([bad])
            assert "declared to have 3 values a row" in refused.value.read().decode()
            assert service.post([good])["taken"] == 1
            until(lambda: service.get("/api/now")["n_rows"] == n)  # noqa: B023 - called at once
            service.end()
    config.write_text(f"{text}types = {{ y_true = 2, y_pred = 2 }}\n")
    assert main(["live", "status", str(config)]) == 2


def test_workers_answer_for_the_whole_service(config):
    path = config(server="workers = 2")
    with Service(path) as service:
        for _ in range(20):  # each by a connection of its own, to whichever worker takes it
            service.post(observed(10))
        seen = {}
        for _ in range(40):
            health = service.get("/health")
            seen[health["worker"]] = health["taken"]
        assert sum(seen.values()) == 200 or len(seen) == 1
        until(lambda: service.get("/api/now")["n_rows"] == 200)
        service.end()
    assert stored(path) == 200


@pytest.mark.parametrize("durable", ["false", "true"])
def test_a_worker_that_was_killed_is_named(config, durable):
    path = config(server="workers = 2")
    if durable == "true":
        path.write_text(path.read_text().replace("[live]", "[live]\ndurable = true", 1))
    with Service(path) as service:
        killed = service.get("/health")["worker"]
        os.kill(killed, signal.SIGKILL)
        until(lambda: service.get("/ready") is None)
        until(lambda: service.get("/ready") is not None)
        told = service.end()
        assert service.process.returncode == 0
    words = f"warning: worker {killed} was killed"
    assert told.count(words) == told.count("warning") == (durable == "false"), told


def test_a_worker_that_is_slow_is_not_killed(config):
    with Service(config(server="workers = 2")) as service:
        workers = children(service.process.pid)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        time.sleep(8)  # others begin to doubt after 5
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        service.post(observed(5))
        assert {*workers} <= {*children(service.process.pid)}
        service.end()


def test_slow_clients_and_junk_leave_it_answering(config):
    path = config(server='timeout = "2s"\nbody = "100kB"\nconnections = 1000')
    dice = random.Random(1)
    with Service(path) as service:
        service.post(observed(5))
        slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(50)]
        for client in slow:
            client.sendall(b"POST /events HTTP/1.1\r\nHost: localhost\r\n")
        half = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
        for client in half:
            head = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n{"
            client.sendall(head)
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", service.port)) as client:
                client.sendall(dice.randbytes(dice.randrange(1, 400)))
        asked = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        before = resident(service.process.pid)
        for _ in range(2000):
            asked.request("POST", "/events", dice.randbytes(dice.randrange(0, 400)))
            answer = asked.getresponse()
            answer.read()
            assert answer.status in {202, 422}
        asked.close()
        assert resident(service.process.pid) - before < 20e6
        assert service.get("/api/now")["n_rows"] == 5
        for client in half:
            client.settimeout(30)
            assert b" 408 " in client.recv(100)
        for client in slow:
            client.settimeout(30)
            assert client.recv(100) == b""  # it was closed
        for client in (*slow, *half):
            client.close()
        service.post(observed(5))
        until(lambda: service.get("/api/now")["n_rows"] == 10)
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
            client.settimeout(30)
            assert b" 400 " in client.recv(100)


HEAD = b"%s /events HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n"
CHUNKED, LONG = b"Transfer-Encoding: chunked", b"Content-Length: 99999999"


NO_HTTP = [
    (HEAD % (b"POST", CHUNKED), b"zz\r\n", 400),  # while it reads on
    (HEAD % (b"PUT", CHUNKED), b"zz\r\n", 405),  # which it has answered already
    (HEAD % (b"HEAD", CHUNKED), b"zz\r\n", 405),
    (HEAD % (b"POST", LONG), b"{}", 413),
    (HEAD % (b"HEAD", CHUNKED) + b"zz\r\n", b"", 400),  # an answer without a text
    (HEAD % (b"GET", CHUNKED) + b"zz\r\n", b"", 400),
    (b"\x16\x03\x01\x02\x00\x01", b"\r\n\r\n", 400),
]


def test_what_is_no_http_is_refused_without_a_word(config):
    with Service(config()) as service:
        for head, then, status in NO_HTTP:
            with socket.create_connection(("127.0.0.1", service.port), timeout=30) as client:
                client.sendall(head)
                time.sleep(0.3)
                with contextlib.suppress(OSError):
                    client.sendall(then)
                assert b" %d " % status in client.recv(100), (head, then)
        service.post(observed(5))
        assert service.end() == ""


def taken(service, events):
    """Whether a service has taken events, or was still answering more requests than it may."""
    try:
        return service.post(events) == {"taken": 5, "observe": 5}
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 503:
            raise
        return False


def test_clients_that_wait_hold_no_place_of_those_who_ask(config):
    many = 20
    path = config(server=f'timeout = "60s"\nconnections = {many}')
    heads = {
        "says nothing": b"",
        "half a header": b"POST /events HTTP/1.1\r\nHost: localhost\r\n",
        "half a body": b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{",
        "reads nothing": b"GET /plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }
    with Service(path) as service:
        urllib.request.urlopen(f"{service.url}/plotly.min.js", timeout=60).close()
        before, held = resident(service.process.pid), []
        for place, head in enumerate(heads.values()):
            for _ in range(2 * many):
                client = socket.create_connection(("127.0.0.1", service.port))
                client.sendall(head)
                held.append(client)
            until(lambda: taken(service, observed(5)), seconds=20)  # far from the time-out
            until(lambda rows=5 * place + 5: service.get("/api/now")["n_rows"] == rows)
        assert resident(service.process.pid) - before < 50e6  # of answers that nobody reads
        for client in held:
            client.close()


def test_a_burst_of_half_requests_takes_no_place_of_a_whole_one(config):
    many = 20
    half = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"
    with Service(config(server=f'timeout = "60s"\nconnections = {many}')) as service:
        with contextlib.ExitStack() as stack:
            held = []
            for _ in range(10 * many):  # more than are let in, all at once
                client = socket.create_connection(("127.0.0.1", service.port), timeout=30)
                client.sendall(half)
                held.append(stack.enter_context(client))
            assert service.post(observed(5))["taken"] == 5
            for client in held[: -2 * many]:  # which have made room: nobody is answered 503
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(100) == b""
        assert service.end() == ""


def test_who_reads_no_answer_is_closed(config):
    with Service(config(server='timeout = "2s"')) as service:
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(b"GET /plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(4)
            client.settimeout(30)
            read = bytearray()
            with contextlib.suppress(ConnectionResetError):
                while part := client.recv(1 << 20):
                    read += part
        whole = int(re.search(rb"content-length: ([0-9]+)", read)[1])
        assert 0 < len(read) < whole


def listens(port):
    """Whether anybody takes connections on a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except ConnectionRefusedError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_end_with_their_parent_and_all_is_written(config, workers):
    path = config(server=f"workers = {workers}")
    with Service(path) as service:
        service.post(observed(30))
        mine = children(service.process.pid) if workers > 1 else []
        time.sleep(3 if workers == 1 else 0)  # in which one alone has written
        service.end(signal.SIGKILL)
        until(lambda: not listens(service.port), seconds=30)
        until(lambda: not any(is_running(pid) for pid in mine), seconds=30)
    assert stored(path) == 30


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_wrong_with_the_store_is_told_once(config, workers):
    path = config(server=f"workers = {workers}")
    with settings(path).live():
        pass
    path.write_text(path.read_text().replace('auc = "ROCAUC"', 'auc = "ROCAUC(max_bins=64)"'))
    command = [sys.executable, "-m", "streammetrics", "live", "serve", str(path), "--port"]
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    done = subprocess.run(
        [*command, str(port)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("is of another configuration") == 1
    assert "Traceback" not in done.stderr


def test_it_says_that_it_serves_when_it_listens(config):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "streammetrics", "live", "serve", str(config())]
    with subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"serving on http://127.0.0.1:%d/\n" % port
        assert listens(port)
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize(("words", "workers"), [(("--port", "0"), 2), ((), 1)])
def test_of_port_0_it_says_which_one_it_has(config, words, workers):
    path = config(server=f"workers = {workers}\nport = {8000 if words else 0}")
    command = [sys.executable, "-m", "streammetrics", "live", "serve", str(path), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told = re.fullmatch(r"serving on (http://127\.0\.0\.1:(\d+)/)\n", process.stdout.readline())
        try:
            assert int(told[2]) not in {0, 8000}
            with urllib.request.urlopen(f"{told[1]}health", timeout=30) as answer:
                assert json.load(answer)["status"] in {"ok", "starting"}
        finally:
            process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_history_is_folded_when_the_service_ends(config, tmp_path):
    with Service(config()) as service:
        service.post(observed(50))
        service.end()
    with sqlite3.connect(tmp_path / "live.db") as db:
        ((left,),) = db.execute(
            "select count(*) from journal where seq > (select through from base)"
        )
    assert left == 0
