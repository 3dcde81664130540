"""No public name without its example, its oracle, its laws and its entry in the docs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from oracles.table import ORACLES

import streammetrics as sm
from streammetrics import authoring, testing
from streammetrics.core.registry import REGISTRY

WITHOUT = "needs an extra: pip install 'streammetrics[engines,live,otel,plot]'"
ROOMS = ("engines.", "live.consuming.", "live.exporting.", "live.service.", "show.pictures.figure")
EXTRAS = tuple(f"streammetrics.{room}" for room in (*ROOMS, "core.kernels.build"))
DOCS = Path(__file__).parents[1] / "docs"
ENTRIES = (DOCS / "metrics.md").read_text("utf-8")
PUBLIC = {name: getattr(sm, name) for name in sm.__all__}
METRICS = {
    name: thing
    for name, thing in PUBLIC.items()
    if inspect.isclass(thing) and issubclass(thing, sm.Metric) and thing is not sm.Metric
}
MODULES = [module.name for module in pkgutil.walk_packages(sm.__path__, "streammetrics.")]


def test_names_are_sorted_out():
    assert len(set(sm.__all__)) == len(sm.__all__)
    assert all(thing.__doc__ for thing in PUBLIC.values() if callable(thing))


def test_every_metric_is_documented_and_tested():
    for name, metric in METRICS.items():
        doc = inspect.getdoc(metric)
        for part in ("\nExample:\n", ">>> ", "\nReference: "):
            assert part in doc, f"the docstring of {name} lacks {part!r}"
        family = [base.__doc__ or "" for base in metric.__mro__]  # where it may be said once
        assert any("    Memory and cost: " in text for text in family), f"{name}: what does it cost"
        assert f"### {name}\n" in ENTRIES, f"docs/metrics.md lacks {name}"
        assert any(type(oracle.metric) is metric for oracle in ORACLES), f"{name}: no oracle"


def test_what_is_around_metrics_is_documented():
    for name in sorted(PUBLIC.keys() - METRICS.keys() - {"Interval", "Metric"}):
        doc = inspect.getdoc(PUBLIC[name])
        assert doc, f"{name} has no docstring"
        if inspect.isclass(PUBLIC[name]) and issubclass(PUBLIC[name], Exception):
            continue
        assert ">>> " in doc, f"the docstring of {name} lacks an example"
        assert f"### {name}\n" in ENTRIES, f"docs/metrics.md lacks {name}"


def test_the_site_has_every_public_name_beside_the_metrics():
    listed = re.findall(r"^::: streammetrics\.(.+)$", (DOCS / "api.md").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(PUBLIC.keys() - METRICS.keys())
    page = (DOCS / "authoring.md").read_text("utf-8")
    assert re.findall(r"^::: (.+)$", page, re.M) == [authoring.__name__, testing.__name__]
    (omitted,) = re.findall(r"!\^\(([\w|]+)\)\$", page)
    assert sorted(omitted.split("|")) == [
        name
        for name in sorted(authoring.__all__)
        if any(getattr(authoring, name) is getattr(room, name, None) for room in (sm, testing))
    ]
    assert all(f"`{name}`" in page for name in omitted.split("|"))


def test_every_public_metric_is_exported():
    for metric in REGISTRY.values():
        if not issubclass(metric, sm.Metric):
            continue
        if metric.__module__ == "streammetrics.live.inputs":  # in panes alone; no file names them
            continue
        if metric.__module__.startswith("streammetrics.") and not inspect.isabstract(metric):
            assert METRICS.get(metric.__name__) is metric


# What a user calls and reads on every metric, and what the author of one overrides or calls.
USED = {
    "batch", "bounds", "compute", "confidence", "config", "copy", "exact", "family",
    "higher_is_better", "value_range",
    "inputs", "merge", "n_omitted", "n_rows", "nbytes", "plot", "receipt", "report", "reset",
    "save", "to_bytes",
    "update", "without",
}  # fmt: skip
AUTHORED = {
    "check_parameters", "feed", "interval", "is_exact", "readout", "state_defaults", "statistics",
}  # fmt: skip
FAMILIES = {
    "agreement": {"read"},
    "classification": {"averaged", "classes", "positive", "ratio", "read"},
    "scores": {"certain", "read"},
    "ranking": {"n_queries", "n_unjudged", "per_query", "read"},
    "clustering": {"certain", "per_cluster", "per_point", "read", "read_information", "read_pairs"},
    "correlation": {"certain"},
    "drift": {"certain", "of_amounts", "terms", "total"},
    "arena": {"nu", "ranks"},
    "attempts": {"n_units", "per_unit", "read"},
    "text": {"read"},
}


def test_public_attributes_of_metrics_are_few_and_known():
    for name, cls in METRICS.items():
        metric = next(oracle.metric for oracle in ORACLES if type(oracle.metric) is cls)
        family = metric.__module__.split(".")[2]
        public = {attribute for attribute in dir(metric) if not attribute.startswith("_")}
        known = USED | AUTHORED | FAMILIES.get(family, set())
        assert public - metric.config.keys() <= known, name


def test_dir_lists_the_public_names_only():
    assert {name for name in dir(sm) if not name.startswith("__")} == set(sm.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    if module.startswith(EXTRAS):
        pytest.importorskip(module, reason=WITHOUT, exc_type=ImportError)
    tests = doctest.DocTestFinder().find(importlib.import_module(module))
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).failed for test in tests) == 0
