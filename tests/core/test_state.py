"""The state format: round trips, and every way a file can be broken."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.forging import forged, joined, split
from kinds.rows import statistics_of
from oracles.table import ORACLES, distinct, thinned

import streammetrics as sm
from streammetrics.core.registry import PUBLIC, REGISTRY, registered_name
from streammetrics.core.state.arrays import json_array
from streammetrics.core.state.container import packed, unpacked
from streammetrics.statistics.rankings import RankingBuffer


def example():
    metrics = {"f1": sm.F1(threshold=0.5), "acc": sm.Accuracy()}
    return sm.MetricSet(metrics).update(y_true=[0, 1], y_score=[0.2, 0.7], y_pred=[1, 1])


def test_every_flipped_bit_is_noticed():
    blob = example().to_bytes()
    for place in range(len(blob)):
        for bit in (1, 0x80) if place % 3 else (1 << (place % 8),):
            broken = bytearray(blob)
            broken[place] ^= bit
            with pytest.raises(sm.StateFormatError, match="checksum|cut short"):
                sm.from_bytes(bytes(broken))


def test_every_cut_is_noticed():
    blob = example().to_bytes()
    for length in range(len(blob)):
        with pytest.raises(sm.StateFormatError, match="checksum|cut short"):
            sm.from_bytes(blob[:length])
    with pytest.raises(sm.StateFormatError, match="checksum"):
        sm.from_bytes(blob + b"\0")


@pytest.mark.parametrize("blob", [b"", b"hello world, this is no state", b"\xff" * 100, bytes(64)])
def test_other_bytes(blob):
    with pytest.raises(sm.StateFormatError, match="not a state of streammetrics"):
        sm.from_bytes(blob)


def test_the_forger_can_write_a_good_state():
    assert sm.from_bytes(forged(example().to_bytes(), lambda header, meta: None)) == example()


@pytest.mark.parametrize(
    "change",
    [
        lambda header, meta: meta.update(format=99),
        lambda header, meta: meta.update(format="1"),
        lambda header, meta: meta.pop("format"),
        lambda header, meta: meta.update({"class": "os.system"}),
        lambda header, meta: meta.pop("class"),
        lambda header, meta: meta.update(feeds=[]),
        lambda header, meta: meta["feeds"][0].__setitem__(1, -5),
        lambda header, meta: meta["feeds"][0].__setitem__(1, "many"),
        lambda header, meta: meta["metrics"][0]["parameters"].update(threshold="high"),
        lambda header, meta: meta["metrics"][0]["parameters"].update(speed=1),
        lambda header, meta: meta["metrics"][0].update({"class": "Metric"}),
        lambda header, meta: meta.update(metrics=None),
        lambda header, meta: meta["columns"].update(y_tru="label"),
        lambda header, meta: header["0/digits"].update(dtype="U64"),
        lambda header, meta: header["0/digits"].update(shape=[2, 2]),
        lambda header, meta: header["0/digits"].update(shape=[1, 4]),
        lambda header, meta: header.update({"9/digits": header.pop("0/digits")}),
        lambda header, meta: header.update({"0/more": header.pop("0/digits")}),
    ],
)
def test_forged_metadata(change):
    words = "the state|the array|parameters|exact sums|the counts of rows|cannot form a set"
    with pytest.raises(sm.StateFormatError, match=words):
        sm.from_bytes(forged(example().to_bytes(), change))


def test_base_classes_of_the_package_have_no_states():
    sm.Slices(example().copy().reset(), by=[["country"]])  # imports the bases of sets by key
    bases = [name for name in REGISTRY if "." not in name and name not in {*PUBLIC, "UnitSet"}]
    assert {"KeyedSet", "RegressionMetric"} <= {*bases}
    for name in (*bases, "Metric"):
        change = {"class": name, "parameters": {}}
        for blob in (example().to_bytes(), sm.MAE().update([1.0], [2.0]).to_bytes()):
            with pytest.raises(sm.StateFormatError, match=f"a.? {name}, which is not defined here"):
                sm.from_bytes(forged(blob, lambda _, meta, change=change: meta.update(change)))


@pytest.mark.parametrize(
    ("metric", "rows", "change", "words"),
    [
        (
            sm.Purity(),
            ([0, 0, 1], [0, 1, 1]),
            lambda meta: meta["feeds"][0].__setitem__(1, 7),
            "not those of 7 rows",
        ),
        (
            sm.ExpectedCost(cost=[[0, 1], [1, 0]], labels=[0, 1]),
            ([0, 1], [1, 1]),
            lambda meta: meta["parameters"].update(labels=0.5),
            "labels=0.5: expected a sequence of labels",
        ),
    ],
)
def test_what_a_forged_state_says_of_itself_is_checked(metric, rows, change, words):
    blob = metric.update(*rows).to_bytes()
    with pytest.raises(sm.StateFormatError, match=words):
        sm.from_bytes(forged(blob, lambda _, meta: change(meta)))


def test_weights_of_classes_are_those_of_two_at_least():
    statistic = sm.D2LogLoss().update([0, 1, 1], [0.1, 0.6, 0.7]).statistics()[1]
    for digits in (np.ones((1, 1), np.int64), np.zeros((2, 0), np.int64), -np.ones((2, 1), int)):
        arrays = {"classes/rows/digits": digits, "classes/rows/exponent": np.array(0)}
        with pytest.raises(sm.StateFormatError, match="weights of classes are not those"):
            statistic.restored(arrays)


def ledger():
    shards = {name: sm.Accuracy().update([1, 0], [1, n]) for n, name in enumerate("abc")}
    made = sm.Ledger()
    for name, metric in shards.items():
        made.add(name, metric)
    return made.add(7, sm.Accuracy().update([1], [1])).seal(["b"])


def with_arrays(blob, change):
    """Return a file after a change of its arrays."""
    file = unpacked(blob)
    arrays = {name: array.copy() for name, array in file.arrays.items()}
    change(arrays)
    return packed({"class": file.meta["class"]}, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update(other=arrays.pop("empty")),
        lambda arrays: arrays.update(other=arrays["empty"]),
        lambda arrays: arrays.update(empty=arrays["blocks"]),
        lambda arrays: arrays.update(digests=arrays["digests"] ^ 1, kinds=arrays["kinds"] ^ 1),
        lambda arrays: arrays.update(kinds=arrays["kinds"].astype(np.int8)),
        lambda arrays: arrays.update(kinds=arrays["kinds"][::-1].copy()),
        lambda arrays: arrays.update(attempts=-arrays["attempts"]),
        lambda arrays: arrays.update(attempts=arrays["attempts"].astype(np.float64)),
        lambda arrays: arrays.update(names=arrays["names"][:-1]),
        lambda arrays: arrays.update(names=json_array([None, "a", "b", "c"])),
        lambda arrays: arrays.update(names=json_array([7, "a", "b", "b"])),
        lambda arrays: arrays.update(names=json_array(["a", "b", "c", 7])),
        lambda arrays: arrays.update(names=json_array([7, "a", "b", "c", "d"])),
    ],
)
def test_forged_ledgers(change):
    assert with_arrays(ledger().to_bytes(), lambda _: None) == ledger().to_bytes()
    with pytest.raises(sm.StateFormatError, match="ledger|array|not the bytes|text"):
        sm.from_bytes(with_arrays(ledger().to_bytes(), change))


@pytest.mark.parametrize("name", ["empty", "blocks"])
@pytest.mark.parametrize(
    "inside", [ledger(), sm.F1().update([1, 0], [1, 0]), sm.F1(), sm.Accuracy()], ids=repr
)
def test_a_ledger_holds_no_ledger_and_no_other_metric(inside, name):
    blob = np.frombuffer(inside.to_bytes(), np.uint8)
    sizes = {"blocks/sizes": np.array([blob.size])} if name == "blocks" else {}
    forgery = with_arrays(ledger().to_bytes(), lambda a: a.update({name: blob, **sizes}))
    if type(inside) is sm.Accuracy:
        assert sm.from_bytes(forgery).n_rows == 7 - 2 * (name == "blocks")
    else:
        with pytest.raises(sm.StateFormatError, match="not fit|metrics and sets|of its own"):
            sm.from_bytes(forgery)


# Without it a state is one of queries that weigh one.
OPTIONAL = {(RankingBuffer, "weights")}


@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES), columns=False))
def test_no_array_of_any_metric_can_be_lost_or_spoiled(oracle):
    metric = oracle.metric.copy().update(**oracle.rows(np.random.default_rng(0), 50))
    statistics = statistics_of(metric)
    for statistic in statistics:
        arrays = statistic.arrays()
        for name in arrays:
            rest = {key: value for key, value in arrays.items() if key != name}
            assert refuses(statistic, rest) != ((type(statistic), name) in OPTIONAL), f"{name} lost"
            other = np.int64 if arrays[name].dtype.kind == "f" else np.float64
            with np.errstate(invalid="ignore"):  # infinities are no integers
                cast = arrays[name].astype(other)
            assert refuses(statistic, {**arrays, name: cast}), f"{name} cast"
            longer = np.concatenate([arrays[name].reshape(-1), arrays[name].reshape(-1)[:1]])
            if longer.size > arrays[name].size:
                assert refuses(statistic, {**arrays, name: longer}), f"{name} longer"


def refuses(statistic, arrays):
    try:
        type(statistic).from_arrays(statistic.config, arrays)
    except sm.StateFormatError:
        return True
    return False


def test_a_users_metric_must_be_defined_to_be_read():
    class Mine(sm.Accuracy):
        """A metric of the user's."""

    blob = Mine().update([1], [1]).to_bytes()
    assert type(sm.from_bytes(blob)) is Mine
    del REGISTRY[registered_name(Mine)]
    with pytest.raises(sm.StateFormatError, match="import its module first"):
        sm.from_bytes(blob)


