"""How a command ends: one line, an exit code, and never a traceback."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store
from scripts import started
from thinning import some

from streammetrics.cli import evaluate, main, states

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")
COMMAND = (sys.executable, "-m", "streammetrics")


@pytest.fixture
def path(tmp_path, binary):
    return store(binary, tmp_path / "t.parquet")


def in_shell(line, **more):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COMMAND": " ".join(COMMAND), **more},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_a_full_disk_behind_standard_output(path):
    evaluate = f"$COMMAND evaluate {path} {' '.join(BINARY)}"
    told = (2, "", "error: standard output: No space left on device\n")
    assert in_shell(f"{evaluate} > /dev/full") == told
    assert in_shell(f"{evaluate} --json /dev/full")[2] == (
        "error: /dev/full: cannot be written: No space left on device\n"
    )
    assert in_shell("$COMMAND --version > /dev/full 2>&1") == (2, "", "")
    for words in ("--version", "--help", "metrics"):
        told = (2, "", "error: standard output is closed\n")
        assert in_shell(f"$COMMAND {words} >&-") == told


@pytest.mark.long
def test_a_full_disk_behind_a_file_or_standard_input(path, tmp_path):
    limit = "ulimit -f 1 &&"  # KiB of every file that is written
    big = tmp_path / "big.parquet"
    rows = np.arange(9000)
    store(pa.table({"label": rows % 2, "score": np.sqrt(rows)}), big)
    roc = f"{' '.join(BINARY)} --metrics ROCAUC"
    code, out, err = in_shell(f"{limit} $COMMAND evaluate {big} {roc} --save {tmp_path}/state")
    assert (code, out) == (2, "")
    assert err == f"error: {tmp_path}/state: cannot be written: File too large\n"
    code, out, err = in_shell(
        f"{limit} $COMMAND evaluate - --input-format parquet {roc} < {big}", TMPDIR=str(tmp_path)
    )
    assert (code, out) == (2, "")
    assert err.startswith("error: standard input: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["big.parquet", path.name]


@pytest.mark.long
def test_a_pipe_that_nobody_reads_ends_quietly():
    code, out, err = in_shell("$COMMAND metrics MAP MRR BPref NDCG | true")
    assert (code, out, err) == (141, "", "")


def test_files_of_no_rows_still_leave_what_was_asked_for(command, tmp_path, binary):
    path = store(binary.slice(0, 0), tmp_path / "t.parquet")
    args = (path, *BINARY, "--save", tmp_path / "s", "--json", "-")
    code, out, err = command("evaluate", *args)
    assert (code, err) == (1, "error: no rows: nothing was measured\n")
    assert '"n_rows": 0' in out
    assert command("show", tmp_path / "s")[::2] == (1, "error: no rows: nothing was measured\n")


def test_rows_that_are_all_omitted_are_no_rows(command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("label,score\n1,\n0,NA\n")
    code, out, err = command("evaluate", path, *BINARY, "--param", "nan_policy=omit")
    assert (code, out) == (1, "")
    assert err == "error: no rows: all 2 lack a value and were omitted\n"


LOADING = """
import sys

class Tell:  # asked first for every module: says when NumPy is about to be loaded
    def find_spec(name, *_):
        if name == "numpy":
            print(flush=True)

sys.meta_path.insert(0, Tell)
sys.argv = ["streammetrics", *sys.argv[1:]]
from streammetrics.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("delay", "number", "line"),
    [
        (0.0, signal.SIGINT, "interrupted\n"),
        (0.1, signal.SIGINT, "interrupted\n"),
        (0.4, signal.SIGINT, "interrupted\n"),
        (0.0, signal.SIGTERM, "terminated\n"),
        (0.4, signal.SIGTERM, "terminated\n"),
    ],
)
def test_a_signal_while_everything_is_still_loading(tmp_path, delay, number, line):
    os.mkfifo(tmp_path / "a.csv")
    columns = ("--task", "regression", "--y-true", "a", "--y-pred", "b")
    process = started("-c", LOADING, "evaluate", tmp_path / "a.csv", *columns)
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", line)
    assert process.returncode == 128 + number


