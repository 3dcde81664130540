"""What `live check` says of memory and disk is what a service takes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.live.service import sizing as module
from streammetrics.live.service.config import settings
from streammetrics.live.service.sizing import sized

METRICS = """
[metrics]
auc = "ROCAUC"
loss = "LogLoss"
accuracy = "Accuracy(threshold=0.5)"
"""
TIERS = """
[page]
window = "15min"
every = "15min"
[live]
tiers = [["1min", "10min"], ["15min", "2h"], ["1h", "4h"]]
label_ttl = "{ttl}"
label_lateness = "{ttl}"
"""
UNITS = {"MB": 1e6, "GB": 1e9}
HOURS, RATE = 4, 600


def written(tmp_path, metrics, live):
    path = tmp_path / "live.toml"
    path.write_text(metrics + live)
    return settings(path)


def told(lines):
    """Return the bytes of memory and store that lines tell."""
    found = [re.match(r"(memory|store): about ([\d.,]+) (MB|GB)", line) for line in lines]
    return [float(one[2].replace(",", "")) * UNITS[one[3]] for one in found]


def run(live, columns, truth, rng, slices):
    """Return the bytes of a live state that has run for as long as its tiers reach."""
    n, start = HOURS * 60 * RATE, 1_700_000_000 // 86_400 * 86_400
    times = start + np.arange(n) * 60 / RATE
    ids = [f"{k:032x}" for k in range(n)]
    columns = {name: make(n) for name, make in columns.items()}
    if slices > 1:
        columns["country"] = np.array([f"c{k}" for k in range(slices)])[rng.integers(0, slices, n)]
    for first in range(0, n, n // 100):
        part = slice(first, first + n // 100)
        some = {name: column[part] for name, column in columns.items()}
        if truth is None:
            live.observe(time=times[part], **some)
        else:
            label = {"y_true": truth(len(some["y_score"]))}
            live.predict(id=ids[part], time=times[part], **some)
            live.label(id=ids[part], time=times[part] + 60, **label)
    live.series("15min", every="15min")  # which makes states of the rows that wait
    return live.nbytes, len(live.to_bytes())


@pytest.mark.parametrize(
    ("ttl", "slices"),
    [
        ("5min", 1),
        pytest.param("45min", 1, marks=pytest.mark.long),
        pytest.param("5min", 20, marks=pytest.mark.long),
        pytest.param("45min", 20, marks=pytest.mark.long),
    ],
)
def test_it_is_that_of_a_service(tmp_path, ttl, slices):
    by = '\nby = [["country"]]' if slices > 1 else ""
    rng = np.random.default_rng(0)
    found = written(tmp_path, METRICS, TIERS.format(ttl=ttl) + by)
    estimates = told(sized(found, RATE, slices))
    columns, truth = {"y_score": rng.random}, lambda n: rng.integers(0, 2, n)
    actual = run(found.live(), columns, truth, rng, slices)
    assert np.abs(np.array(estimates) / actual - 1).max() < 0.25, (estimates, actual)


@pytest.mark.long
def test_without_labels_no_row_waits(tmp_path):
    rng = np.random.default_rng(0)
    found = written(tmp_path, '[metrics]\nmedian = "Quantile(q=0.5)"\n', TIERS.format(ttl="5min"))
    lines = list(sized(found, RATE, 1))
    assert "wait" not in lines[0]
    actual = run(found.live(), {"values": rng.random}, None, rng, 1)
    assert np.abs(np.array(told(lines)) / actual - 1).max() < 0.25


@pytest.mark.parametrize("ttl", ["5min", pytest.param("45min", marks=pytest.mark.long)])
def test_inputs_are_part_of_it(tmp_path, ttl):
    rng = np.random.default_rng(0)
    sm.Quantile(q=0.5).update(rng.random(2000)).save(tmp_path / "age.state")
    inputs = """
[inputs]
age = { type = "number", range = [0, 1], reference = "age.state" }
shop = { type = "category", categories = ["a", "b", "c"] }
"""
    found = written(tmp_path, METRICS, TIERS.format(ttl=ttl) + inputs)
    estimates = told(sized(found, RATE, 1))
    columns = {"y_score": rng.random, "age": rng.random}
    columns["shop"] = lambda n: rng.choice(["a", "b", "x"], n)
    actual = run(found.live(), columns, lambda n: rng.integers(0, 2, n), rng, 1)
    assert np.abs(np.array(estimates) / actual - 1).max() < 0.25, (estimates, actual)


LIVE = "[live]\ntypes = { y_score = 3 }\nlabels = [0, 1, 2]\n"
KINDS = {
    "regression": ('[metrics]\nmae = "MAE"\n', "[live]\ntarget_range = [-5, 5]\n"),
    "classes": ("[metrics]\nf1 = \"F1(average='macro')\"\n", '[live]\nlabels = ["a", "b", "c"]\n'),
    "classes that are not known": ("[metrics]\nf1 = \"F1(average='macro')\"\n", ""),
    "scores of classes": ('[metrics]\ntop = "TopKAccuracy(k=2)"\n', LIVE),
    "weights": ('[metrics]\nloss = "LogLoss"\n[columns]\nsample_weight = "w"\n', ""),
    "judgments": ('[metrics]\naccuracy = "Accuracy"\n', '[live]\nproxy = "judge"\n'),
    "slices by bins": (METRICS, '[live]\nby = [["age:18:30"], ["country"]]\n'),
    "types of slices": (METRICS, '[live]\nby = [["n"]]\ntypes = { n = "integers" }\n'),
    "days of a zone": (
        f'{METRICS}[page]\nevery = "1h"\n',
        '[live]\ntiers = [["1h", "3d"], ["1d", "9d", "Asia/Kolkata"]]\n',
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_made_up(tmp_path, kind):
    found = written(tmp_path, *KINDS[kind])
    memory, store = told(sized(found, 10.0, 3))
    assert 0 < store < memory


@pytest.mark.parametrize("metric", ["BoxAveragePrecision", "SpanF1", "NDCG"])
def test_some_rows_are_not_made_up(tmp_path, metric):
    found = written(tmp_path, f'[metrics]\nm = "{metric}"\n', "")
    assert [*sized(found, 10.0, 1)] == [
        "memory: there is no estimate for rows of these columns; Live.nbytes measures it"
    ]


def test_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MANY", 1_000_000)
    found = written(tmp_path, METRICS, '[live]\nmax_pending = 1_000\nby = [["country"]]\n')
    line, _ = sized(found, 6.0, 10)
    assert "with 10 slices of each kind" in line
    assert "; max_bins=1024 bounds the panes of auc" in line
    assert line.endswith("; more rows wait than max_pending, so the oldest leave early")
    bounded = METRICS.replace('"ROCAUC"', '"ROCAUC(max_bins=1024)"')
    line, _ = sized(written(tmp_path, bounded, ""), 6.0, 1)
    assert ";" not in line
