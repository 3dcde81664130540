"""What survives: restarts, kill -9, other workers, full disks and locked files."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from benchmarks import replay_live
from live.events import START, joined, live
from live.worker import send, start, told
from thinning import some

import streammetrics as sm
from streammetrics.live import journal as journal_module
from streammetrics.live import store as store_module
from streammetrics.live.exporting.families import families
from streammetrics.live.store import StoreError, StoreWarning

# Where other threads are at work, which a child does not have.
FORKED = "ignore:This process .* is multi-threaded:DeprecationWarning"
LIMITS = resource.getrlimit(resource.RLIMIT_FSIZE)
pytestmark = pytest.mark.filterwarnings(FORKED)


def first(n):
    """Return the state of the first n events."""
    state = joined()
    for number in range(n):
        send(state, number)
    return state


@pytest.fixture
def path(tmp_path):
    return tmp_path / "live.db"


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(store_module, "_LEAST", 1)


def test_a_restart_goes_on_where_the_last_one_ended(path):
    for begin in range(0, 300, 100):
        with joined(store=path) as service:
            for number in range(begin, begin + 100):
                send(service, number)
    with joined(store=path) as service:
        assert service.to_bytes() == first(300).to_bytes()
        assert service.coverage("5min").labelled == 150


def test_every_worker_reads_the_whole_service(path):
    one, other = joined(store=path), joined(store=path)
    for number in range(200):
        send((one, other)[number % 2], number)  # predictions here, labels there
    one.flush()
    other.flush()
    assert one.to_bytes() == other.to_bytes() == first(200).to_bytes()
    assert one.coverage("5min").labelled == 100
    one.close()
    assert one.window("5min").n_rows == 100
    with pytest.raises(sm.StreamMetricsError, match="closed: it takes no more events"):
        one.observe(time=START, y_true=1, y_score=0.5)
    other.close()


def test_workers_that_start_together_share_one_file(tmp_path):
    def work(path, together):
        together.wait()
        with sm.Live(sm.Mean(), store=path) as one:
            one.observe(time=START, values=1.0)

    with ThreadPoolExecutor(6) as workers:
        for turn in range(12):
            path, together = tmp_path / f"{turn}.db", threading.Barrier(6)
            for done in [workers.submit(work, path, together) for _ in range(6)]:
                done.result()
            with sm.Live(sm.Mean(), store=path) as whole:
                assert whole.n_rows == 6


def test_folding_changes_nothing_and_bounds_the_file(path, often):
    one, late = joined(store=path), joined(store=path)
    for number in range(600):
        send(one, number)
        if number % 5 == 0:
            one.flush()
    one.close()
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from journal").fetchone()[0] < 60
        assert db.execute("select through from base").fetchone()[0] > 20
    assert late.to_bytes() == first(600).to_bytes()
    send(late, 600)
    late.close()
    for _ in range(5):
        joined(store=path).close()
    with joined(store=path) as service:
        assert service.to_bytes() == first(601).to_bytes()


@pytest.mark.parametrize(
    ("workers", "least"), [(16, 1 << 14), pytest.param(1000, 1 << 20, marks=pytest.mark.long)]
)
def test_workers_that_come_and_go_leave_nothing(path, workers, least, monkeypatch):
    monkeypatch.setattr(store_module, "_LEAST", least)
    sizes = []
    for number in range(workers):
        with sm.Live(sm.Mean(), store=path) as one:
            one.observe(time=START, values=number % 4)
        sizes.append(path.stat().st_size)
    assert max(sizes[workers // 2 :]) <= max(sizes[: workers // 2])
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from workers").fetchone() == (0,)
        assert db.execute("select count(*) from journal").fetchone()[0] < workers // 2
    with sm.Live(sm.Mean(), store=path) as whole:
        assert whole.n_rows == workers


def test_parts_are_taken_together_and_give_the_bytes_of_one(path):
    columns = [
        {"y_true": True, "y_score": 0.25},
        {"y_true": 1, "y_score": 1},
        {"y_true": [0, 1.0], "y_score": np.array([0.1, 0.7], np.float32)},
    ]
    whole = live()
    for place in range(9):
        some = columns[place % 3]
        times = [START + place] * 2 if place % 3 == 2 else START + place
        with live(store=path) as one:
            one.observe(time=times, **some)
        whole.observe(time=times, **some)
    with live(store=path) as read:
        assert read.to_bytes() == whole.to_bytes()


def test_what_is_counted_beside_the_state_survives_too(path, often):
    with joined(store=path) as service:
        service.observe(time=START + 7200, y_true=1, y_score=0.5)
        service.observe(time=START, y_true=1, y_score=0.5).flush()
        service.predict(id=1, time=START, y_score=0.5).label(id=1, time=START, y_true=1)
        service.flush()
    with joined(store=path) as service:
        found = service.coverage("5min")
        assert (found.predictions_refused, found.labels_refused, service.dropped) == (1, 1, 1)


def test_counters_of_a_process_start_at_zero(path, often):
    def counted(service):
        found = families(service._queries, "5min")
        refused = {sample.labels["kind"]: sample.value for sample in found["refused_events"]}
        return refused, found["dropped_rows"][0].value

    with joined(store=path) as service:
        service.observe(time=[START + 7200, START], y_true=[1, 1], y_score=[0.5, 0.5]).flush()
        service.predict(id=1, time=START, y_score=0.5).flush()
        first = counted(service)
        assert first == ({"predictions": 1, "labels": 0, "observations": 0}, 1)
        service._ingest.journal._load()  # as when others have folded the journal
        assert counted(service) == first
    with joined(store=path) as service:
        assert counted(service) == ({"predictions": 0, "labels": 0, "observations": 0}, 0)
        assert service.coverage("5min").predictions_refused == 1  # of the stream
        service.predict(id=1, time=START, y_score=0.5).flush()
        assert counted(service)[0]["predictions"] == 1


@pytest.mark.parametrize("durable", [False, True])
def test_refused_and_dropped_events_are_those_of_all_workers(path, often, durable):
    def counted(service):
        found = service.coverage("5min")
        return found.predictions_refused, found.labels_refused, service.dropped

    services = [joined(store=path, durable=durable) for _ in range(3)]
    for service in services:
        service.observe(time=START + 7200, y_true=1, y_score=0.5).flush()
    for service in services * 4:
        service._ingest.journal.tick()
    for number, service in enumerate(services, 1):
        for _ in range(number):
            service.predict(id=1, time=START, y_score=0.5).label(id=1, time=START, y_true=1)
            service.observe(time=START, y_true=1, y_score=0.5).flush()
        assert counted(service)[2] > 0
    for service in services:
        service.flush()
    assert [counted(service) for service in services] == [(6, 6, 6)] * 3
    services[0]._ingest.journal._load()  # as when others have folded the journal
    services[1]._ingest.journal._store.close()  # as `kill -9` would
    services[2].close()
    assert counted(services[0]) == (6, 6, 6)
    services[0].close()
    with joined(store=path) as service:
        assert counted(service) == (6, 6, 6)
        service.predict(id=1, time=START, y_score=0.5).flush()
        assert counted(service) == (7, 6, 6)
        assert service.copy().coverage("5min").predictions_refused == 7


def test_a_part_that_is_written_twice_counts_once(path):
    with joined(store=path) as service:
        send(service, 0)
        service.flush()
        keeper = service._ingest.journal
        with keeper._store.writing():
            keeper._store.put(keeper.worker, 1, b"the same number again")
    with joined(store=path) as service:
        assert service.to_bytes() == first(1).to_bytes()


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.long)])
def test_killed_at_any_moment_nothing_counts_twice_and_what_was_flushed_is_there(path, kills):
    dice, sent = random.Random(0), 0
    for _ in range(kills):
        worker, hears = start(path, range(sent, sent + 30_000))  # all within the tiers
        flushed = hears.recv()  # it is at work
        time.sleep(dice.random() * 0.3)
        worker.kill()
        flushed = max([flushed, *told(hears)])
        worker.join()
        with joined(store=path) as service:
            found = service.coverage("20min")
            n = found.predicted + found.labelled
            assert n > flushed
            assert service.to_bytes() == first(n).to_bytes()
        sent = n
        if sent > 5_000:
            path.unlink()
            sent = 0


@pytest.mark.parametrize("n", [400, pytest.param(5_000, marks=pytest.mark.long)])
def test_workers_of_one_file_give_the_bytes_of_one(path, n, often):
    workers = [start(path, range(place, n, 4)) for place in range(4)]
    with joined(store=path) as reader:
        while any(worker.is_alive() for worker, _ in workers):
            found = reader.coverage("20min")
            assert found.predicted == found.labelled + found.pending + found.expired
        assert [worker.exitcode for worker, _ in workers] == [0] * 4
        assert all(told(hears) for _, hears in workers)
        assert reader.to_bytes() == first(n).to_bytes()


def test_a_file_that_others_have_for_a_moment_is_tried_again_and_nobody_is_told(path, monkeypatch):
    monkeypatch.setattr(journal_module, "_TIMEOUT", 0.05)
    with joined(store=path) as service:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        send(service.flush(), 0)
        keeper = service.flush()._ingest.journal
        assert keeper.failures
        assert (keeper.trouble, keeper.waiting) == ("others hold the file", 1)
        other.execute("rollback")
        other.close()
        service.flush()
        assert keeper.waiting == 0


def test_a_locked_file_keeps_events_in_memory_until_it_is_free(path, monkeypatch):
    monkeypatch.setattr(journal_module, "PATIENCE", 0.0)
    monkeypatch.setattr(journal_module, "_BUSY", 0.0)
    with joined(store=path) as service:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        send(service, 0)
        with pytest.warns(StoreWarning, match="events are kept in memory"):
            service.flush()
        assert service.coverage("5min").predicted == 1
        with pytest.raises(sm.StreamMetricsError, match="would lose events"):
            service.close()
        send(service, 1)
        other.execute("rollback")
        other.close()
    with joined(store=path) as service:
        assert service.to_bytes() == first(2).to_bytes()


def test_closing_waits_for_events_to_be_written_and_for_nothing_else(path, monkeypatch):
    folds = []

    def busy(keeper, due):
        folds.append(keeper)
        raise sqlite3.OperationalError("database is locked")

    with joined(store=path) as service:
        send(service, 0)
        monkeypatch.setattr(journal_module.Journal, "_claim", busy)
    assert len(folds) == 1
    monkeypatch.undo()
    with joined(store=path) as service:
        assert service.to_bytes() == first(1).to_bytes()


def test_closing_waits_for_no_store_where_nothing_is_to_be_written(path):
    service = joined(store=path, durable=True)
    send(service, 0)
    path.rename(path.with_name("away.db"))
    assert not service._ingest.journal.try_to_write()
    begun = time.monotonic()
    service.close()
    assert time.monotonic() - begun < journal_module.PATIENCE / 2


def test_a_full_disk_loses_nothing(path):
    with joined(store=path) as service:
        db = service._ingest.journal._store._db
        (pages,) = db.execute("pragma page_count").fetchone()
        db.execute(f"pragma max_page_count={pages}")
        for number in range(3000):
            send(service, number)
        with pytest.warns(StoreWarning, match=r"full\): events are kept in memory"):
            service.flush()
        assert service.to_bytes() == first(3000).to_bytes()
        db.execute("pragma max_page_count=1000000")
    with joined(store=path) as service:
        assert service.to_bytes() == first(3000).to_bytes()


@pytest.mark.parametrize("step", ["put", "last", "writing"])
def test_who_interrupts_a_durable_call_is_refused_in_words(path, step, monkeypatch):
    """Numbers of parts are taken one after the other, so none is given to two of them."""
    with joined(store=path, durable=True) as service:
        send(service, 0)
        method, refused = getattr(store_module.Store, step), []

        def interrupted(self, *arguments):
            found = method(self, *arguments)
            with pytest.raises(sm.StreamMetricsError, match="in a thread of its own") as error:
                send(service, 2)
            refused.append(error)
            return found

        with monkeypatch.context() as patched:
            patched.setattr(store_module.Store, step, interrupted)
            send(service, 1)
        assert refused
        send(service, 2)
        assert service.to_bytes() == first(3).to_bytes()
    with joined(store=path) as service:
        assert service.to_bytes() == first(3).to_bytes()


def test_durable_calls_are_in_the_file_when_they_return(path):
    with joined(store=path, durable=True) as service, joined(store=path) as other:
        for number in range(12):
            send(service, number)
            assert other.to_bytes() == first(number + 1).to_bytes()
        service.observe(time=[START], y_true=[1], y_score=[0.5])
        assert other.n_rows == 7


@pytest.mark.parametrize("name", ["live.db", "live.db-wal"])
@pytest.mark.parametrize("damage", ["delete", "empty", "replace"])
def test_a_damaged_file_is_noticed_before_an_event_is_said_to_be_in_it(path, name, damage):
    with joined(store=path, durable=True) as service:
        send(service, 0)
        file = path.with_name(name)
        kept = file.read_bytes()
        with file.open("r+b") as opened:  # so that no new file takes its number
            if damage == "empty":
                opened.truncate(0)
            else:
                file.unlink()
            if damage == "replace":
                file.write_bytes(kept)
            words = "was deleted|has its place|was cut off or replaced"
            for _ in range(2):
                with pytest.raises(StoreError, match=words) as told:
                    send(service, 1)
                assert "in a second" not in str(told.value)  # that would not help
            keeper = service._ingest.journal
            keeper.try_to_write()
            assert keeper.is_gone
            keeper._failed(sqlite3.OperationalError("disk I/O error"))  # as of a log that was cut
            assert keeper.is_gone
            assert service.to_bytes() == first(1).to_bytes()
        keeper.drop()  # what closing would do with a file that is gone
        service._ingest.journal = None


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("workers", some([2, 1, 3]))
def test_without_its_log_closing_saves_all(path, often, workers, durable):
    services = [joined(store=path, durable=durable) for _ in range(workers)]
    for number in range(60):
        send(services[number % workers], number)
        services[number % workers].flush()
    path.with_name("live.db-wal").unlink()
    n = 60
    if not durable:
        for service in services:
            send(service, n)
            n += 1
    for service in services:
        service._ingest.journal.tick()
        assert service._ingest.journal.trouble.endswith("restart the service, which saves all")
    for service in services:
        with nullcontext() if durable else pytest.warns(StoreWarning, match="was deleted"):
            service.close()
    with joined(store=path) as again:
        assert again.to_bytes() == first(n).to_bytes()


def test_events_that_come_together_are_in_the_file_together_or_not_at_all(path):
    send(before := joined(store=path), 0)
    before.close()
    for error in (KeyboardInterrupt, sm.InvalidBatchError):
        service = joined(store=path, durable=True)

        def fails(service=service, error=error):
            with service._ingest.journal.all_or_none():
                for number in range(1, 200):
                    send(service, number)
                service._ingest.journal.try_to_write()  # as its thread does each second
                raise error("in the middle")

        with pytest.raises(error):
            fails()
        with joined(store=path) as other:
            assert other.to_bytes() == first(1).to_bytes()
    with joined(store=path, durable=True) as service:
        with service._ingest.journal.all_or_none():
            for number in range(1, 200):
                send(service, number)
            with joined(store=path) as other:
                assert other.to_bytes() == first(1).to_bytes()
        send(service, 200)
        service.flush()
        with joined(store=path) as other:
            assert other.to_bytes() == first(201).to_bytes()


def test_what_is_no_store_of_this_configuration(path, tmp_path):
    joined(store=path).close()
    with pytest.raises(sm.IncompatibleMetricsError, match="label_ttl is 5min there and 1d here"):
        live(store=path)
    other = tmp_path / "other.db"
    other.write_bytes(b"no database at all, and longer than a header of SQLite" * 50)
    with pytest.raises(sm.StateFormatError, match="not a streammetrics store"):
        joined(store=other)
    with sqlite3.connect(tmp_path / "foreign.db") as db:
        db.execute("create table t (x)")
    db.close()
    with pytest.raises(sm.StateFormatError, match="is a database, but not a streammetrics store"):
        joined(store=tmp_path / "foreign.db")
    with sqlite3.connect(path) as db:
        db.execute("pragma user_version=9")
    db.close()
    with pytest.raises(sm.StateFormatError, match="has format 9; this version reads"):
        joined(store=path)
    with pytest.raises(FileNotFoundError, match="no folder for the store"):
        joined(store=tmp_path / "nowhere" / "live.db")


@pytest.mark.parametrize("table", ["journal", "parts", "documents"])
def test_a_store_with_a_damaged_state_is_told_by_its_name(path, table):
    with sm.Live(sm.Mean(), store=path) as state:
        state.observe(time=START, values=1.0)
    if table == "journal":
        other = sm.Live(sm.Mean(), store=path).observe(time=START, values=1.0).flush()
        assert other.n_rows == 2
    with sqlite3.connect(path) as db:
        changed = db.execute(f"update {table} set blob = substr(blob, 1, length(blob) / 2)")
        assert changed.rowcount
    with pytest.raises(sm.StateFormatError, match=r"the store .*live.db is damaged: "):
        sm.Live(sm.Mean(), store=path)


def test_a_store_without_room_is_told_by_its_name(path):
    code = (
        "import resource, sys, streammetrics as sm\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n"
        "try: sm.Live(sm.Mean(), store=sys.argv[1])\n"
        "except sm.StreamMetricsError as error: print(error)"
    )
    words = [sys.executable, "-c", code, str(path)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert told.startswith(f"the store {path} cannot be opened (")
    assert "has room" in told


def test_a_store_of_a_version_with_other_columns_is_told_and_left(path):
    joined(store=path).close()
    with sqlite3.connect(path) as db:
        db.execute("alter table base drop column claimed")
    db.close()
    before = path.read_bytes()
    with pytest.raises(sm.StateFormatError, match=r"another version, without base.claimed: open"):
        joined(store=path)
    assert path.read_bytes() == before


def test_a_live_with_a_store_is_neither_reset_nor_merged_into(path):
    with joined(store=path) as service:
        with pytest.raises(sm.StreamMetricsError, match="not reset"):
            service.reset()
        with pytest.raises(sm.StreamMetricsError, match="takes events, not states"):
            service.merge(first(3))
        assert joined().merge(service) == service


def test_a_forked_process_is_a_worker_of_its_own(path):
    service = joined(store=path)
    send(service, 0)
    child = os.fork()
    if child == 0:
        try:
            send(service, 1)
            service.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    send(service, 2)
    service.flush()
    assert service.to_bytes() == first(3).to_bytes()
    service.close()


def test_rows_that_contradict_those_of_another_worker_are_left_out_and_counted(path, undeclared):
    one, other = live(store=path), live(store=path)
    one.observe(time=START, y_true=0, y_score=0.5)
    other.observe(time=START, y_true=-1, y_score=0.5).observe(time=START, y_true=1, y_score=0.5)
    one.flush()
    other.flush()
    with pytest.warns(UserWarning, match="contradict those of other workers .* counted") as told:
        one.window("5min")
    assert [warning.filename for warning in told] == [__file__]
    assert (one.window("5min").n_rows, one.coverage("5min").observations_refused) == (2, 1)
    with pytest.warns(UserWarning, match="contradict those of other workers .* counted"):
        other.window("5min")
    for service in (one, other):
        service.close()


def test_a_store_is_not_opened_with_another_declaration(path):
    with live(store=path) as service:
        service.observe(time=START, y_true=0, y_score=0.5)
    with pytest.raises(
        sm.IncompatibleMetricsError, match=r"labels is \[0, 1\] there and \[-1, 1\]"
    ):
        live(store=path, labels=[-1, 1])
    with live(store=path, labels=[1, 0]) as service:
        assert service.window("5min").n_rows == 1


def test_of_a_part_only_the_rows_are_left_out_that_contradict_others(path, undeclared):
    one, other = live(store=path), live(store=path)
    one.predict(id=0, time=START, y_score=0.5).label(id=0, time=START, y_true=0)
    ids, times = list(range(1, 10)), [START] * 9
    other.predict(id=ids, time=times, y_score=[0.5] * 9)
    other.label(id=ids[:2], time=times[:2], y_true=[1, -1])
    one.flush()
    other.flush()
    with pytest.warns(UserWarning, match="contradict those of other workers .* counted"):
        found = one.coverage("5min")
    assert (found.predicted, found.labelled, found.labels_refused) == (10, 2, 1)
    assert one.window("5min").n_rows == 2
    with pytest.warns(UserWarning, match="contradict those of other workers .* counted"):
        other.window("5min")
    for service in (one, other):
        service.close()


def test_a_warning_of_the_store_points_at_who_reads(path):
    with joined(store=path) as service:
        send(service, 0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("pragma locking_mode=exclusive")
        service._ingest.journal.try_to_write()
        service._ingest.journal._failed(sqlite3.OperationalError("no more room"))
        with pytest.warns(StoreWarning, match="no more room") as told:
            service.window("5min")
        assert [warning.filename for warning in told] == [__file__]
        other.close()


@pytest.mark.long
def test_several_processes_replay_a_day_into_the_bytes_of_one(tmp_path):
    assert replay_live.replayed(tmp_path / "live.db", 200_000) == replay_live.whole(200_000)


@pytest.mark.long
def test_a_real_full_disk_loses_nothing(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        if not mounted:  # who may not mount has a limit on the size of files instead
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, LIMITS[1]))
        service = joined(store=disk / "live.db")
        n = 0
        while service._ingest.journal.try_to_write():
            for number in range(n, n + 5_000):
                send(service, number)
            n += 5_000
        with pytest.warns(StoreWarning, match="events are kept in memory"):
            service.flush()
        assert service.to_bytes() == first(n).to_bytes()
        assert sm.from_bytes(service.to_bytes()) == service
        make_room(disk, mounted)
        send(service, n)
        service.close()
        with joined(store=disk / "live.db") as again:
            assert again.to_bytes() == first(n + 1).to_bytes()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, LIMITS)
        if mounted:
            subprocess.run(["umount", str(disk)], check=True)


def make_room(disk, mounted):
    if mounted:
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, LIMITS)


@pytest.mark.parametrize("step", [-86_400, 10**8])
def test_a_clock_that_is_set_anew_changes_nothing(path, monkeypatch, often, step):
    real = time.time
    one, other = joined(store=path), joined(store=path)
    for number in range(300):
        if number == 100:  # of both, in the middle of their journals
            monkeypatch.setattr(time, "time", lambda: real() + step)
        send((one, other)[number % 2], number)
        if number % 7 == 0:
            (one, other)[number % 2].flush()
    one.close()
    other.close()
    monkeypatch.setattr(time, "time", real)
    with joined(store=path) as service:
        assert service.to_bytes() == first(300).to_bytes()


def test_a_worker_that_was_silent_for_long_is_not_counted_twice(path, monkeypatch, often):
    # Others forget a worker after two days: what it writes then is a part of its own.
    real = time.time
    one, other = joined(store=path), joined(store=path)
    send(one, 0)
    one.flush()
    monkeypatch.setattr(time, "time", lambda: real() + 7 * 86_400)
    for number in range(2, 60):
        send(other, number)
        other.flush()
    send(one, 1)
    one.close()
    other.close()
    with joined(store=path) as service:
        assert service.to_bytes() == first(60).to_bytes()


def test_two_services_on_one_file_by_mistake(path):
    with sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), store=path) as one:
        one.observe(time=START, y_true=1, y_score=0.5)
        for metrics, message in [
            ({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}, "is of another configuration: .*they dif"),
            ({"error": sm.MAE()}, "is of another configuration"),
        ]:
            with pytest.raises(sm.IncompatibleMetricsError, match=message):
                sm.Live(sm.MetricSet(metrics), store=path)
        with pytest.raises(
            sm.IncompatibleMetricsError, match="configuration: keep_rows is 0 there"
        ):
            sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), keep_rows=5, store=path)
        # One of the same metrics is a worker of one service: nothing tells them apart, and each
        # reads what both were told.
        with sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), store=path) as other:
            other.observe(time=START, y_true=0, y_score=0.25)
            other.flush()
            assert one.flush().window("1h").n_rows == other.window("1h").n_rows == 2


def test_a_store_that_is_nowhere_is_named(tmp_path):
    with pytest.raises(ValueError, match="store='': name a file, or None"):
        live(store="")
    with pytest.raises(FileNotFoundError, match="no folder for the store: .*missing"):
        live(store=tmp_path / "missing" / "live.db")
    with pytest.raises(IsADirectoryError, match="a store is a file"):
        live(store=tmp_path)


def test_a_store_keeps_events_of_which_a_column_holds_lists(path):
    boxes = [[[0, 0, 2, 2], [3, 3, 5, 5]], [], [[0, 0, 1, 1.5]]]
    images = {
        "true_boxes": boxes, "true_labels": [["cat", "dog"], [], ["cat"]],
        "pred_boxes": boxes, "pred_labels": [["cat", "cat"], [], ["cat"]],
        "pred_scores": [[0.5, 0.25], [], [0.75]],
    }  # fmt: skip
    types = {"true_labels": "text", "pred_labels": "text"}
    whole = sm.Live(sm.BoxAveragePrecision(), types=types)
    with sm.Live(sm.BoxAveragePrecision(), types=types, store=path) as service:
        for into in (service, whole):
            for first in range(3):
                some = {name: column[first : first + 1] for name, column in images.items()}
                into.observe(time=[START + first], **some)
            into.observe(time=[START + n for n in range(3)], **images)
        service.flush()
        with sm.Live(sm.BoxAveragePrecision(), types=types, store=path) as other:
            assert other.to_bytes() == whole.to_bytes()
    with sm.Live(sm.BoxAveragePrecision(), types=types, store=path) as again:
        assert again.to_bytes() == whole.to_bytes()
    with pytest.raises(ValueError, match="keep_rows holds rows of single values"):
        sm.Live(sm.SpanF1(), keep_rows=1)
