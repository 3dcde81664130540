"""``--task multilabel``: columns of indicators and of scores by name or glob."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    truth, score = rng.integers(0, 2, (60, 3)), rng.random((60, 3)).round(3)
    columns = {f"is_{k}": truth[:, k] for k in range(3)} | {f"s{k}": score[:, k] for k in range(3)}
    path = tmp_path / "rows.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path, truth, score


def test_scores_are_cut_and_ranked(command, rows):
    path, truth, score = rows
    run = ("evaluate", path, "--task", "multilabel", "--y-true", "is_*", "--y-score", "s*")
    found = command(*run)
    assert found.code == 0, found.err
    values = dict(line.split()[:2] for line in found.out.splitlines() if len(line.split()) == 4)
    called = score >= 0.5
    expected = {
        "SubsetAccuracy": sk.accuracy_score(truth, called),
        "F1": sk.f1_score(truth, called, average="macro"),
        "ROCAUC": sk.roc_auc_score(truth, score, average="macro"),
        "LabelRankingLoss": sk.label_ranking_loss(truth, score),
    }
    for name, value in expected.items():
        assert float(values[name]) == pytest.approx(value, abs=1e-6)


def test_averages_and_columns_are_chosen(command, rows):
    path, truth, score = rows
    run = ("evaluate", path, "--task", "multilabel", "--y-true", "is_0,is_1,is_2")
    found = command(*run, "--y-score", "s0,s1,s2", "--metrics", "F1", "--param", "average=samples")
    value = sk.f1_score(truth, score >= 0.5, average="samples", zero_division=0.0)
    assert f"{value:.6f}" in found.out


def test_one_column_is_no_row_of_labels(command, rows):
    found = command(
        "evaluate", rows[0], "--task", "multilabel", "--y-true", "is_0", "--y-score", "s0"
    )
    assert found.code == 2
    assert "one number a row, not (n, L)" in found.err
    assert "drop --task multilabel" in found.err


def test_scores_in_the_place_of_labels_are_told_their_option(command, rows):
    run = ("evaluate", rows[0], "--task", "multilabel", "--y-true", "is_*", "--y-pred", "s*")
    found = command(*run)
    assert found.code == 2
    assert "an indicator is 0 or 1: scores take a threshold, as --y-score" in found.err
