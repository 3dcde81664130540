"""A metric of each public base in each place where metrics are used."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import own_bases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.engines import local

TIMES = np.datetime64("2026-01-01T00:00") + np.arange(own_bases.N).astype("timedelta64[s]")
WITHOUT_LIMITS = {"OfSample", "OfOutputs", "OfValues", "OfStatistic", "OfCurve"}

every_base = pytest.mark.parametrize(
    ("metric", "rows", "task"), own_bases.ALL, ids=[each[0].__name__ for each in own_bases.ALL]
)


def parts(rows, n):
    return [{name: column[i::n] for name, column in rows.items()} for i in range(n)]


def same(one, other):
    return one.to_bytes() == other.to_bytes()


@every_base
def test_rows_of_weight_two_or_count_two_are_two_rows(metric, rows, task):
    takes = inspect.signature(metric().update).parameters
    double = {name: np.repeat(column, 2, axis=0) for name, column in rows.items()}
    whole = metric().update(**double)
    twos = np.full(own_bases.N, 2)
    if "sample_weight" in takes:
        weighted = metric().update(**rows, sample_weight=twos.astype(float))
        values = [np.asarray(each.compute(), float) for each in (whole, weighted)]
        assert np.allclose(*values, rtol=1e-12)
    else:
        with pytest.raises(TypeError, match="sample_weight"):
            metric().update(**rows, sample_weight=twos)
    if task != "ranking":  # documents of a query are rows of their own
        assert same(metric().update(**rows, counts=twos), whole)


@every_base
def test_limits_hold_the_value_or_are_refused(metric, rows, task):
    own = metric().update(**rows)
    if metric.__name__ in WITHOUT_LIMITS:
        with pytest.raises(sm.NoConfidenceError, match="unit="):
            own.confidence()
    else:
        low, high = own.confidence()
        assert np.isnan(low) or low <= own.compute() <= high
    if task != "ranking" and metric is not own_bases.OfCurve:  # which is no number
        unit = np.arange(own_bases.N) // 2
        limits = sm.MetricSet({"m": metric()}, unit="u").update({**rows, "u": unit}).confidence()
        assert limits.keys() == {"m"}


@every_base
def test_sets_slices_ledgers_and_engines_give_the_bytes_of_one_pass(metric, rows, task, tmp_path):
    whole = metric().update(**rows)
    assert same(sm.merge([metric().update(**part) for part in parts(rows, 3)]), whole)
    assert sm.from_bytes(whole.to_bytes()) == whole
    suite = sm.MetricSet({"own": metric(), "again": metric()})
    assert same(suite.copy().update(rows)["own"], whole)
    key = rows["query"] % 3 if task == "ranking" else np.arange(own_bases.N) % 3
    slices = sm.Slices(suite.copy(), by="key").update({**rows, "key": key})
    for each in range(3):
        mine = {name: column[key == each] for name, column in rows.items()}
        assert same(slices[{"key": each}]["own"], metric().update(**mine))
    ledger = sm.Ledger(metric())
    for place, part in enumerate(parts(rows, 3)):
        ledger.add(f"shard {place}", metric().update(**part))
    assert same(ledger.merged(), whole)
    files = []
    for place, part in enumerate(parts(rows, 2)):
        files.append(tmp_path / f"{place}.parquet")
        pq.write_table(pa.table(part), files[-1])
    workers = 2 if metric is own_bases.OfTexts else 1
    assert same(local.evaluate(suite, files, workers=workers)["own"], whole)


@every_base
def test_windows_are_the_metric_of_their_rows(metric, rows, task):
    types = {"query": "integers"} if task == "ranking" else {}
    types |= dict.fromkeys(rows, "integers") if task == "clustering" else {}
    live = sm.Live(sm.MetricSet({"own": metric()}), tiers=[("1min", "1h")], types=types)
    live.observe(time=TIMES, **rows)
    assert same(live.window("10min", end=TIMES[-1])["own"], metric().update(**rows))


@every_base
def test_values_that_are_curves_are_drawn(metric, rows, task):
    pytest.importorskip("matplotlib").use("agg")
    own = metric().update(**rows)
    if metric.__name__ in {"OfCurve", "OfQuery", "OfRanking"}:
        assert own.plot().lines or own.plot().patches
    elif metric.__name__ not in {"OfStairs", "OfTable", "OfClasses", "OfLabelings", "OfPairs"}:
        with pytest.raises(TypeError, match="has no picture"):
            own.plot()


@every_base
def test_the_command_line_and_services_know_it(metric, rows, task, tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(own_bases.__file__).parent))
    monkeypatch.chdir(tmp_path)
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    name = f"own_bases:{metric.__name__}"
    asked = [f"--column={column}={column}" for column in rows]
    code = main(["evaluate", "rows.csv", "--task", task, *asked, "--metrics", name])
    out, err = capsys.readouterr()
    assert not code, err
    value = metric().update(**rows).compute()
    assert metric.__name__ in out
    if isinstance(value, float):
        assert f"{value:.6f}" in out or f"{value:,.6f}" in out
    (tmp_path / "live.toml").write_text(f'[metrics]\nown = "{name}"\n')
    assert not main(["live", "check", "live.toml"]), capsys.readouterr().err
    assert metric.__name__ in capsys.readouterr().out
    assert "own_bases" in sys.modules
