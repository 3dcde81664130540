"""What a file says of single rows is checked when it is opened, and not when it is read."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fuzz.forging import split
from fuzz.states import TYPES, written
from live.events import START, TIERS

import streammetrics as sm
from streammetrics.core.fields.keyed import packed_labels
from streammetrics.live.events import LATEST, SECOND

NAMES = {dtype: name for name, dtype in TYPES.items()}
WAITS = {"label_ttl": "5min", "label_lateness": "5min", "keep_rows": 3, "tiers": TIERS}
WORDS = [
    "", "x", "1", "null", "{}", "[", "[" * 2000, "[1]", "[1.5]", "[[1]]", "[NaN]", '[ "a"]',
    '["\\u0061"]', '["a",true,1]', '[{"bin":5}]', '[{"x":5}]', '[{"date":"x"}]',
]  # fmt: skip

REFUSED = (
    r"cannot be taken|labels of the rows that wait|no keys as text|a column|the bytes|kept are not"
)


def service():
    """Return one with rows that wait and rows that are kept, and labels of both and of none."""
    suite = sm.MetricSet({"accuracy": sm.Accuracy()})
    types = {"new": "booleans"}
    made = sm.Live(suite, by=[["c", "new"]], labels=["u", "v"], types=types, **WAITS)
    n = np.arange(12)
    ids, keys = [f"r{k}" for k in n], {"c": np.array(["a", "b"])[n % 2], "new": n % 3 == 0}
    made.predict(id=ids, time=START + 40 * n, y_pred=np.array(["u", "v"])[n % 2], **keys)
    some = n[n % 4 > 0]
    made.label(id=[ids[k] for k in some], time=START + 40 * some, y_true=["u"] * len(some))
    made.observe(time=START + 30 * n, y_pred=["u"] * 12, y_true=["v"] * 12, **keys)
    return made.label(id="other", time=START + 1000, y_true="v")


def parts(blob):
    """Return what a state says of itself, and its arrays."""
    header, body = split(blob)
    meta = json.loads(header.pop("__metadata__")["streammetrics"])
    return meta, {
        name: np.frombuffer(body[slice(*told["data_offsets"])], TYPES[told["dtype"]]).reshape(
            told["shape"]
        )
        for name, told in header.items()
    }


def forged(meta, arrays):
    """Return the state of arrays, with a checksum that fits."""
    every = {name: [NAMES[a.dtype.str], list(a.shape), a.tobytes()] for name, a in arrays.items()}
    return written(meta, every, in_order=True)


META, ARRAYS = parts(service().to_bytes())
COLUMNS = sorted(
    name.removesuffix("/values")
    for name in ARRAYS
    if name.startswith(("rows/", "newest/")) and name.endswith("/values")
)


def without(base):
    """Return all arrays but those of a column."""
    return {name: array for name, array in ARRAYS.items() if not name.startswith(f"{base}/")}


def test_what_is_not_changed_is_a_state():
    assert sm.from_bytes(forged(META, ARRAYS)) == service()
    assert len(META["rows"]["names"]) == 2
    assert len(META["newest rows"]) == 1
    assert {"rows/alone/values", "rows/labels/values", "newest/0/0"} < set(COLUMNS)


@pytest.mark.parametrize(
    ("base", "word"),
    [*[("rows/column/0", word) for word in WORDS], *[("newest/0/0", word) for word in WORDS[:3]]],
)
def test_keys_that_are_none_are_refused(base, word):
    words = {f"{base}/values": np.zeros_like(ARRAYS[f"{base}/values"])}
    blob = forged(
        META, {**without(base), **words, f"{base}/vocabulary": packed_labels(np.array([word]))}
    )
    with pytest.raises(
        sm.StateFormatError, match=r"not a key of 2 columns|no keys as text by c, new"
    ):
        sm.from_bytes(blob)


@pytest.mark.parametrize("base", COLUMNS)
def test_columns_of_another_kind_are_refused(base):
    n = len(ARRAYS[f"{base}/values"])
    others = [np.arange(n) / 2, np.full(n, np.nan), np.zeros((n, 2)), np.zeros((n, 2), np.int64)]
    others += [np.full(n, 2**63, np.uint64), np.arange(n, dtype=np.uint64) + np.uint64(2**63 - 2)]
    for values in [*others, np.arange(n), np.ones(n, bool)]:
        with pytest.raises(sm.StateFormatError, match=REFUSED):
            sm.from_bytes(forged(META, {**without(base), f"{base}/values": values}))
    nulls = {f"{base}/nulls": np.arange(n) == 0}
    with pytest.raises(sm.StateFormatError, match=REFUSED):
        sm.from_bytes(forged(META, {**ARRAYS, **nulls}))


@pytest.mark.parametrize(
    "names",
    [["by c, new"], ["by c, new", "by c, new"], ["c", "y_pred"], ["by c, new", "y_true"],
     ["by c, new", "y_prediction"], ["y_pred", "by c, new"], ["", "y_pred"]],
)  # fmt: skip
def test_columns_of_other_names_are_refused(names):
    rows = {**META, "rows": {**META["rows"], "names": names}}
    with pytest.raises(sm.StateFormatError, match=r"columns|which rows wait"):
        sm.from_bytes(forged(rows, ARRAYS))
    if len(names) == 2:
        kept = [[name, "text"] for name in sorted([*names, "z"])]
        with pytest.raises(sm.StateFormatError, match=r"rows of the state have columns"):
            sm.from_bytes(forged({**META, "newest rows": [kept]}, ARRAYS))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("labels", 5), ("labels", [1, "a"]), ("labels", [[1]]), ("types", None),
        ("types", {"other": 1}), ("types", {"new": []}), ("types", {"new": 0}),
        ("target_range", ["0", "1"]), ("target_range", 5), ("target_range", ["a"]),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_the_metrics_is_refused(name, told):
    config = {**META["config"], name: told}
    with pytest.raises(sm.StateFormatError, match="invalid declaration"):
        sm.from_bytes(forged({**META, "config": config}, ARRAYS))


def test_rows_that_are_not_as_declared_are_refused():
    config = {**META["config"], "labels": None, "types": {**META["config"]["types"]}}
    config["types"] |= {"y_true": "integers", "y_pred": "integers"}
    with pytest.raises(sm.StateFormatError, match="different kinds of rows|cannot be taken"):
        sm.from_bytes(forged({**META, "config": config}, ARRAYS))


@pytest.mark.parametrize("name", ["newest", "displaced"])
@pytest.mark.parametrize("time", [LATEST * SECOND, 2**63 - 1, 2**63, -2])
def test_times_beyond_those_that_are_taken(name, time):
    meta = json.loads(json.dumps(META))
    (meta["rows"] if name == "displaced" else meta)[name] = time
    with pytest.raises(sm.StateFormatError, match="no valid newest time"):
        sm.from_bytes(forged(meta, ARRAYS))


def test_more_rows_than_may_wait_are_refused():
    waiting = len(ARRAYS["rows/times"])
    taken = {**META, "config": {**META["config"], "max_pending": waiting}}
    assert sm.from_bytes(forged(taken, ARRAYS)).n_rows
    taken["config"]["max_pending"] -= 1
    with pytest.raises(sm.StateFormatError, match="waiting rows of the state are not valid"):
        sm.from_bytes(forged(taken, ARRAYS))