def test_a_class_defined_anew_is_the_one_that_is_read():
    classes, blobs = [], []
    for _ in range(2):

        class Mine(sm.Accuracy):
            """A metric of the user's."""

        classes.append(Mine)
        suite = sm.MetricSet({"a": Mine(), "f1": sm.F1()}).update(y_true=[0, 1], y_pred=[0, 1])
        for metric in (Mine().update([1], [1]), suite):
            blobs.append(metric.to_bytes())
            back = sm.from_bytes(blobs[-1])
            assert type(back if isinstance(back, Mine) else back["a"]) is Mine
            assert back.to_bytes() == blobs[-1]
    assert blobs[:2] == blobs[2:]
    del REGISTRY[registered_name(classes[1])]
    for blob in blobs:
        with pytest.raises(sm.StateFormatError, match="import its module first"):
            sm.from_bytes(blob)


def test_states_that_were_read_share_nothing():
    suite = sm.MetricSet({"f1": sm.F1(), "acc": sm.Accuracy()}, columns={"y_true": "label"})
    blob = suite.update(label=[0, 1, 1], y_pred=[0, 1, 0]).to_bytes()
    one, other, third = (sm.from_bytes(blob) for _ in range(3))
    one.update(label=[1], y_pred=[0])
    other.columns["y_true"] = "another"
    assert [suite["f1"].n_rows for suite in (one, other, third)] == [4, 3, 3]
    assert third.columns == {"y_true": "label"}
    assert sm.from_bytes(blob).reset().n_rows == 0
    assert sm.from_bytes(blob).to_bytes() == third.to_bytes() == blob


@pytest.mark.parametrize("rest", ["", "{", "[]", "[[{},0,0]", '[[{},0,0]],"a":1', "[" * 99])
def test_a_known_opening_makes_no_file_of_what_follows_it(rest):
    blob = sm.Mean().update([1.0, 2.0]).to_bytes()
    assert sm.from_bytes(blob).compute() == 1.5
    header, body = split(blob)
    text = header["__metadata__"]["streammetrics"]
    opening, _, _ = text.rpartition(',"feeds":')
    header["__metadata__"]["streammetrics"] = f'{opening},"feeds":{rest}}}'
    with pytest.raises(sm.StateFormatError, match="not JSON|not the bytes|what rows|do not fit"):
        sm.from_bytes(joined(header, body))
