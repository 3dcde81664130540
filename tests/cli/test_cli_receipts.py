"""`evaluate --receipt` and `verify`."""

from __future__ import annotations

import json

import pytest
from prediction_files import store

import streammetrics as sm

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


def test_a_state_of_the_same_rows_is_verified(command, tmp_path, binary):
    whole = store(binary, tmp_path / "whole.csv")
    receipt, state = tmp_path / "receipt.json", tmp_path / "again.state"
    assert command("evaluate", whole, *BINARY, "--receipt", receipt).code == 0
    found = json.loads(receipt.read_text())
    parts = tmp_path / "parts"
    parts.mkdir()
    store(binary.slice(0, 1000), parts / "b.parquet")
    store(binary.slice(1000), parts / "a.parquet")
    command("evaluate", parts, *BINARY, "--save", state, "--batch-rows", 70)
    assert sm.load(state).receipt() == found
    result = command("verify", receipt, state)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"verified: {state} is the state of {receipt}: 3,000 rows, SHA-256 {found['sha256']}\n"
    )
    ledger = tmp_path / "all.ledger"
    command("merge", "--ledger", state, "-o", ledger)
    assert command("verify", receipt, ledger).code == 0


def test_another_state_is_told_from_it(command, tmp_path, binary):
    receipt, state = tmp_path / "receipt.json", tmp_path / "other.state"
    command("evaluate", store(binary, tmp_path / "a.csv"), *BINARY, "--receipt", receipt)
    fewer = store(binary.slice(1), tmp_path / "b.csv")
    command("evaluate", fewer, *BINARY, "--save", state)
    result = command("verify", receipt, state)
    assert (result.code, result.err) == (1, "")
    first, second, third = result.out.splitlines()
    assert first == f"{state} is not the state of {receipt}:"
    assert second == "  rows: 3,000 in the receipt, 2,999 here"
    assert third.startswith("  sha256: ")


@pytest.mark.parametrize(
    ("name", "value"), [("rows", 5), ("omitted", 1), ("configuration", {}), ("sha256", "0" * 64)]
)
def test_an_altered_receipt_is_not_verified(command, mistake, tmp_path, name, value):
    receipt, state = tmp_path / "receipt.json", tmp_path / "mean.state"
    mean = sm.Mean().update([1.0, 2.0])
    mean.save(state)
    receipt.write_text(json.dumps({**mean.receipt(), name: value}))
    result = command("verify", receipt, state)
    assert (result.code, result.err) == (1, "")
    first, *rest = result.out.splitlines()
    assert first == f"{state} is not the state of {receipt}:"
    assert {line.partition(":")[0].strip() for line in rest} == {name}
    receipt.write_text(json.dumps({k: v for k, v in mean.receipt().items() if k != name}))
    assert f"it lacks '{name}'" in mistake("verify", receipt, state)


def test_other_versions_and_kernels_are_told_of_a_verified_state(command, tmp_path):
    receipt, state = tmp_path / "receipt.json", tmp_path / "mean.state"
    mean = sm.Mean().update([1.0, 2.0])
    mean.save(state)
    receipt.write_text(json.dumps({**mean.receipt(), "streammetrics": "0.0.1", "kernels": "none"}))
    result = command("verify", receipt, state)
    assert (result.code, result.err) == (0, "")
    first, *rest = result.out.splitlines()
    assert first.startswith(f"verified: {state} is the state of {receipt}: 2 rows, SHA-256 ")
    assert rest == [
        f"  streammetrics: 0.0.1 in the receipt, {sm.__version__} here",
        f"  kernels: none in the receipt, {sm.kernels()} here",
    ]


def test_models_that_are_compared_have_one_receipt(command, tmp_path, binary):
    receipt, state = tmp_path / "receipt.json", tmp_path / "duel.state"
    path = store(binary, tmp_path / "a.csv")
    models = ("--y-score", "weight", "--save", state, "--receipt", receipt)
    assert command("evaluate", path, *BINARY, *models).code == 0
    assert json.loads(receipt.read_text())["configuration"]["class"] == "Comparison"
    assert command("verify", receipt, state).code == 0


def test_mistakes_are_one_line(mistake, tmp_path, binary):
    path, receipt = store(binary, tmp_path / "a.csv"), tmp_path / "receipt.json"
    line = mistake("evaluate", path, *BINARY, "--receipt", "-")
    assert line == "--receipt -: this is written to a file only: name one"
    line = mistake("evaluate", path, *BINARY, "--receipt", receipt, "--save", receipt)
    assert "both write to" in line
    receipt.write_text("{}")
    assert mistake("verify", receipt, path) == (
        f"{receipt}: this is not a receipt: it lacks 'receipt', 'sha256', 'rows', 'omitted', "
        "'configuration', 'streammetrics', 'kernels'; `evaluate --receipt` writes one"
    )
    assert mistake("verify", tmp_path / "none.json", path).endswith("No such file or directory")
    receipt.write_text(json.dumps(sm.Mean().receipt()))
    assert mistake("verify", receipt, path).startswith(f"{path}: not a state of streammetrics")
