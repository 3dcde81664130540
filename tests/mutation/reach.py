"""Which functions of the package each test calls, and how long it takes: measured once."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from functools import _lru_cache_wrapper, reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from mutants import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pytest

PACKAGE = str(ROOT / "streammetrics") + os.sep


def key_of(code: CodeType) -> str:
    """Return what a function is called here: its file and its name in it."""
    return f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"


class Reach(NamedTuple):
    """What was measured: seconds of tests that passed, and which of them call each function."""

    seconds: dict[str, float]
    callers: dict[str, list[str]]

    def plus(self, other: Reach) -> Reach:
        """Return what was measured together."""
        callers = {
            function: [*self.callers.get(function, ()), *other.callers.get(function, ())]
            for function in self.callers.keys() | other.callers.keys()
        }
        return Reach({**self.seconds, **other.seconds}, callers)

    def tests(self, items: Sequence[pytest.Item], functions: Iterable[str]) -> list[pytest.Item]:
        """Return the tests that call one of the functions, fastest first."""
        calling = {name for function in functions for name in self.callers.get(function, ())}
        chosen = [item for item in items if item.nodeid in calling]
        return sorted(chosen, key=lambda item: self.seconds[item.nodeid])


class Warm:
    """What this process holds of the package: its functions by file, and its caches."""

    def __init__(self) -> None:
        self.functions: dict[str, list[FunctionType]] = {}
        self.caches: list[Callable[[], Any]] = []
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(PACKAGE):
                self.functions.setdefault(thing.__code__.co_filename, []).append(thing)
            elif isinstance(thing, _lru_cache_wrapper) and _is_ours(thing):
                self.caches.append(thing.cache_clear)
        for name, module in list(sys.modules.items()):
            known = vars(module).get("_KNOWN") if name.startswith("streammetrics.") else None
            if isinstance(known, dict):
                self.caches.append(known.clear)

    def forget(self) -> None:
        """Empty the caches, so that a test calls what it calls when it runs alone."""
        for clear in self.caches:
            clear()


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("streammetrics.")


def run(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run a test; return whether it passed."""
    before = item.session.testsfailed
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    return item.session.testsfailed == before


def measured(items: Sequence[pytest.Item], warm: Warm, processes: int) -> Reach:
    """Run all tests, files spread over processes forked from here, and return what they reach."""
    files = list(dict.fromkeys(item.path for item in items))
    with tempfile.TemporaryDirectory() as folder:
        pids = []
        for number in range(processes):
            share = set(files[number::processes])
            pid = os.fork()
            if not pid:
                _measure([i for i in items if i.path in share], warm, Path(folder, f"{number}"))
            pids.append(pid)
        for pid in pids:
            _, status = os.waitpid(pid, 0)
            if status:
                raise RuntimeError(f"measuring ended with {os.waitstatus_to_exitcode(status)}")
        parts = [Reach(*json.loads(path.read_text())) for path in sorted(Path(folder).iterdir())]
    return reduce(Reach.plus, parts)


def _measure(items: Sequence[pytest.Item], warm: Warm, path: Path) -> None:
    """Run tests in this process, write what they reach, and end it."""
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(2):
            os.dup2(quiet, stream)
        found = Reach({}, {})
        reached: dict[int, CodeType] = {}

        def called(frame: Any, event: str, argument: Any) -> None:
            reached[id(frame.f_code)] = frame.f_code

        for item, following in zip(items, [*items[1:], None], strict=True):
            warm.forget()
            reached.clear()
            threading.settrace(called)
            sys.settrace(called)
            start = time.process_time()
            passed = run(item, following)
            took = time.process_time() - start
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]  # as the documentation has it
            if not passed:
                continue
            found.seconds[item.nodeid] = round(took, 4)
            functions = {key_of(c) for c in reached.values() if c.co_filename.startswith(PACKAGE)}
            for function in functions:
                found.callers.setdefault(function, []).append(item.nodeid)
        path.write_text(json.dumps(found))
        code = 0
    finally:
        os._exit(code)
