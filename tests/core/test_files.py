"""Saving: the old file or the new one, whoever is killed and when, and one writer at a time."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import streammetrics as sm
from streammetrics.core.state import files

SAVER = """
import sys, streammetrics as sm
path, count = sys.argv[1:]
states = [sm.from_bytes(open(f"{path}.{i}", "rb").read()) for i in range(2)]
print("ready", flush=True)
for i in range(int(count)):
    states[i % 2].save(path)
"""
ADDER = """
import sys, streammetrics as sm
from streammetrics.core.state.files import locked
path, name = sys.argv[1:]
for i in range(5):
    with locked(path):
        ledger = sm.load(path)
        ledger.add(f"{name}-{i}", sm.Count().update([1.0]))
        ledger.save(path)
"""


def python(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(".")]


def test_what_was_saved_is_loaded(tmp_path):
    path = tmp_path / "a.state"
    suite = sm.MetricSet({"mean": sm.Mean()}).update(values=[1.0, 2.0])
    for what in (sm.Mean().update([2.0]), suite, sm.Ledger().add("a", suite)):
        assert what.save(path) is None
        assert sm.load(path) == what
        assert sm.load(str(path)) == what
        assert path.read_bytes() == what.to_bytes()
    assert os.listdir(tmp_path) == ["a.state"]


def test_what_cannot_be_read_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        sm.load(tmp_path / "none")
    (tmp_path / "cut").write_bytes(sm.Mean().to_bytes()[:-1])
    with pytest.raises(sm.StateFormatError, match="cut: the checksum does not match"):
        sm.load(tmp_path / "cut")


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.state"
    sm.Mean().save(path)
    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(files.os, call, refusal)
            with pytest.raises(OSError, match="the disk is full"):
                sm.Count().save(path)
        assert sm.load(path) == sm.Mean()
        assert os.listdir(tmp_path) == ["a.state"]
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        sm.Mean().save(folder)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sm.Mean().save(tmp_path / "nowhere" / "a.state")


def refusal(*_):
    raise OSError(28, "the disk is full")


def test_permissions_are_the_usual_ones_and_stay(tmp_path):
    path, usual = tmp_path / "a.state", tmp_path / "usual"
    usual.touch()
    sm.Mean().save(path)
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o640)
    sm.Mean().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files")
def test_owner_and_group_stay(tmp_path):
    path = tmp_path / "a.state"
    sm.Mean().save(path)
    os.chown(path, 1234, 1235)
    path.chmod(0o640)
    sm.Mean().update([1.0]).save(path)
    told = path.stat()
    assert (told.st_uid, told.st_gid, stat.S_IMODE(told.st_mode)) == (1234, 1235, 0o640)


def test_a_link_stays_a_link(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "a.state")
    for what in (sm.Mean(), sm.Count()):
        what.save(link)
        assert link.is_symlink()
        assert sm.load(folder / "a.state") == what
    assert os.listdir(folder) == ["a.state"]


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    thread = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    thread.start()
    sm.Mean().save(pipe)
    thread.join()
    assert sm.from_bytes(read[0]) == sm.Mean()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_names_of_any_length(tmp_path):
    for name in ("x" * 255, os.fsdecode("é".encode() * 127)):  # in any locale
        sm.Mean().save(tmp_path / name)
    assert len(os.listdir(tmp_path)) == 2


def killed_saves(path, kills, seed=0):
    """Kill savers at random moments; return how many left something behind."""
    rng = random.Random(seed)
    states = [sm.Sum().update([float(i)] * 3).to_bytes() for i in range(2)]
    for i, blob in enumerate(states):
        pathlib.Path(f"{path}.{i}").write_bytes(blob)
    pathlib.Path(path).write_bytes(states[0])
    left = 0
    for _ in range(kills):
        saver = python(SAVER, path, 10**9)
        saver.stdout.readline()
        time.sleep(rng.random() * 0.05)
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        assert pathlib.Path(path).read_bytes() in states
        assert len(hidden(path.parent)) <= 1  # what this one may have left, not those before it
        left += bool(hidden(path.parent))
    sm.from_bytes(states[0]).save(path)
    assert not hidden(path.parent)
    return left


@pytest.mark.long
def test_a_saver_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    killed_saves(tmp_path / "a.state", 2)


@pytest.mark.long
def test_savers_that_are_killed_often(tmp_path):
    assert killed_saves(tmp_path / "a.state", 60, seed=1) > 0


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    path = tmp_path / "a.state"
    for number in (0, 1, 2):
        pathlib.Path(files._beside(str(path), f"{number}.tmp")).write_bytes(b"cut off")
    name, handle = files._temporary(str(path), 0o666)
    assert hidden(tmp_path) == [os.path.basename(name)]
    sm.Mean().save(path)
    assert hidden(tmp_path) == [os.path.basename(name)]
    os.close(handle)
    sm.Mean().save(path)
    assert hidden(tmp_path) == []


def test_many_may_save_one_file_at_once(tmp_path):
    path = tmp_path / "a.state"
    states = [sm.Sum().update([float(i)]) for i in range(6)]
    threads = [
        threading.Thread(target=lambda what: [what.save(path) for _ in range(10)], args=[state])
        for state in states
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert sm.load(path) in states
    assert os.listdir(tmp_path) == ["a.state"]


@pytest.mark.long
def test_a_ledger_that_several_processes_read_change_and_write_keeps_every_shard(tmp_path):
    path = tmp_path / "l.state"
    sm.Ledger(sm.Count()).save(path)
    adders = [python(ADDER, path, name) for name in "abc"]
    for adder in adders:
        adder.communicate()
        assert adder.returncode == 0
    assert len(sm.load(path)) == 15
    assert os.listdir(tmp_path) == ["l.state"]


def test_a_lock_that_is_held_is_waited_for_and_then_given_up(tmp_path):
    path = tmp_path / "l.state"
    with files.locked(path):
        too_long = pytest.raises(TimeoutError, match="locked by another process for 0.05 s")
        with too_long, files.locked(path, timeout=0.05):
            pass
        with files.locked(tmp_path / "other"):
            pass
    with files.locked(path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_goes_with_the_process_that_held_it(tmp_path):
    path = tmp_path / "l.state"
    code = "import sys, time\nfrom streammetrics.core.state.files import locked\n"
    code += "with locked(sys.argv[1]): print('held', flush=True); time.sleep(100)"
    holder = python(code, path)
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with files.locked(path, timeout=0.05):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "kind"), [("", FileNotFoundError), ("a/", IsADirectoryError)])
def test_a_path_without_the_name_of_a_file_is_refused(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=f"the name of a file is needed: '{name}'"):
        sm.Sum().save(name)
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_told_of_by_the_path_that_was_asked_for(tmp_path):
    path = str(tmp_path / "nowhere" / "a.state")
    with pytest.raises(
        FileNotFoundError, match=r"No such file or directory: '.*/a\.state'$"
    ) as told:
        sm.Sum().save(path)
    assert told.value.filename == path


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("old", [None, 0o600, 0o640, 0o644, 0o400, 0o666])
def test_nobody_can_open_the_temporary_file_who_could_not_open_the_old_one(
    tmp_path, monkeypatch, umask, old
):
    path, opened = tmp_path / "a.state", []

    def opening(*args):
        handle = os.open(*args)
        opened.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return handle

    if old is not None:
        path.touch()
        path.chmod(old)
    seen = SimpleNamespace(**{**vars(os), "open": opening})
    before = os.umask(umask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", seen)
            sm.Mean().save(path)
    finally:
        os.umask(before)
    usual = 0o666 & ~umask
    assert opened[0] & ~(usual if old is None else old | stat.S_IRUSR | stat.S_IWUSR) == 0
    assert stat.S_IMODE(path.stat().st_mode) == (usual if old is None else old)
