"""Tasks beside classification, regression and rankings: columns by name, as from Python."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import streammetrics as sm

N = 40


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.normal(size=N)
    words = np.array(["the cat sat", "a dog ran home", "the bird", "no"])
    columns = {
        "y": y, "p": y + rng.normal(size=N), "scale": rng.random(N) + 0.5,
        "low": y - rng.random(N), "high": y + rng.random(N), "mean": y + 0.1,
        "sd": rng.random(N) + 0.1,
        "e0": y - 1, "e1": y, "e2": y + 1, "q0": y - 1, "q1": y + 1, "pit": rng.random(N),
        "r0": rng.integers(0, 3, N), "r1": rng.integers(0, 3, N),
        "user": np.repeat(np.arange(8), 5), "item": rng.integers(0, 20, N),
        "genre": rng.choice(["a", "b", "c"], N), "known": rng.random(N),
        "days": rng.integers(1, 50, N), "died": rng.integers(0, 2, N), "hazard": rng.random(N),
        "text": rng.choice(words, N), "said": rng.choice(words, N),
    }  # fmt: skip
    votes = rng.multinomial(4, [0.5, 0.3, 0.2], N)
    columns |= {f"votes{k}": votes[:, k] for k in range(3)}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


TASKS = {
    "forecasting --y-true y --y-pred p --column scale=scale": {
        "MASE": (sm.MASE(), "y p scale"), "RMSSE": (sm.RMSSE(), "y p scale")
    },
    "forecasting --y-true y --column y_low=low --column y_high=high": {
        "IntervalCoverage": (sm.IntervalCoverage(), "y low high"),
        "WinklerScore": (sm.WinklerScore(), "y low high"),
    },
    "forecasting --y-true y --column y_mean=mean --column y_std=sd": {
        "CRPSGaussian": (sm.CRPSGaussian(), "y mean sd")
    },
    "forecasting --y-true y --column y_ensemble=e*": {
        "CRPSEnsemble": (sm.CRPSEnsemble(), "y e0,e1,e2")
    },
    "forecasting --y-true y --column y_quantiles=q0,q1 --param levels=0.1,0.9": {
        "CRPSQuantiles": (sm.CRPSQuantiles(levels=(0.1, 0.9)), "y q0,q1")
    },
    "agreement --column ratings=votes*": {
        "FleissKappa": (sm.FleissKappa(), "votes0,votes1,votes2"),
        "KrippendorffAlpha": (sm.KrippendorffAlpha(), "votes0,votes1,votes2"),
    },
    "agreement --column labels_true=r0 --column labels_pred=r1": {
        "TheilsU": (sm.TheilsU(), "r0 r1")
    },
    "recommendation --query user --column item=item": {
        "ExposureGini": (sm.ExposureGini(), "user item")
    },
    "recommendation --query user --column item=item --metrics CatalogueCoverage(n_items=20)": {
        "CatalogueCoverage(n_items=20)": (sm.CatalogueCoverage(n_items=20), "user item")
    },
    "recommendation --query user --column category=genre": {
        "IntraListDiversity": (sm.IntraListDiversity(), "user genre")
    },
    "recommendation --column popularity=known": {"Novelty": (sm.Novelty(), "known")},
    "survival --column time=days --column event=died --score hazard": {
        "ConcordanceIndex": (sm.ConcordanceIndex(), "days died hazard")
    },
    "text --column reference=text --column prediction=said": {
        "ExactMatch": (sm.ExactMatch(), "text said"), "BLEU": (sm.BLEU(), "text said")
    },
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_figures_are_those_of_python(command, path, task):
    found = command("evaluate", path, "--task", *task.split(), "--json", "-")
    assert found.code == 0, found.err
    rows = pd.read_csv(path)
    for name, (metric, columns) in TASKS[task].items():
        parts = [rows[c.split(",")].to_numpy() for c in columns.split()]
        told = json.loads(found.out)["metrics"][name]["value"]
        assert told == pytest.approx(sm.score(metric, *parts), rel=1e-12), name


def test_pit_is_read_without_a_truth(command, path):
    found = command("evaluate", path, "--task", "forecasting", "--column", "pit=pit")
    assert found.code == 0, found.err
    assert "PITHistogram" in found.out


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            "forecasting --y-true y",
            "needs --y-pred and --column scale=... or --column y_low=... and",
        ),
        ("forecasting --column y_low=low --column y_high=high", "needs --y-true"),
        (
            "forecasting --y-true y --column y_low=low",
            "y_low=... needs --column y_high=... beside it",
        ),
        ("forecasting --y-true y --column y_quantiles=q*", "CRPSQuantiles.* levels"),
        (
            "forecasting --y-true y --column y_quantiles=q* --param levels=a",
            "expected ascending numbers between 0 and 1",
        ),
        ("agreement --column ratings=r* --y-true y", "--y-true is not for --task agreement"),
        ("recommendation --column item=item", "ExposureGini needs --query"),
        ("survival --column time=days --column event=died", "needs? .*--score"),
        (
            "survival --column time=days --column event=item --score hazard",
            "item is neither 0 nor 1 in .* rows, first in row 0",
        ),
        (
            "text --column reference=text",
            "reference=... needs --column prediction=... beside",
        ),
        ("text --column reference=text --column prediction=sadi", "no column 'sadi'.*'?said'?"),
    ],
)
def test_mistakes_are_one_line(command, path, task, message):
    found = command("evaluate", path, "--task", *task.split())
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1
    assert re.search(message, found.err), found.err


def test_several_models_of_texts_and_risks(command, path):
    run = ("evaluate", path, "--task", "text", "--column", "reference=text")
    found = command(*run, "--column", "prediction=said", "--column", "prediction=text")
    assert found.code == 0, found.err
    assert "said" in found.out.splitlines()[1]
    risks = command(
        "evaluate", path, "--task", "survival", "--column", "time=days", "--column", "event=died",
        "--score", "hazard", "--score", "known",
    )  # fmt: skip
    assert risks.code == 0, risks.err
    assert risks.out.splitlines()[1].split() == ["Metric", "hazard", "known"]
    run = ("evaluate", path, "--task", "forecasting", "--y-true", "y", "--column", "scale=scale")
    forecasts = command(*run, "--y-pred", "p", "--y-pred", "mean")
    assert forecasts.code == 0, forecasts.err
    assert forecasts.out.splitlines()[1].split() == ["Metric", "p", "mean"]


def test_the_command_reads_attempts_and_answers(command, tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        {"q": f"q{q}", "epoch": n, "ok": (q + n) % 3 == 0, "said": "abc"[(q + n) % 3]}
        for q in range(6)
        for n in range(5)
    ]
    names = {"unit": "q", "y_true": "ok", "attempt": "epoch", "answer": "said"}
    path.write_text("\n".join(map(json.dumps, lines)))
    run = ["evaluate", path, "--task", "attempts", "--column", "unit=q", "--y-true", "ok"]
    found = command(*run, "-c", "attempt=epoch", "-c", "answer=said", "-p", "k=1,3", "--json", "-")
    assert found.code == 0, found.err
    told = json.loads(found.out)["metrics"]
    for name, metric in {
        "PassAtK(k=3)": sm.PassAtK(k=3), "PassHatK(k=1)": sm.PassHatK(k=1),
        "MajorityAtK(k=3)": sm.MajorityAtK(k=3), "AttemptSpread": sm.AttemptSpread(),
    }.items():  # fmt: skip
        columns = {n: [line[names[n]] for line in lines] for n in metric.inputs}
        assert told[name]["value"] == metric.update(**columns).compute(), name
    assert "MajorityAtK" not in command(*run).out
    path.write_text("\n".join(map(json.dumps, [*lines, {**lines[4], "ok": not lines[4]["ok"]}])))
    found = command(*run, "-c", "attempt=epoch")
    assert found.code == 2
    assert "contradicts" in found.err
