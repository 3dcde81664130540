"""The public names: loaded when they are used, and the same for people and for type checkers.

``python tests/test_names.py`` writes the stub that type checkers and editors read.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path

import pytest

import streammetrics as sm
from streammetrics.core.registry import HOOKS, PUBLIC, class_named

STUB = Path(sm.__file__).with_suffix(".pyi")


def stub():
    """Return what type checkers and editors read."""
    lines = ['"""The public names, as `streammetrics/core/registry.py` lists them."""', ""]
    for module in sorted(set(PUBLIC.values())):
        names = sorted(name for name in PUBLIC if PUBLIC[name] == module)
        lines += [f"from streammetrics.{module} import {name} as {name}" for name in names]
    lines.append("from streammetrics import live as live")
    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", ""])


def fresh(code):
    """Return what code prints in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_type_checkers_read_the_same_names():
    assert STUB.read_text("utf-8") == stub(), "run: python tests/test_names.py"


def test_every_name_stands_in_the_module_that_the_registry_says():
    for name, module in PUBLIC.items():
        thing = getattr(sm, name)
        own = "streammetrics" if name == "from_bytes" else f"streammetrics.{module}"
        assert thing.__module__ == own, name
    assert dir(sm) == sorted([*PUBLIC, "__all__", "__doc__", "__file__", "__version__"])


def test_every_metric_that_can_be_made_is_public():
    for module in {module for module in PUBLIC.values() if module.startswith("metrics.")}:
        things = vars(importlib.import_module(f"streammetrics.{module}")).items()
        made = {
            name
            for name, thing in things
            if inspect.isclass(thing) and issubclass(thing, sm.Metric) and name[0] != "_"
            if thing.__module__ == f"streammetrics.{module}" and not inspect.isabstract(thing)
        }
        assert made <= PUBLIC.keys(), module


def test_importing_the_package_loads_almost_nothing():
    code = "import sys, streammetrics; print(*[m for m in sys.modules if 'numpy' in m])\n"
    code += "print(sum(m.startswith('streammetrics') for m in sys.modules))"
    numpy, own = fresh(code).splitlines()
    assert numpy == ""
    assert int(own) < 10


def test_a_metric_loads_what_it_needs_and_no_other_room():
    code = "import sys, streammetrics as sm; sm.F1().update([0, 1], [0, 1]).compute()\n"
    code += "own = [m.split('.') for m in sys.modules if m.startswith('streammetrics.')]\n"
    code += "print(*sorted({parts[1] for parts in own}))"
    assert fresh(code).split() == ["_command", "core", "metrics", "statistics"]


def test_star_imports_and_misspelt_names():
    assert fresh("from streammetrics import *; print(F1().compute.__name__)") == "compute\n"
    with pytest.raises(AttributeError, match="no attribute 'AUROC'; did you mean 'ROCAUC'"):
        sm.AUROC  # noqa: B018 - it raises
    assert not hasattr(sm, "__wrapped__")


@pytest.mark.parametrize("name", ["F1", "MetricSet", "Ledger", "Live", "Slices", "UnitSet"])
def test_a_state_is_read_where_nothing_else_has_been_imported(name, tmp_path):
    suite = sm.MetricSet({"f1": sm.F1()})
    made = {
        "F1": sm.F1(), "MetricSet": suite, "Ledger": sm.Ledger(sm.F1()), "Live": sm.Live(suite),
        "Slices": sm.Slices(suite, by=["c"]), "UnitSet": sm.MetricSet({"f1": sm.F1()}, unit="u"),
    }[name]  # fmt: skip
    made.save(tmp_path / "state")
    code = f"import streammetrics as sm; print(type(sm.load({str(tmp_path / 'state')!r})).__name__)"
    assert fresh(code).strip() == name
    assert class_named(name) is type(made)


def test_what_is_no_state_imports_nothing():
    assert class_named("auc") is None
    assert class_named("os") is None
    assert class_named("streammetrics.cli") is None


class Mine(sm.Accuracy):
    """A metric of a user's."""


def named_in(pickled):
    """Return the modules and names that a pickle imports."""
    strings = [arg for op, arg, _ in pickletools.genops(pickled) if isinstance(arg, str)]
    return {s for s in strings if s.startswith(("streammetrics", __name__))}


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_names_from_bytes_and_a_users_own_classes(protocol):
    suite = sm.MetricSet({"f1": sm.F1(), "auc": sm.ROCAUC()})
    for made in (sm.F1(), suite, sm.Ledger(suite), sm.Live(suite), sm.Slices(suite, by=["c"])):
        blob = pickle.dumps(made, protocol)
        assert {s.split()[0] for s in named_in(blob)} == {"streammetrics"}
        assert pickle.loads(blob) == made
    blob = pickle.dumps(sm.MetricSet({"mine": Mine()}), protocol)
    assert {s.split()[0] for s in named_in(blob)} == {"streammetrics", __name__}
    assert type(pickle.loads(blob)["mine"]) is Mine


def test_hooks_name_modules_that_register_something():
    code = "import streammetrics as sm; print(sm.F1().update([0, 1], [0, 1]).confidence().method)"
    assert fresh(code).strip() == sm.F1().update([0, 1], [0, 1]).confidence().method
    assert set(HOOKS) == {"limits", "pictures", "reports"}


if __name__ == "__main__":
    STUB.write_text(stub(), "utf-8")
