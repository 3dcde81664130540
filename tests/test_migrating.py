"""Every line of docs/migrating.md that names two metrics: they agree."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.readers.trec import read_qrels, read_run

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs" / "migrating.md").read_text("utf-8")
SECTIONS = dict(
    part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
)  # the text below each title
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)` \| `(sm\.[^`]+\))` \|$", re.MULTILINE)
PEERS = {"scikit-learn": "sklearn", "torchmetrics": "torchmetrics", "river": "river"}
ROWS = [(title, *row) for title in PEERS for row in ROW.findall(SECTIONS[title])]
MEASURES = ROW.findall(SECTIONS["trec_eval"])


@pytest.fixture(scope="module")
def names():
    """Return the names that the page's blocks define, of the libraries that are installed."""
    found = {}
    for title, text in SECTIONS.items():
        if title == "trec_eval" or importlib.util.find_spec(PEERS[title]):
            for block in BLOCK.findall(text):
                exec(block, found)
    return found


def test_tables_are_read_whole():
    assert len(ROWS) + len(MEASURES) == PAGE.count("` | `sm.") - PAGE.count("` | `sm.MetricSet")


@pytest.mark.filterwarnings("ignore:Metric .* will save all targets:UserWarning")
@pytest.mark.parametrize(("title", "theirs", "ours"), ROWS, ids=[row[1] for row in ROWS])
def test_value_is_the_others(title, theirs, ours, names):
    pytest.importorskip(PEERS[title], reason="pip install --group training")
    expected, value = eval(theirs, names), eval(ours, names).compute()
    agree(value, expected, 1e-5 if title == "torchmetrics" else 1e-9)  # of float32


def agree(value, expected, tolerance):
    """Check two results of any shape."""
    if isinstance(expected, dict):
        assert value.keys() == expected.keys()
        for key in expected:
            agree(value[key], expected[key], tolerance)
    elif isinstance(expected, tuple):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            agree(one, other, tolerance)
    else:
        np.testing.assert_allclose(value, np.asarray(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("measure", "ours"), MEASURES)
def test_measure_is_printed_as_by_trec_eval(measure, ours, names):
    data = HERE / "data" / "trec"
    metric = eval(ours, names)
    for batch in [*read_qrels(data / "rag24.qrels"), *read_run(data / "rag24.run.gz")]:
        metric.feed(batch)
    printed = {
        name: figure
        for name, topic, figure in map(
            str.split, (data / "rag24.expected").read_text("utf-8").splitlines()
        )
        if topic == "all"
    }
    assert f"{metric.compute():.4f}" == printed[measure]
    assert isinstance(metric, sm.Metric)


TOOLS = (HERE.parent / "docs" / "migrating-tools.md").read_text("utf-8")


@pytest.mark.parametrize("ours", sorted(set(re.findall(r"`(sm\.[A-Z]\w*\([^`]*\))`", TOOLS))))
def test_metrics_that_stand_for_those_of_tools_can_be_made(ours):
    assert isinstance(eval(ours), sm.Metric)
