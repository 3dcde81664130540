"""docs/metrics.md is what docstrings of metrics make of it, and a new metric finds its place."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from streammetrics.core.registry import PUBLIC, catalogue
from streammetrics.show.formulas import (
    FormulaError,
    documented,
    entry,
    formula,
    inherited,
    set_formula,
    updated,
)

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
ORDER = ("Args", "Raises", "Memory and cost", "Reference", "Example")

ADDED = '''
import sys
from streammetrics.core import registry
from streammetrics.metrics.regression import losses
from streammetrics.metrics.regression.losses import MAE

class HalfMAE(MAE):
    """Half of the mean absolute error, \\u03a3 w |y - p| / (2 \\u03a3 w).

    Args:
        share: The half.

    Reference: none.

    Example:
        >>> HalfMAE().update([1.0], [2.0]).compute()
        0.5
    """

    share: float = 0.5

HalfMAE.__module__ = losses.__name__
losses.HalfMAE = HalfMAE
registry.PUBLIC["HalfMAE"] = "metrics.regression.losses"
from streammetrics.show.formulas import updated
print(updated(sys.stdin.read()))
'''


def test_the_page_is_current():
    told = "run: python -m streammetrics.show.formulas docs/metrics.md"
    assert updated(PAGE.read_text("utf-8")) == PAGE.read_text("utf-8"), told


def test_a_new_metric_touches_its_module_and_gets_its_entry():
    """And a line in the registry; it needs no golden state of a released version."""
    done = subprocess.run(
        [sys.executable, "-c", ADDED],
        input=PAGE.read_text("utf-8"), capture_output=True, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    page = done.stdout
    at = page.index("### HalfMAE\n")
    module = PUBLIC["MAE"]
    peers = [name for name in PUBLIC if PUBLIC[name] == module]
    assert at > max(page.index(f"### {name}\n") for name in peers)
    assert "- `share=0.5`: The half." in page[at:]
    assert (
        page.replace(page[at : page.index("###", at + 4)], "").strip()
        == PAGE.read_text("utf-8").strip()
    )


def test_a_metric_without_a_room_on_the_page_is_told():
    with pytest.raises(ValueError, match="the page has no entry of streammetrics.metrics"):
        updated("# Metrics\n")


def test_docstrings_have_one_form():
    """Google's: a summary with the formula, then the sections in one order, each after a blank."""
    for name, cls in catalogue().items():
        told = documented(cls)
        titles = list(told.sections)
        assert titles == [title for title in ORDER if title in titles], name
        assert told.text.splitlines()[0].endswith((".", ":")), name
        stuck = r"[^\n]\n *(Args|Raises|Memory and cost|Reference|Example):"
        assert not re.search(stuck, cls.__doc__), name
        own = {n for n, known in cls._parameters.items() if known.owner is cls} - {"nan_policy"}
        listed = set(re.findall(r"^ {4}(\w+): ", told.sections.get("Args", ""), re.MULTILINE))
        above = " ".join(base.__doc__ or "" for base in cls.__mro__[1:])
        untold = {n for n in own - listed if f"{n}:" not in above and f"`{n}`" not in told.text}
        assert not untold, name
        assert "\n\n\n" not in entry(cls), name


def test_the_family_whose_parameters_a_metric_has_is_above_it():
    for name, cls in catalogue().items():
        doc = inspect.getdoc(cls)
        told = re.search(
            r"(The other p|P)arameters are those of `(\w+)`(?:\s+and\s+`(\w+)`)?\.", doc
        )
        inherited_ones = [p for p in cls._parameters.values() if p.owner is not cls]
        listed = all(f"\n    {known.name}: " in doc for known in inherited_ones)
        assert told or listed, f"{name} does not say where its parameters are told"
        if told:
            above = {base.__name__ for base in cls.__mro__[1:]}
            assert {told[2], told[3] or told[2]} <= above, f"{name} names another's parameters"
            assert (told[1] == "P") == ("\nArgs:" not in doc), name


def test_every_metric_has_a_formula_or_says_that_it_is_an_algorithm():
    for name, cls in catalogue().items():
        typed, _ = formula(cls)
        assert typed or "\nAlgorithm: " in documented(cls).text, name
        if typed:
            assert ET.fromstring(set_formula(typed)).get("alttext") == typed, name


def seen(typed):
    """Return what a formula shows, fractions as (above)/(below)."""
    return told(ET.fromstring(set_formula(typed)))


def told(part):
    inside = [told(each) for each in part]
    if part.tag == "mfrac":
        return f"({inside[0]})/({inside[1]})"
    if part.tag in {"msup", "msub", "munder"}:
        return f"{inside[0]}{'^' if part.tag == 'msup' else '_'}({inside[1]})"
    if part.tag == "msqrt":
        return f"√({''.join(inside)})"
    return (part.text or "").replace("\u2061", "").strip() + "".join(inside)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("2 TP / (2 TP + FN)", "(2TP)/(2TP+FN)"),
        ("Σ w |y - p| / Σ w", "(∑w|y−p|)/(∑w)"),
        ("(1 / n) Σ_j max_i n_ij", "(1)/(n)∑_(j)max_(i)n_(ij)"),
        ("1 - (a / b)²", "1−((a)/(b))^(2)"),
        ("(Σ x^r)^(1/r)", "(∑x^(r))^(1/r)"),
        ("√(a b) / c", "(√(ab))/(c)"),
        ("exp(a / b)", "exp((a)/(b))"),
        ("y · p / (‖y‖ ‖p‖)", "(y·p)/(‖y‖‖p‖)"),
        ("x_1 + ... + x_k <= y", "x_(1)+…+x_(k)≤y"),
        ("P(s_+ > s_-)", "P(s_(+)>s_(−))"),
        ("beta ȳ if x in Y, else 0", "betaȳifx∈Y,else0"),
    ],
)
def test_formulas_bind_as_they_are_read(typed, shown):
    assert seen(typed) == shown


@pytest.mark.parametrize("typed", ["a /", "(a + b", "a)", "a + ", "x_", "|a", "a ] b", "* a"])
def test_what_is_no_formula_is_refused_where_it_stops(typed):
    with pytest.raises(FormulaError, match="after|too early"):
        set_formula(typed)


def test_every_parameter_of_a_metric_is_told_with_it_or_with_its_family():
    for name, metric in catalogue().items():
        told = f"{entry(metric)}\n{inherited(metric)}"
        missing = [known for known in metric._parameters if f"\n- `{known}" not in f"\n{told}"]
        assert not missing, f"{name}: {missing}"
