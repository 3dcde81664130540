"""Inputs of a window are those of its rows, however the events came, and whether labels came."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from live.events import START

import streammetrics as sm
from streammetrics.core.state.container import packed, unpacked
from streammetrics.live.forgetting import forget, keys_named
from streammetrics.live.inputs import CELLS

TIERS = (("1min", "1h"), ("5min", "4h"))
AGES = np.random.default_rng(1).normal(40, 10, 300).round()
TRAINED = np.random.default_rng(2).choice(["DE", "FR", "US"], 300)
INPUTS = {
    "age": {"type": "number", "range": [20, 60], "reference": AGES},
    "country": {"type": "category", "categories": ["PL"], "reference": TRAINED},
    "y_score": "number",
}
KNOWN = {*TRAINED, "PL"}


def watched(metrics=None, **parameters):
    suite = sm.MetricSet({"auc": sm.ROCAUC()}) if metrics is None else metrics
    defaults = {"tiers": TIERS, "label_ttl": "5min", "label_lateness": "30min", "inputs": INPUTS}
    return sm.Live(suite, **defaults | parameters)


def feed(live, kind, columns):
    getattr(live, kind)(**columns)


def some(random, n):
    """Return rows as (second, score, age, country, label or None, observed)."""
    ages = [None, math.nan, *range(10, 80, 5), -0.0, 0.0, 33.5]
    return [
        (
            random.randint(0, 450),
            random.randint(0, 4) / 4,
            random.choice(ages),
            random.choice(["DE", "FR", "PL", "XX", "YY", None]),
            random.choice([0, 1, None]),
            random.random() < 0.3,
        )
        for _ in range(n)
    ]


def history(events):
    found = []
    for place, (second, score, age, country, label, alone) in enumerate(events):
        row = {"time": START + second, "y_score": score, "age": age, "country": country}
        if alone:
            more = {"id": f"o{place}"} if place % 2 else {}
            found.append(("observe", {**row, "y_true": label or 0, **more}))
            continue
        found.append(("predict", {"id": place, **row}))
        if label is not None:
            found.append(("label", {"id": place, "time": START + second + 30, "y_true": label}))
    return found


def table(events):
    """Return the inputs of rows as plain Python and the public drift metrics have them."""
    ages = [age for _, _, age, *_ in events if age is not None and not math.isnan(age)]
    countries = [country for *_, country, _, _ in events if country is not None]
    n = len(events)
    found = {
        "age": (n, n - len(ages), sum(not 20 <= age <= 60 for age in ages), None),
        "country": (n, n - len(countries), None, sum(x not in KNOWN for x in countries)),
        "y_score": (n, 0, None, None),
    }
    known = [x if x in KNOWN else "(unseen)" for x in countries]
    distances = {
        "age": {
            "ks": of_samples(sm.KSDistance(max_bins=CELLS), AGES, ages),
            "psi": of_samples(sm.PopulationStability(max_bins=CELLS, pseudo_count=0.5), AGES, ages),
            "wasserstein": of_samples(sm.Wasserstein(max_bins=CELLS), AGES, ages),
        },
        "country": {
            "psi": of_samples(
                sm.PopulationStability(bins="categories", pseudo_count=0.5), TRAINED, known
            ),
            "js": of_samples(sm.JensenShannon(bins="categories"), TRAINED, known),
        },
        "y_score": {},
    }
    return found, distances


def of_samples(metric, reference, current):
    if not len(current):
        return (math.nan,) * 3
    metric.update(sample=[0] * len(reference) + [1] * len(current), values=[*reference, *current])
    return (metric.compute(), *metric.bounds())


def as_plain(found):
    counts = {one.name: one[1:5] for one in found}
    return counts, {
        one.name: {method: each[:3] for method, each in one.distances.items()} for one in found
    }


def assert_same(found, events):
    counts, distances = as_plain(found)
    expected = table(events)
    assert counts == expected[0]
    assert repr(distances["age"]) == repr(expected[1]["age"])
    for name in ("country", "y_score"):
        for method, values in expected[1][name].items():
            assert distances[name][method] == pytest.approx(values, rel=1e-13, nan_ok=True)
        assert distances[name].keys() == expected[1][name].keys()


@pytest.mark.parametrize(
    "seed", [*range(8), *[pytest.param(n, marks=pytest.mark.long) for n in range(8, 60)]]
)
def test_any_order_and_merge_tree_gives_the_inputs_of_the_rows(seed):
    random = Random(seed)
    events = some(random, 1 + 4 * seed)
    told = history(events)
    whole = watched()
    for kind, columns in told:
        feed(whole, kind, columns)
    again = [each for each in told if "id" in each[1]]
    every = random.sample(told, len(told)) + random.sample(again, len(again) // 4)
    states = [watched() for _ in range(random.randint(1, 3))]
    for kind, columns in every:
        into = random.choice(states)
        one = random.random() < 0.7
        feed(into, kind, columns if one else {name: [value] for name, value in columns.items()})
        if random.random() < 0.1:
            into.inputs("1h")
        if random.random() < 0.1:
            states[states.index(into)] = sm.from_bytes(into.to_bytes())
    merged = states.pop()
    merged.merge(*states)
    assert merged.to_bytes() == whole.to_bytes()
    assert_same(merged.inputs("1h"), events)
    newest = START + max(event[0] for event in events)
    begin = newest // 60 * 60 - 240 - START
    now = merged.now(newest).inputs("5min", end=newest)
    assert_same(now, [event for event in events if event[0] >= begin])
    later = {"id": "later", "time": START + 3000, "y_score": 0.5, "age": 30, "country": "DE"}
    for live in (merged, whole):
        live.predict(**later)  # the others leave
    assert len(merged.flush()._shared.current.join.table) == 1
    assert merged.to_bytes() == whole.to_bytes()
    rest = [*events, (3000, 0.5, 30, "DE", None, False)]
    for live in (merged, merged.copy(), sm.from_bytes(merged.to_bytes())):
        assert_same(live.inputs("1h"), rest)


def columns(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "id": np.arange(n),
        "time": np.sort(START + rng.integers(0, 1500, n)).astype(float),
        "y_score": rng.integers(0, 17, n) / 16,
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(45, 10, n).round()),
        "country": rng.choice(["DE", "FR", "XX"], n),
    }


def rows_of(sent):
    every = zip(
        *(np.asarray(sent[name]).tolist() for name in ("y_score", "age", "country")), strict=True
    )
    return [(0, score, age, country, None, False) for score, age, country in every]


def test_rows_that_wait_left_expired_or_were_evicted_are_all_there():
    sent = columns(400)
    for parameters in ({}, {"label_ttl": "2min", "label_lateness": "1min"}, {"default_label": 0}):
        live = watched(**parameters)
        live.predict(**sent)
        assert_same(live.inputs("1h"), rows_of(sent))
    crowded = watched(max_pending=100, label_ttl="1h")
    with pytest.warns(UserWarning, match="max_pending"):
        crowded.predict(**sent)
    assert crowded.coverage("1h").displaced
    assert_same(crowded.inputs("1h"), rows_of(sent))


def test_labels_change_nothing_and_neither_does_a_label_that_does_not_fit():
    live = watched()
    sent = columns(200)
    live.predict(**sent)
    before = live.inputs("1h")
    live.label(id=np.arange(100), time=sent["time"][:100] + 60, y_true=np.arange(100) % 2)
    live.label(id=np.arange(50), time=sent["time"][:50] + 70, y_true=[0] * 50, version=2)
    assert live.inputs("1h") == before
    assert live.window("1h").n_rows == 100


def test_panes_fold_into_coarser_ones_and_leave_with_them():
    live = watched(tiers=[("1min", "5min"), ("10min", "20min")], label_ttl="1min",
                   label_lateness="1min")  # fmt: skip
    sent = columns(400)
    live.predict(**sent)
    first = live.span("20min")[0].timestamp()
    young = sent["time"] >= first
    assert 0 < young.sum() < 400
    assert_same(live.inputs("20min"), rows_of({name: c[young] for name, c in sent.items()}))


def test_many_values_keep_to_their_memory_and_to_certain_bounds():
    rng = np.random.default_rng(5)
    reference, current = rng.normal(size=20_000), rng.normal(0.3, 1, 20_000)
    live = watched(sm.Mean(), inputs={"x": {"type": "number", "reference": reference}})
    live.observe(time=np.full(20_000, START), values=np.ones(20_000), x=current)
    (found,) = live.inputs("1h")
    exact = {
        "ks": of_samples(sm.KSDistance(), reference, current)[0],
        "psi": of_samples(sm.PopulationStability(pseudo_count=0.5), reference, current)[0],
        "wasserstein": of_samples(sm.Wasserstein(), reference, current)[0],
    }
    for method, value in exact.items():
        distance = found.distances[method]
        assert distance.low <= value <= distance.high
        assert distance.high - distance.low < value
        assert distance.chance < value
    assert sm.from_bytes(live.to_bytes()).nbytes < 80_000


def test_chance_is_rarely_reached_without_drift():
    rng = np.random.default_rng(6)
    reference, words = rng.normal(size=2000), rng.choice(list("abcdef"), 2000)
    inputs = {
        "x": {"type": "number", "reference": reference},
        "w": {"type": "category", "reference": words},
    }
    beyond = []
    for _ in range(100):
        live = watched(sm.Mean(), inputs=inputs)
        x, w = rng.normal(size=300), rng.choice(list("abcdef"), 300)
        live.observe(time=np.full(300, START), values=np.ones(300), x=x, w=w)
        every = [each for one in live.inputs("1min") for each in one.distances.values()]
        beyond += [each.value > each.chance for each in every]
    assert sum(beyond) <= 6  # of 500


def test_types_of_columns_and_missing_values():
    live = watched(
        sm.Mean(), inputs={"n": "number", "c": {"type": "category", "categories": [1, 2]}}
    )
    every = [
        ([1, None, 3], [1, None, 3]),
        (pd.Series([1.5, None, 2]), pd.Series(["1", None, "9"], dtype="category")),
        (pa.array([1, None, 3]), pa.array(["2", None, "7"])),
        (pd.Series([True, False, pd.NA], dtype="boolean"), pd.Series([1, 3, pd.NA], dtype="Int64")),
        (np.array([1.0, np.nan, 2.0]), np.array([1.0, np.nan, 3.0])),
        ([None] * 3, [None] * 3),
    ]
    for numbers, categories in every:
        live.observe(time=[START] * 3, values=[0.0] * 3, n=numbers, c=categories)
    live.observe(time=[START] * 2, values=[0.0] * 2)
    live.observe(time=START, values=0.0)
    live.observe(time=START, values=0.0, n=3, c=True)
    live.observe(time=START, values=0.0, n=None, c="x")
    number, category = live.inputs("1h")
    assert number[:3] == (("n", 23, 12))
    assert category[:3] == ("c", 23, 11)
    assert category.unseen == 6
    assert number.outside is None


def test_single_events_that_lack_an_input_are_buffered_with_the_others():
    live = watched()
    every = [(30, "DE"), (None, "DE"), (float("nan"), None), (np.float64("nan"), "XX"), (50, None)]
    events = []
    for place, (age, country) in enumerate(every * 3):
        live.predict(id=place, time=START, y_score=0.5, age=age, country=country)
        lacks = age is None or math.isnan(age)
        events.append((0, 0.5, None if lacks else age, country, None, False))
    assert live._ingest.predicted.n > 10
    assert_same(live.inputs("1h"), events)


def test_an_input_may_be_a_slice_key_or_what_metrics_read():
    live = watched(by="country", keep_rows=20)
    sent = columns(300)
    live.predict(**sent)
    live.observe(time=START, y_score=0.5, y_true=1, age=33, country=None)
    assert_same(live.inputs("1h"), [*rows_of(sent), (0, 0.5, 33, None, 1, True)])
    live.label(id=np.arange(300), time=sent["time"], y_true=np.arange(300) % 2)
    assert live.window("1h", by="country").n_rows == 301
    assert live.last(20).n_rows == 20
    again = sm.from_bytes(live.to_bytes())
    assert again.inputs("1h") == live.inputs("1h")
    assert again.last(20) == live.last(20)


def test_a_store_is_read_with_its_inputs(tmp_path):
    path = tmp_path / "live.db"
    sent = columns(200)
    with watched(store=path) as live:
        live.predict(**{name: column[:100] for name, column in sent.items()})
    with watched(store=path, durable=True) as live, watched(store=path) as other:
        for place in range(100, 200):
            live.predict(**{name: column[place].item() for name, column in sent.items()})
        live.flush()
        assert_same(other.inputs("1h"), rows_of(sent))
    for inputs, told in (
        (None, "the input age is"),
        ({**INPUTS, "age": {**INPUTS["age"], "reference": AGES + 1}}, "the input age is"),
    ):
        with pytest.raises(sm.StreamMetricsError, match=told):
            watched(store=path, inputs=inputs)


def test_rows_that_are_forgotten_leave_the_inputs():
    def served(ids, lateness="2min"):
        suite, inputs = sm.Accuracy(), {name: INPUTS[name] for name in ("age", "country")}
        live = watched(suite, label_ttl="2min", label_lateness=lateness, inputs=inputs)
        for place in ids:
            row = {
                "y_pred": place % 2,
                "age": 20 + place % 50,
                "country": "DE" if place % 3 else None,
            }
            live.predict(id=f"r{place}", time=START + place, **row)
            live.label(id=f"r{place}", time=START + place, y_true=place % 5 % 2)
        return live

    gone = [1, 2, 500, 901]
    live, others = served(range(1000)), served([n for n in range(1000) if n not in gone])
    pipeline = live._ingest.snapshot()
    found = forget(
        pipeline, keys_named([f"r{n}" for n in gone]), served(gone, "1h")._ingest.snapshot()
    )
    assert (found.waiting, found.taken_back, found.kept) == (1, 3, ())
    mine, theirs = (unpacked(one.to_bytes()).arrays for one in (sm.Live._of(pipeline), others))
    held = [name for name in mine if name.startswith("inputs/")]
    assert held == [name for name in theirs if name.startswith("inputs/")]
    assert all(np.array_equal(mine[name], theirs[name]) for name in held)
    assert sm.Live._of(pipeline).inputs("1h") == others.inputs("1h")


def test_the_result_is_a_table():
    live = watched()
    live.predict(**columns(100))
    found = live.inputs("1h")
    frame = found.to_frame()
    assert list(frame.index) == ["age", "country", "y_score"]
    assert frame.loc["country", "unseen"] == found[1].unseen
    assert found.to_dict()["age"]["distances"]["ks"]["value"] == frame.loc["age", "ks"]
    assert str(found).splitlines()[0].split()[:5] == ["input", "rows", "nulls", "outside", "unseen"]
    assert watched().inputs("1h")[0][1:5] == (0, 0, 0, None)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
def test_bad_inputs_are_refused_with_column_count_and_row_and_nothing_changes(durable, tmp_path):
    store = {"store": tmp_path / "live.db", "durable": True} if durable else {}
    with watched(**store) as live:
        live.predict(**columns(50))
        good = {"age": [30, 31, 32, 33], "country": ["DE"] * 4}
        for kind, more in (
            ("predict", {"id": [101, 102, 103, 104]}),
            ("observe", {"y_true": [1] * 4}),
            ("observe", {"y_true": [1] * 4, "id": [101, 102, 103, 104]}),
        ):
            for name, values, told in (
                ("age", [30, "x", 31, 32], "age holds strings and numbers"),
                (
                    "age",
                    ["a", None, "b", "c"],
                    r"age is text.* in 3 rows, first in row 0 .*'category'",
                ),
                ("age", [1.0, np.inf, 2.0, -np.inf], "age is infinite in 2 rows, first in row 1"),
                ("age", [[1], [2], [3], [4]], "age has int64 of shape"),
                ("age", [1, 2, 3], "age has 3 rows, the other columns have 4"),
                (
                    "country",
                    [1.5, 2, 3, 4.5],
                    "country is not a category .* in 2 rows, first in row 0",
                ),
                ("country", [b"x"] * 4, "country holds a bytes"),
                ("country", [["DE"]] * 4, "country has a list in each row"),
            ):
                alike = {"time": [START] * 4, "y_score": [0.5] * 4, **good, **more}
                before = live.to_bytes()
                with pytest.raises(sm.InvalidBatchError, match=told) as caught:
                    feed(live, kind, {**alike, name: values})
                assert caught.value.column == name
                if len(values) == 4 and not isinstance(values[0], list):
                    one = {key: column[0] for key, column in alike.items()}
                    bad = next((v for v in values if v in ("a", np.inf, 1.5, b"x")), None)
                    if bad is not None:
                        with pytest.raises(sm.InvalidBatchError, match=name):
                            feed(live, kind, {**one, name: bad})
                assert live.to_bytes() == before


@pytest.mark.parametrize("country", [["DE"], ("DE",), np.array(["DE"])])
def test_a_list_is_no_category_of_an_event(country):
    live = watched()
    live.predict(id=1, time=START, y_score=0.5, country="DE")
    with pytest.raises(sm.InvalidBatchError, match="country has a list in each row"):
        live.predict(id=2, time=START, y_score=0.5, country=country)
    assert live.inputs("1h")[0].rows == 1


@pytest.mark.parametrize(
    ("name", "lack"),
    [
        ("age/psi", "the input 'age' has no reference"),
        ("age/outside", "the input 'age' has no range"),
        ("country/js", "the input 'country' has no reference"),
        ("country/unseen", "the input 'country' has no categories"),
        ("country/ks", "there is no metric 'country/ks'; there are: auc"),
    ],
)
def test_a_rule_of_an_input_says_what_its_declaration_lacks(name, lack):
    live = watched(inputs={"age": "number", "country": "category"})
    with pytest.raises(ValueError, match=lack):
        live.alerts([sm.Above(name, 0.1, window="1min")])


def test_a_name_that_is_not_declared_is_refused():
    live = watched()
    with pytest.raises(sm.InvalidBatchError, match="agee"):
        live.predict(id=1, time=START, y_score=0.5, agee=3)
    live.predict(id=1, time=START, y_score=0.5, age=3)
    live.predict(id=2, time=START, y_score=0.5, country="DE")
    assert live.inputs("1h")[0].nulls == 1


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"age": "text"}, "age has the type 'text'; expected 'number' or 'category'"),
        ({"age": 7}, "age is 7; expected"),
        ({"age": {"type": "number", "rang": [0, 1]}}, "no key 'rang'.*range"),
        ({"age": {"type": "number", "range": [1, 0]}}, "expected the smallest and the largest"),
        ({"age": {"type": "number", "range": [1, math.nan]}}, "expected the smallest"),
        ({"age": {"type": "number", "categories": ["a"]}}, "is a number and has no categories"),
        ({"c": {"type": "category", "range": [0, 1]}}, "is a category and has no range"),
        ({"c": {"type": "category", "categories": []}}, "expected a list of texts or integers"),
        ({"c": {"type": "category", "categories": range(10_001)}}, "expected a list"),
        ({"c": {"type": "category", "categories": [*range(10_001)]}}, "10,001 categories: at most"),
        ({"c": {"type": "category", "reference": [0.5]}}, "no column of text, integers"),
        ({"age": {"type": "number", "reference": []}}, "the reference has seen no rows"),
        ({"age": {"type": "number", "reference": "no.state"}}, "age: .*no.state"),
        ({"age": {"type": "number", "reference": sm.Accuracy()}}, "there is no histogram"),
        ({"c": {"type": "category", "reference": sm.Accuracy()}}, "no counts of categories"),
        ({"id": "number"}, "'id' is not the name of an input"),
        ({"a/b": "number"}, "'a/b' has a /"),
        ({"y_true": "number"}, "'y_true' is the label"),
    ],
)  # fmt: skip
def test_declarations_that_are_not_valid(inputs, message):
    with pytest.raises(ValueError, match=message):
        watched(inputs=inputs)


def test_names_with_two_meanings_and_other_types_are_refused():
    with pytest.raises(TypeError, match="expected names with types"):
        watched(inputs=["age"])
    with pytest.raises(ValueError, match="'age/nulls' is also the name of a metric"):
        watched(sm.MetricSet({"age/nulls": sm.ROCAUC()}))
    with pytest.raises(ValueError, match="has 3 numbers a row, and an input has one"):
        watched(labels=[0, 1, 2], inputs={"y_score": "number"})
    with pytest.raises(ValueError, match=r'Live\(inputs={"age": "number"}\)'):
        watched(inputs=None).inputs("1h")
    with pytest.raises(ValueError, match="'input/age' is also a column of events"):
        watched(sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_score": "input/age"}))
    both, few = ([0, 1], [1.0, 2.0]), ([0, 0], [1.0, 2.0])
    categories = {"type": "category"}
    for told, state, message in (
        ({"type": "number"}, sm.KSDistance().update(*both), "rows of a current sample"),
        ({"type": "number"}, sm.KSDistance().update(*few, sample_weight=[0.5, 2.0]), "weights"),
        (categories, of_categories().update([0, 1], ["a", "b"]), "rows of a current sample"),
        (categories, of_categories().update([0], ["a"], sample_weight=[0.5]), "weights"),
        (categories, of_categories(), "or none"),
    ):
        with pytest.raises(ValueError, match=message):
            watched(inputs={"x": {**told, "reference": state}})


def of_categories():
    return sm.PopulationStability(bins="categories")


@pytest.mark.parametrize("form", [lambda state, _: state, lambda state, _: state.to_bytes(), None])
def test_references_are_states_bytes_or_files(form, tmp_path):
    ages = sm.MetricSet({"p": sm.PopulationStability()}, columns={"values": "age"})
    ages.update(sample=[0] * 300, age=AGES)
    words = sm.PopulationStability(bins="categories").update([0] * 300, TRAINED)
    made = {}
    for name, state in (("age", ages), ("country", words)):
        path = tmp_path / f"{name}.state"
        state.save(path)
        made[name] = path if form is None else form(state, path)
    inputs = {
        "age": {**INPUTS["age"], "reference": made["age"]},
        "country": {**INPUTS["country"], "reference": made["country"]},
        "y_score": "number",
    }
    live = watched(inputs=inputs)
    sent = columns(100)
    live.predict(**sent)
    assert_same(live.inputs("1h"), rows_of(sent))
    live.merge(watched())  # of the same configuration as with columns


def test_states_of_other_inputs_are_not_merged():
    other = watched(inputs={**INPUTS, "age": {**INPUTS["age"], "range": [0, 1]}})
    with pytest.raises(sm.IncompatibleMetricsError, match="the input age is"):
        watched().merge(other)
    assert "inputs" not in unpacked(watched(inputs=None).to_bytes()).meta["config"]


def test_forged_states_are_refused():
    live = watched()
    sent = columns(100)
    live.predict(**sent)
    meta, arrays = unpacked(live.to_bytes())[:2]

    def refused(message, meta=meta, **changed):
        forged = {name: array for name, array in {**arrays, **changed}.items() if array is not None}
        with pytest.raises(sm.StateFormatError, match=message):
            sm.from_bytes(packed(meta, forged, ""))

    refused("numbers", **dict.fromkeys([name for name in arrays if name.startswith("inputs/")]))
    counts = "references/1/counts"
    refused("does not fit|not the one", **{counts: arrays[counts][1:]})
    refused("not the one", **{counts: arrays[counts] + [1, 0, 0, 0, 0]})
    refused("not the one", **dict.fromkeys([n for n in arrays if n.startswith("references/0/")]))
    names = meta["rows"]["names"]
    for name, value in (("input/age", np.nan), ("input/country", 9)):
        place = f"rows/column/{names.index(name)}/values"
        wrong = arrays[place].copy()
        wrong[0] = value
        refused("waiting rows is not valid", **{place: wrong})
    at = names.index("input/age")
    lacking = {**meta["rows"], "names": [*names[:at], *names[at + 1 :]]}
    refused("columns|input", meta={**meta, "rows": lacking})
    for told in ({}, {"age": 1}, {**meta["config"]["inputs"], "age": {"type": "number"}}):
        refused("input|keeps time", meta={**meta, "config": {**meta["config"], "inputs": told}})


# --- rules ---------------------------------------------------------------------------------------


def drifting(**parameters):
    live = watched(**parameters)
    n = 7200
    rng = np.random.default_rng(7)
    late = np.arange(n) >= n // 2
    live.predict(
        id=np.arange(n), time=START + np.arange(n), y_score=np.full(n, 0.5),
        age=np.where(late, np.nan, rng.choice(AGES, n)),
        country=np.where(late & (rng.random(n) < 0.2), "XX", rng.choice(TRAINED, n)),
    )  # fmt: skip
    return live


def test_rules_watch_inputs_by_name_and_do_not_wait_for_labels():
    live = drifting()
    rules = [
        sm.Above("age/nulls", 0.3, window="30min", min_rows=100),
        sm.Above("country/unseen", 0.1, window="30min", min_rows=100),
        sm.Above("country/psi", 0.2, window="30min", min_rows=100),
        sm.Above("age/ks", 0.2, window="30min", min_rows=100),
        sm.BurnRate("age/nulls", 0.9, windows=("30min", "5min"), factor=2),
        sm.Below("auc", 0.5),
    ]
    nulls, unseen, psi, ks, burn, auc = live.alerts(rules)
    assert [one.state for one in (nulls, unseen, psi, burn)] == ["firing"] * 4
    assert ks.state == "no data"  # all are missing
    assert auc.state == "no data"
    assert nulls.value == 1.0
    assert nulls.rows == 1800
    assert START + 3600 < nulls.since.timestamp() <= START + 3600 + 700
    assert nulls.until.timestamp() > START + 7000
    again = sm.from_bytes(live.to_bytes()).alerts(rules)
    assert [one.to_dict() for one in again] == [one.to_dict() for one in live.alerts(rules)]


def test_changes_of_shares_of_inputs_are_those_of_a_metric_that_sees_all_rows():
    live, dice = drifting(), np.random.default_rng(7)
    shares = sm.Live(sm.MetricSet({"nulls": sm.Accuracy()}), tiers=TIERS)
    late = (np.arange(7200) >= 3600).astype(int)
    shares.observe(time=START + np.arange(7200), y_true=np.ones(7200, int), y_pred=late)
    given = {"false_alarms": "1 a year", "after": "1min"}
    nulls, unseen = live.alerts(
        [sm.Change("age/nulls", 0.1, **given), sm.Change("country/unseen", 0.01, **given)]
    )
    (same,) = shares.alerts([sm.Change("nulls", 0.1, direction="up", **given)])
    other = dict.fromkeys(("name", "why", "rule"))
    assert nulls.to_dict() | other == same.to_dict() | other
    assert (nulls.state, unseen.state) == ("firing", "firing")
    assert START + 3600 < nulls.since.timestamp() <= unseen.since.timestamp() < START + 3900
    assert nulls.why.startswith("age/nulls 1 of the last 60 rows, not 0.1")
    calm = watched()
    ages = dice.choice([33.0, np.nan], 7200, p=[0.9, 0.1])
    calm.predict(id=range(7200), time=START + np.arange(7200), y_score=[0.5] * 7200, age=ages)
    assert calm.alerts([sm.Change("age/nulls", 0.1, **given)])[0].state == "ok"
    down = sm.Change("age/nulls", 0.5, direction="down", **given)
    assert calm.alerts([down])[0].state == "firing"


def test_drift_sees_all_rows_of_an_input_and_has_a_noise_floor():
    rng = np.random.default_rng(8)
    reference = sm.Quantile(q=0.5).update(AGES)
    rule = sm.Drift(reference, "age", method="psi", window="30min", min_rows=20)
    for n, shift, state in ((1800, 0, "ok"), (1800, 10, "firing"), (30, 2, "ok")):
        live = watched()
        ages = rng.choice(AGES, 2 * n) + shift
        times = START + np.arange(2 * n) * 1800 / n
        live.predict(id=np.arange(2 * n), time=times, y_score=np.full(2 * n, 0.5), age=ages)
        (alert,) = live.alerts([rule])
        assert alert.state == state
        assert abs(alert.rows - n) <= 1
    (age, *_) = live.inputs("30min")
    assert "chance stays below" in alert.why
    with pytest.raises(ValueError, match="there is no histogram of 'heights'"):
        live.alerts([sm.Drift(reference, "heights")])
    assert age.distances["psi"].value > 0.2  # and yet not beyond chance
    assert age.distances["psi"].value < age.distances["psi"].chance


def test_rules_of_inputs_follow_late_events():
    rule = sm.Above("age/nulls", 0.5, window="5min")
    first, second = watched(), watched()
    rows = [(START + 10 * k, None if k < 30 else 33) for k in range(90)]
    for live, order in ((first, rows), (second, rows[::-1])):
        for place, (time, age) in enumerate(order):
            live.predict(id=str(time), time=time, y_score=0.5, age=age)
            if place % 20 == 0:
                live.alerts([rule])
    assert first.alerts([rule])[0].to_dict() == second.alerts([rule])[0].to_dict()
    assert len(first.alerts([rule])[0].changes) == 2


def test_rules_that_inputs_do_not_have():
    live = watched(by="country")
    for rule, message in (
        (sm.Above("age/nulls", 0.5, by="country"), "inputs are not kept by slice"),
        (sm.Above("age/psj", 0.5), "there is no metric 'age/psj'"),
        (sm.Change("age/nulls", 0.1, by="country"), "inputs are not kept by slice"),
        (sm.Change("age/psi", 0.1), "not a share of rows"),
        (sm.BurnRate("age/psi", 0.9), "not the share of right or wrong rows"),
    ):
        with pytest.raises(ValueError, match=message):
            live.alerts([rule])
