"""The house: imports go one way, from the top floor down, and nowhere in a circle."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeVar, get_args

import pytest

import streammetrics

ROOT = Path(streammetrics.__file__).parent
FLOORS = (
    {"core", "_command"},  # the one file beside the rooms: what Ctrl-C does while NumPy loads
    {"statistics"},
    {"metrics"},
    {"ledger", "slices", "inference", "readers"},
    {"engines", "live", "show"},
    {"streammetrics", "authoring", "testing"},  # the faces of the package: names of all floors
    {"cli"},
    {"__main__"},
)
# Inside functions, each for its reason: what needs an extra, or is slow to load where a worker or
# an interrupted command must start at once.
LATE = {
    "streammetrics": {"streammetrics.core.names"},
    "streammetrics.cli": {"streammetrics.cli.exit"},
    "streammetrics.cli.live": {"streammetrics.live.service.running"},
    "streammetrics.cli.live_consume": {"streammetrics.live.consuming.consumer"},
    "streammetrics.live.live": {
        "streammetrics.live.service.app",
        "streammetrics.live.service.server",
    },
    "streammetrics.engines.local": {
        "streammetrics.engines.processes",
        "streammetrics.engines.threads",
        "streammetrics.readers.formats",
        "streammetrics.readers.paths",
    },
}


def module_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def floor_of(module):
    room = module.split(".")[min(1, module.count("."))]
    return next(level for level, rooms in enumerate(FLOORS) if room in rooms)


def imported(node):
    """Return the modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        named = [alias.name for alias in node.names]
    else:
        # `from package import module` names a module as well as `from module import name` does.
        inside = [f"{node.module}.{alias.name}" for alias in node.names]
        named = [name if name in MODULES else node.module for name in inside]
    return {name for name in named if name.partition(".")[0] == "streammetrics"}


def imports_of(node, *, inside=False):
    """Return pairs of a module that is imported and whether that happens inside a function."""
    inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from ((name, inside) for name in imported(child))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from imports_of(child, inside=inside)


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def imports():
    return {module: sorted(imports_of(parsed(path))) for module, path in MODULES.items()}


def test_every_room_has_its_floor():
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set().union(*FLOORS)


def test_imports_run_down(imports):
    up = [
        (module, name)
        for module, found in imports.items()
        for name, _ in found
        if floor_of(name) > floor_of(module)
    ]
    assert not up


def test_there_is_no_circle(imports):
    # A package is its modules' roof: importing one of them runs its `__init__` first.
    graph = {
        module: {name for name, _ in found if name != module and not module.startswith(f"{name}.")}
        for module, found in imports.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' -> '.join(error.args[1])}")


def test_there_is_no_circle_of_rooms(imports):
    """Nor of the files and folders in any folder, but for what waits inside a function."""
    for folder in {parent for path in MODULES.values() for parent in path.parents}:
        if not folder.is_relative_to(ROOT):
            continue
        graph = {}
        for module, found in imports.items():
            for name, inner in found:
                pair = [MODULES[each] for each in (module, name)]
                if inner or not all(path.is_relative_to(folder) for path in pair):
                    continue
                start, end = (path.relative_to(folder).parts[0] for path in pair)
                if start != end and "__init__.py" not in {start, end}:
                    graph.setdefault(start, set()).add(end)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(f"{folder}: imports in a circle: {' -> '.join(error.args[1])}")


def test_no_other_import_waits_inside_a_function(imports):
    late = {
        module: {name for name, inner in found if inner}
        for module, found in imports.items()
        if any(inner for _, inner in found)
    }
    assert late == LATE


METRICS = [
    thing
    for thing in (getattr(streammetrics, name) for name in streammetrics.__all__)
    if inspect.isclass(thing) and issubclass(thing, streammetrics.Metric)
    if thing is not streammetrics.Metric
]


def test_families_are_flat():
    for metric in METRICS:
        above = [cls for cls in metric.__mro__[1:] if cls.__module__.startswith("streammetrics.")]
        assert len(above) <= 5, f"{metric.__name__} is {above}"


def test_every_metric_says_what_its_value_is():
    """What mypy makes of it is checked by itself, in tests/typing."""
    for metric in METRICS:
        said = [
            argument
            for cls in metric.__mro__
            for base in cls.__dict__.get("__orig_bases__", ())
            for argument in get_args(base)
            if not isinstance(argument, TypeVar)
        ]
        assert len(said) == 1, f"{metric.__name__} says {said}"


def test_files_are_as_long_as_a_concept():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in ROOT.rglob("*.py")
        if (lines := path.read_text("utf-8").count("\n")) > 1000
    }
    assert not long


# Both are users' own words, or the field's: a constraint and an alert, a field and a metric.
TWICE = {"Above", "Coverage", "Sample", "Sum"}


def test_a_class_of_one_name_stands_in_one_room():
    names = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == TWICE


def test_no_test_reaches_inside_a_metric():
    inside = re.compile(r"\._(accumulator|read)\b")
    tests = Path(__file__).parent.rglob("test_*.py")
    assert [path.name for path in tests if inside.search(path.read_text("utf-8"))] == []


def test_files_of_tests_have_names_of_their_own():
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []  # pytest imports them so


def test_the_page_on_extending_says_what_is_in_every_room():
    page = (ROOT.parent / "docs/extending.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\S+/)` \|.+\| (.+) \|$", page, re.MULTILINE)
    rooms = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("*/__init__.py")}
    assert {room.split("/")[0] for room, _ in rows} == rooms
    for room, examples in rows:
        for name in re.findall(r"`(\S+(?:\.py|/))`", examples):
            assert (ROOT / room / name).exists(), (room, name)