DROPPED = """
import ctypes, functools, operator, os, sys
sys.argv = ["streammetrics", *sys.argv[1:]]
from streammetrics.cli import main
term = functools.partial(ctypes.PyDLL(None)["raise"], 15)

def while_compiling():  # no bytecode runs between the two, so the compiler calls the handler
    list(map(operator.call, (term, functools.partial(compile, "x = 3 ** 60", "", "exec"))))

def while_finalizing():
    class Last:
        def __del__(self):
            term()
    Last()

def sync(file):
    os.fsync = lambda file: None
    globals()[os.environ["WHEN"]]()

os.fsync = sync
sys.exit(main())
"""


@pytest.mark.parametrize("when", some(["while_compiling", "while_finalizing"]))
def test_sigterm_is_not_forgotten_where_python_discards_exceptions(path, tmp_path, when):
    words = ["evaluate", path, *BINARY, "--save", tmp_path / "new.state"]
    done = subprocess.run(
        [sys.executable, "-c", DROPPED, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "WHEN": when},
    )
    assert (done.returncode, done.stderr.startswith("terminated\n")) == (143, True)
    assert list(tmp_path.iterdir()) in (  # whole or not at all
        [path],
        [path, tmp_path / "new.state"],
        [tmp_path / "new.state", path],
    )


CAUGHT = """
import os, signal, sys
sys.argv = ["streammetrics", *sys.argv[1:]]
from streammetrics.cli import exit, main
def run(words):
    try:
        signal.raise_signal(int(os.environ["NUMBER"]))
    except BaseException:
        pass  # as a library does whose import is interrupted
    raise AttributeError("partially initialized module")
exit._run = run
sys.exit(main())
"""


@pytest.mark.parametrize("number", some([signal.SIGINT, signal.SIGTERM]))
def test_what_fails_after_a_signal_that_a_library_caught_is_no_bug(number):
    env = {**os.environ, "NUMBER": str(int(number))}
    done = subprocess.run(
        [sys.executable, "-c", CAUGHT], capture_output=True, text=True, check=False, env=env
    )
    said = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n"}[number]
    assert (done.returncode, done.stderr) == (128 + number, said)


IN_A_WRITE = """
import os, sys
sys.argv = ["streammetrics", *sys.argv[1:]]
from streammetrics.cli import main
os.fsync = lambda file: os.kill(os.getpid(), int(os.environ["NUMBER"]))
sys.exit(main())
"""


