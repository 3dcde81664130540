"""A receipt identifies the rows and the configuration of a result, however the rows came."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.receipts import circumstances, differences, read_receipt

SUITE = sm.MetricSet({"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(max_bins=64)})


def rows(n=500):
    rng = np.random.default_rng(1)
    return {"y_true": rng.integers(0, 2, n), "y_score": rng.random(n), "key": np.arange(n) % 5}


def part(table, chosen):
    return {name: column[chosen] for name, column in table.items()}


@pytest.mark.parametrize(
    "empty",
    [
        sm.F1(threshold=0.5),
        SUITE,
        sm.MetricSet(dict(SUITE.items()), unit="key"),
        sm.Slices(SUITE, by=[[], [sm.Bins("key", [2, 3])]]),
    ],
    ids=lambda empty: type(empty).__name__,
)
def test_rows_in_any_order_and_batches_have_one_receipt(empty):
    table = rows()
    if type(empty) in {sm.F1, sm.MetricSet}:
        del table["key"]
    whole, parts = empty.copy().update(**table), empty.copy()
    for chosen in np.array_split(np.random.default_rng(2).permutation(500), 7):
        parts.update(**part(table, chosen))
    receipt = whole.receipt()
    assert receipt == parts.receipt() == read_receipt(json.dumps(receipt))
    assert receipt["sha256"] == hashlib.sha256(whole.to_bytes()).hexdigest()
    assert (receipt["rows"], receipt["omitted"], receipt["streammetrics"]) == (
        500,
        0,
        sm.__version__,
    )
    assert receipt["kernels"] == sm.kernels()
    assert not list(differences(read_receipt(json.dumps(receipt)), parts.receipt()))
    fewer = empty.copy().update(**part(table, slice(1, None))).receipt()
    told = list(differences(receipt, fewer))
    assert told[0] == "rows: 500 in the receipt, 499 here"
    assert [line.partition(":")[0] for line in told] == ["rows", "sha256"]


def test_parameters_are_told_where_they_are_not_the_default():
    receipt = SUITE.receipt()
    assert receipt["configuration"]["metrics"] == {
        "f1": "F1(threshold=0.5)",
        "auc": "ROCAUC(max_bins=64)",
    }
    other = sm.MetricSet({"f1": sm.F1(threshold=0.4), "auc": sm.ROCAUC(max_bins=64)}).receipt()
    told = list(differences(receipt, other))
    assert [line.partition(":")[0] for line in told] == [
        *("configuration", "configuration", "sha256")
    ]
    assert "F1(threshold=0.4)" in told[1]


def test_versions_and_kernels_are_no_differences_of_states():
    receipt = SUITE.receipt()
    other = {**receipt, "streammetrics": "0.0.1", "kernels": 'a "b"\n\ud800'}
    assert not list(differences(other, receipt))
    assert not list(circumstances(receipt, receipt))
    assert list(circumstances(other, receipt)) == [
        f"streammetrics: 0.0.1 in the receipt, {sm.__version__} here",
        f'kernels: a \\"b\\"\\n\\ud800 in the receipt, {sm.kernels()} here',
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 499),
        ("omitted", 3),
        ("configuration", {}),
        ("configuration", {**SUITE.receipt()["configuration"], "unit": "user"}),
        ("sha256", "0" * 64),
    ],
)
def test_each_field_that_the_state_determines_is_compared(name, value):
    receipt = SUITE.receipt()
    told = list(differences({**receipt, name: value}, receipt))
    assert {line.partition(":")[0] for line in told} == {name}
    assert all(line.endswith((" here", " in the receipt")) for line in told)


def test_numbers_of_a_configuration_are_compared_as_they_are_written():
    one, other = ({**SUITE.receipt(), "configuration": {"k": k}} for k in (1, True))
    assert one == other
    assert len(list(differences(one, other))) == 2
    undefined = {**one, "configuration": {"zero_division": float("nan")}}
    assert not list(differences(read_receipt(json.dumps(undefined)), undefined))


def test_omitted_rows_are_told():
    mean = sm.Mean(nan_policy="omit").update([1.0, np.nan])
    assert (mean.receipt()["rows"], mean.receipt()["omitted"]) == (1, 1)
    other = sm.Mean(nan_policy="omit").update([1.0, np.nan, np.nan])
    assert next(differences(mean.receipt(), other.receipt())).startswith("omitted: 1 in the")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ('{"receipt": 1}', "lacks 'sha256', 'rows', 'omitted', 'configuration', "),
        ('{"receipt": 2, "sha256": ""}', "a later version wrote this receipt"),
    ],
)
def test_other_documents_are_no_receipts(text, message):
    with pytest.raises(sm.StreamMetricsError, match=message):
        read_receipt(text)


@pytest.mark.parametrize("name", SUITE.receipt())
def test_a_receipt_has_each_field_in_its_kind_and_no_other(name):
    receipt = SUITE.receipt()
    for altered, message in [
        ({key: receipt[key] for key in receipt if key != name}, f"it lacks '{name}'"),
        ({**receipt, name: None}, f"'{name}' is not (a whole number|text|an object)"),
        ({**receipt, name: True}, f"'{name}' is not (a whole number|text|an object)"),
        ({**receipt, f"{name} ü": 1}, f"it has an unknown field '{name} .xfc'"),
    ]:
        with pytest.raises(
            sm.StreamMetricsError,
            match=f"^this is not a receipt: {message}; `evaluate --receipt` writes one$",
        ):
            read_receipt(json.dumps(altered))