@pytest.mark.parametrize("number", some([signal.SIGTERM, signal.SIGINT]))
def test_a_signal_leaves_no_file_half_written(path, tmp_path, number):
    words = ["evaluate", path, *BINARY, "--save", tmp_path / "new.state"]
    done = subprocess.run(
        [sys.executable, "-c", IN_A_WRITE, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBER": str(int(number))},
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (128 + number, "", 1)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), 2, "/tmp/x: No space left"),
        (MemoryError(), 2, "not enough memory: try fewer --workers or a smaller --param max_bins"),
        (None, 70, "a bug in streammetrics: TypeError: 'NoneType' object is not callable (states"),
    ],
)
def test_no_failure_is_a_traceback(monkeypatch, mistake_of, error, code, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(states, "state_of", error and fail)
    found, err = mistake_of("show", "state")
    assert found == code
    assert err.startswith(f"error: {line}")
    assert err.count("\n") == 1


@pytest.fixture
def mistake_of(capsys):
    def run(*arguments):
        code = main(arguments)
        return code, capsys.readouterr().err

    return run


def test_a_defect_shows_its_traceback_on_request(monkeypatch):
    def fail(*_, **__):
        raise KeyError("x")

    monkeypatch.setattr(states, "state_of", fail)
    monkeypatch.setenv("STREAMMETRICS_TRACEBACK", "1")
    with pytest.raises(KeyError, match="x"):
        main(["show", "state"])


def test_help_is_that_of_the_command(mistake):
    assert mistake("evaluate", "--y-scroe", "x").startswith(
        "No such option: --y-scroe; did you mean --y-score or"
    )
    assert mistake("evaluate", "--y-scroe", "x").endswith("; see streammetrics evaluate --help")
    assert mistake("merge", "a").endswith("; see streammetrics merge --help")
    assert mistake("evaluat").endswith("; see streammetrics --help")
    assert mistake("evaluate", "x", "--task").endswith("; see streammetrics evaluate --help")
    assert mistake("show", "x", "--json").endswith("; see streammetrics show --help")
    assert mistake("live", "serve", "--port").endswith("; see streammetrics live serve --help")


def test_format_says_which_it_could_be(mistake):
    line = mistake("evaluate", "x", *BINARY, "--format", "json")
    assert line.startswith("No such option: --format; did you mean --input-format or")


def test_an_unreadable_file_is_one_line(mistake, path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(evaluate, "opened", refuse)
    assert mistake("evaluate", path, *BINARY) == f"{path}: Permission denied"


def test_a_file_that_looks_like_an_option(mistake, command, tmp_path, binary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--task", "binary", "--y-true", "label", "--y-score", "score")
    for name in ("-dash.csv", "--dashes.csv"):
        store(binary, tmp_path / name)
        line = mistake("evaluate", name, *options)
        assert line.endswith(
            f"; for the file {name} write ./{name}; see streammetrics evaluate --help"
        )
        assert command("evaluate", f"./{name}", *options).code == 0


@pytest.mark.long
def test_a_refused_row_ends_the_process_at_once(tmp_path):
    """Arrow reads and parses ahead in threads that call Python: none may do so at the end."""
    (tmp_path / "ok.csv").write_text("label,score\n1,0.5\n0,0.2\n")
    (tmp_path / "words.csv").write_text("label,score\nyes,0.5\nno,0.2\n" * 500)
    words = "evaluate ok.csv words.csv --task multiclass --y-true label --y-pred label"
    command = [*COMMAND, *words.split()]
    runs = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(6)]
    for run in runs:
        _, said = run.communicate(timeout=60)
        assert (run.returncode, said.count(b"\n")) == (2, 1), said


SLOW = """
import sys, time
sys.argv[0] = "streammetrics"
from streammetrics.cli import main
from streammetrics.readers import delimited
delimited._AHEAD = 0.0  # as on a machine on which the other threads do not get a turn
read = delimited._Ended.read
def slow(self, size):
    time.sleep(0.2)
    return read(self, size)
delimited._Ended.read = slow
sys.exit(main())
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_process_ends_while_arrow_reads_ahead(tmp_path, workers):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("label,score\n1,0.5,3\n")
        for _ in range(8):
            file.write("1,0.5\n" * (1 << 20))
    process = started("-c", SLOW, "evaluate", path, *BINARY, "--workers", workers)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1), err
    assert "row 0 has 3 fields" in err


ENDING = """
import atexit, sys, threading
atexit.register(print, "finalized")
from streammetrics._command import end_at_exit, expect_foreign_threads
atexit.register(print, "written")
sys.stdout.write("unflushed\\n")
end_at_exit(3)
if "thread" in sys.argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
if "foreign" in sys.argv:
    expect_foreign_threads()
if "closed" in sys.argv:
    sys.stderr.close()
if "raises" in sys.argv:
    raise SystemExit(4)
"""


@pytest.mark.parametrize(
    ("words", "code", "more"),
    [
        ((), 0, "finalized\n"),
        (("thread",), 3, ""),
        (("foreign",), 3, ""),
        (("thread", "closed"), 3, ""),
        (("raises",), 4, "finalized\n"),
    ],
)
def test_daemon_threads_are_not_finalized(words, code, more):
    process = started("-c", ENDING, *words)
    assert process.communicate(timeout=60) == (f"unflushed\nwritten\n{more}", "")
    assert process.returncode == code
