"""Events in: one by one or in columns, checked at once, from any number of threads."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from alarms import alarms
from live.events import START, SUITE, joined, live, rows

import streammetrics as sm
from streammetrics.live.panes import Panes


def test_events_one_by_one_are_those_of_columns():
    data = rows(3000)
    one = live()
    for when, label, score in zip(*(column.tolist() for column in data.values()), strict=True):
        one.observe(time=when, y_true=label, y_score=score)
    assert one.to_bytes() == live().observe(**data).to_bytes()
    assert (
        one.n_rows
        == sm.MetricSet(SUITE)
        .update(y_true=data["y_true"][: one.n_rows], y_score=data["y_score"][: one.n_rows])
        .n_rows
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"y_score": float("nan")}, "y_score is missing"),
        ({"y_score": 1.5}, r"y_score .* in 1 row, first in row 0 \(1.5\)"),
        ({"y_score": "high"}, "y_score holds text"),
        ({"y_true": 2}, "none of the classes"),
        ({"y_true": "yes"}, "y_true has text, .*declared are labels"),
        ({"y_true": None}, "y_true is None"),
        ({"y_score": [0.5, 0.25]}, "y_score has 2 values a row"),
        ({"y_prob": 0.5}, "no input is called 'y_prob'"),
        ({"y_score": np.ma.masked}, "y_score is missing"),
        ({"time": 7_200_000_000}, "ahead of the clock by more than max_ahead"),
        ({"time": 2**70}, "time is not between 1970 and 2200"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("known", [0, 50], ids=["first", "later"])
def test_what_is_wrong_raises_at_once_and_changes_nothing(bad, message, known):
    state = live()
    for place in range(known):
        state.observe(time=START + place, y_true=place % 2, y_score=place / 50)
    if known == 0 and "y_true" in bad and bad["y_true"] == 2:
        state.observe(time=START, y_true=0, y_score=0.5)
    before = state.copy()
    with pytest.raises(sm.InvalidBatchError, match=message):
        state.observe(**{"time": START, "y_true": 1, "y_score": 0.5, **bad})
    assert state == before


def test_a_column_that_is_missing_or_of_another_length():
    with pytest.raises(sm.InvalidBatchError, match="no column 'y_score'"):
        live().observe(time=START, y_true=1)
    with pytest.raises(sm.InvalidBatchError, match="time has 2 rows, the other columns have 3"):
        live().observe(time=[START, START], y_true=[1, 0, 1], y_score=[0.5, 0.5, 0.5])


def test_a_bad_row_of_columns_is_named_by_its_place():
    data = rows(100)
    data["y_score"][41] = np.nan
    state = live()
    with pytest.raises(sm.InvalidBatchError, match="first in row 41"):
        state.observe(**data)
    assert state == live()


def test_a_time_ahead_of_the_clock_evicts_nothing():
    state = live().observe(**rows(200))
    before = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="in row 1, ahead of the clock"):
        state.observe(time=[START, time.time() + 86400], y_true=[0, 1], y_score=[0.5, 0.5])
    assert state.to_bytes() == before
    far = live(max_ahead=None).observe(time=time.time() + 86400, y_true=1, y_score=0.5)
    assert far.window("1min").n_rows == 1


CASES = {
    "numpy scalars": (sm.ROCAUC(), {"y_true": np.int64(1), "y_score": np.float32(0.3)}),
    "booleans": (sm.ROCAUC(), {"y_true": True, "y_score": 0.3}),
    "strings": (
        sm.ROCAUC(pos_label="yes"),
        {"y_true": "yes", "y_score": 0.3},
        {"labels": ["no", "yes"]},
    ),
    "whole floats": (sm.Accuracy(), {"y_true": 1.0, "y_pred": 1.0}),
    "integers in regression": (sm.MAE(), {"y_true": 3, "y_pred": 2.5}),
    "long integers": (sm.Sum(), {"values": 2**62 + 1}),
    "vectors": (sm.ROCAUC(), {"y_true": 2, "y_score": [0.2, 0.3, 0.5]}, {"labels": [0, 1, 2]}),
    "arrays": (
        sm.LogLoss(),
        {"y_true": 1, "y_score": np.array([0.25, 0.75], np.float32)},
        {"types": {"y_score": 2}},
    ),
    "weights": (sm.Mean(), {"values": 2.0, "sample_weight": 3}),
    "weight zero": (sm.Mean(), {"values": 2.0, "sample_weight": 0.0}),
    "rankings": (
        sm.NDCG(),
        {"query": "q", "relevance": 1, "score": 0.5, "doc": 7},
        {"types": {"doc": "integers"}},
    ),
    "omitted": (sm.MAE(nan_policy="omit"), {"y_true": float("nan"), "y_pred": 2.5}),
}


@pytest.mark.parametrize("name", CASES)
def test_values_of_every_kind_are_those_of_a_batch(name):
    metric, columns, *declared = CASES[name]
    state, expected = sm.Live(metric, **dict(*declared)), metric.copy()
    for place in range(5):
        state.observe(time=START + place, **columns)
        expected.update(**{key: [value] for key, value in columns.items()})
    assert state.window("1min").to_bytes() == expected.to_bytes()


def test_kinds_of_values_may_change_where_a_batch_could():
    state = sm.Live(sm.MAE())
    for place, value in enumerate([1, 2.5, np.float32(0.1), 2**60, True, 7]):
        state.observe(time=START + place, y_true=value, y_pred=0.0)
    expected = sm.MAE()
    for value in [1, 2.5, np.float32(0.1), 2**60, True, 7]:
        expected.update([value], [0.0])
    assert state.window("1min").to_bytes() == expected.to_bytes()


def test_labels_of_several_types_keep_their_values():
    state, expected = sm.Live(sm.Accuracy()), sm.Accuracy()
    for place, label in enumerate([1, True, 1.0, 2**53 + 1, 1.0, 2**53, True, 1]):
        state.observe(time=START + place, y_true=label, y_pred=1)
        expected.update([label], [1])
    assert state.window("1min").to_bytes() == expected.to_bytes()


def test_rows_that_contradict_raise_at_once():
    state = sm.Live(sm.NDCG()).observe(time=START, query="1", doc="1", relevance=1, score=0.5)
    before = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="has two relevances"):
        state.observe(time=START, query="1", doc="1", relevance=0, score=0.5)
    assert state.to_bytes() == before


def test_renamed_columns():
    suite = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_true": "label", "y_score": "p"})
    state = sm.Live(suite)
    for place in range(10):
        state.observe(time=START, label=place % 2, p=place / 10)
    state.observe(time=[START], label=[1], p=[0.5])
    assert state.window("1min").n_rows == 11


def test_threads_observe_merge_and_read_and_nothing_is_lost():
    data = rows(8000, span=300)
    state = live()
    columns = [column.tolist() for column in data.values()]

    def work(part):
        for when, label, score in list(zip(*columns, strict=True))[part::4]:
            state.observe(time=when, y_true=label, y_score=score)
        return state.window("5min").n_rows

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert state.to_bytes() == live().observe(**data).to_bytes()


def test_who_holds_a_method_is_told_when_all_is_closed_and_goes_on_after_a_reset():
    state = live().observe(time=START, y_true=1, y_score=0.5)
    observe = state.observe
    state.reset()
    observe(time=START + 1, y_true=0, y_score=0.25)
    assert state == live().observe(time=START + 1, y_true=0, y_score=0.25)
    state.observe(time=START + 2, y_true=1, y_score=0.25)
    held = state.observe
    state.close()
    for method in (observe, held, state.observe):
        with pytest.raises(sm.StreamMetricsError, match="takes no more events"):
            method(time=START + 3, y_true=0, y_score=0.25)
    assert state.n_rows == 2


class Doubled(sm.Live):
    """Takes each event twice."""

    def observe(self, *, time, **columns):
        super().observe(time=time, **columns)
        return super().observe(time=time, **columns)


def test_a_method_of_a_subclass_takes_every_event():
    state = Doubled(sm.Mean())
    for place in range(5):
        state.observe(time=START + place, values=place)
    assert state.n_rows == 10


@pytest.mark.parametrize(
    "name", ["type", "len", "_take", "float", "live", "is fraud", "class", "_full", "kind"]
)
def test_columns_of_any_name_are_taken_one_by_one(name):
    state = sm.Live(sm.MetricSet({"mean": sm.Mean()}, columns={"values": name}))
    for place in range(2500):
        state.observe(**{"time": START, name: float(place)})
    assert len(next(iter(state._ingest.observed.waiting.values())).values) < 2500
    assert state.window("1min").compute() == {"mean": 1249.5}
    with pytest.raises(sm.InvalidBatchError, match="no input is called 'other'"):
        state.observe(time=START, other=1.0)


def test_values_that_wait_in_several_forms_never_wait_for_long():
    state = sm.Live(sm.Accuracy())
    for place in range(4000):
        state.observe(time=START, y_true=bool(place % 2) if place else 1, y_pred=1)
    assert all(len(form.values) < 4000 for form in state._ingest.observed.waiting.values())
    assert state.window("1min").compute() == 0.50025


def test_who_interrupts_the_taking_of_events_loses_none_and_reads_no_half_state(monkeypatch):
    state, whole, told = live(), live(), []
    add, over = Panes.add, Panes.over
    others = iter([(START + place / 64, place % 2, place % 9 / 9) for place in range(3000)])

    def interrupted(method):
        def call(*arguments, **named):
            for event in itertools.islice(others, 900):  # more than wait
                for into in (state, whole):
                    observe(into, event)
            if method is add:
                with pytest.raises(sm.StreamMetricsError, match="in a thread of its own"):
                    state.window("1min")
                told.append(method)
            return method(*arguments, **named)

        return call

    def observe(into, event):
        when, label, score = event
        into.observe(time=when, y_true=label, y_score=score)

    for place in range(5000):
        event = (START + place / 64, place % 2, place % 7 / 7)
        observe(whole, event)
        with monkeypatch.context() as patched:
            if place in {800, 2300}:
                method = add if place == 800 else over
                patched.setattr(Panes, method.__name__, interrupted(method))
                state.window("1min")
            observe(state, event)
    assert told
    assert state.to_bytes() == whole.to_bytes()
    assert state.window("6min").n_rows == 5000 + 3000


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_periodic_signal_neither_holds_up_a_long_update_nor_loses_an_event():
    data, calls = rows(60_000), itertools.count()
    state, whole = joined(), joined()

    def events(into, number):
        when = START + number % 60
        into.observe(time=when, y_true=1, y_score=0.25)
        into.predict(id=f"p{number}", time=when, y_score=0.75)
        into.label(id=f"p{number}", time=when, y_true=number % 2)

    def one_more():
        number = next(calls)
        assert number < 5_000, "the update starts anew each time"
        events(state, number)

    with alarms(one_more, 1e-4):
        for _ in range(8):
            state.observe(**data)
    taken = next(calls)
    for _ in range(8):
        whole.observe(**data)
    for number in range(taken):
        events(whole, number)
    assert taken
    assert state.to_bytes() == whole.to_bytes()


DECLARED = {
    "another class": (sm.ROCAUC(), {}, {"y_true": -1, "y_score": 0.5}, {"y_true": 0}, "y_true"),
    "text": (sm.ROCAUC(), {}, {"y_true": "1", "y_score": 0.5}, {"y_true": 0}, "y_true"),
    "three scores": (
        sm.ROCAUC(), {}, {"y_true": 1, "y_score": [0.2, 0.3, 0.5]}, {"y_score": 0.5}, "y_score",
    ),
    "a class as text": (sm.Accuracy(), {}, {"y_true": "7", "y_pred": 7}, {"y_true": 7}, "y_true"),
    "a class beside those that are named": (
        sm.Accuracy(), {"labels": ["a", "b"]}, {"y_true": "c", "y_pred": "a"}, {"y_true": "b"},
        "y_true",
    ),
    "two targets": (
        sm.MAE(), {}, {"y_true": [1.0, 2.0], "y_pred": [1.0, 2.0]}, {"y_true": 1.0, "y_pred": 2.0},
        "y_true",
    ),
    "a target far away": (
        sm.MAE(), {"target_range": (0, 10)}, {"y_true": 11, "y_pred": 1}, {"y_true": 10}, "y_true",
    ),
    "a slice as a number": (
        sm.MetricSet({"auc": sm.ROCAUC()}), {"by": "shop"},
        {"y_true": 1, "y_score": 0.5, "shop": 7}, {"shop": "7"}, "shop",
    ),
    "a slice as text": (
        sm.MetricSet({"auc": sm.ROCAUC()}), {"by": "shop", "types": {"shop": "integers"}},
        {"y_true": 1, "y_score": 0.5, "shop": "7"}, {"shop": 7}, "shop",
    ),
    "a query as a number": (
        sm.NDCG(), {}, {"query": 1, "relevance": 1, "score": 0.5}, {"query": "1"}, "query",
    ),
    "text as a number": (
        sm.ExactMatch(), {}, {"reference": 1, "prediction": 1},
        {"reference": "a", "prediction": "a"}, "reference",
    ),
}  # fmt: skip


def observe_row(state, row, several):
    """Observe a row as one event, or as columns of one row."""
    columns = {"time": START, **row}
    if several:
        columns = {title: [value] for title, value in columns.items()}
    state.observe(**columns)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", DECLARED)
def test_no_first_event_decides_what_others_may_hold(name, several):
    metric, declared, bad, mend, column = DECLARED[name]
    state = sm.Live(metric, **declared)

    empty = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="declared") as raised:
        observe_row(state, bad, several)
    assert (raised.value.column, raised.value.row) == (column, 0)
    assert state.to_bytes() == empty
    observe_row(state, {**bad, **mend}, several)
    assert state.n_rows == 1


def test_no_label_and_no_prediction_decides_for_others():
    state = sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), by="shop")
    for call, columns, what in [
        (state.label, {"y_true": -1}, r"y_true is none of the classes .*\(-1\); .*\[0, 1\]"),
        (state.label, {"y_true": "ghost"}, "y_true has text"),
        (state.predict, {"y_score": [0.5, 0.5], "shop": "a"}, "y_score has 2 values a row"),
        (state.predict, {"y_score": 0.5, "shop": 1}, "shop has integers"),
        (state.predict, {"y_score": 0.5, "shop": "a", "sample_weight": 2.0}, "'number'} would"),
    ]:
        with pytest.raises(sm.InvalidBatchError, match=what):
            call(id="ghost", time=START, **columns)
    state.predict(id="r", time=START, y_score=0.5, shop="a").label(id="r", time=START, y_true=0)
    assert state.coverage("1h").labelled == 1


FORMS = {
    "weights": ({}, {}, {}, ["sample_weight", "counts", "extra"]),
    "weights that are declared": (
        {}, {"types": {"sample_weight": "number"}}, {}, ["sample_weight"],
    ),
    "weights of another name": ({"sample_weight": "w"}, {}, {}, ["w", "sample_weight"]),
    "weights that are named": ({"sample_weight": "sample_weight"}, {}, {}, ["sample_weight"]),
    "bins of weights": ({}, {"by": sm.Bins("sample_weight", [1.0])}, {}, ["sample_weight"]),
    "slices": (
        {}, {"by": "shop", "keep_rows": 9}, {"shop": "a"}, ["shop", "sample_weight"],
    ),
    "inputs and judgments": (
        {}, {"inputs": {"age": "number"}, "proxy": "judge"}, {"age": 7.0, "judge": 1},
        ["age", "judge", "sample_weight"],
    ),
    "attempts": ({}, {}, {"unit": "u", "attempt": "a"}, ["attempt"]),
    "a ranking": (
        {}, {}, {"query": "q", "relevance": 1, "score": 0.5, "doc": "d", "query_weight": 2.0},
        ["relevance", "doc", "query_weight"],
    ),
    "a ranking with names": (
        {"relevance": "relevance", "score": "s"}, {},
        {"query": "q", "relevance": 1, "s": 0.5, "doc": "d"}, ["relevance", "doc", "s"],
    ),
}  # fmt: skip


def of_form(name, **more):
    """Return a state for one of these forms."""
    columns, parameters, *_ = FORMS[name]
    metrics = {"accuracy": sm.Accuracy()}
    if name == "attempts":
        metrics |= {"attempts": sm.MeanAtK()}
    if "ranking" in name:
        metrics |= {"ranking": sm.NDCG()}
    return sm.Live(sm.MetricSet(metrics, columns=columns), **parameters, **more)


def forms(name):
    """Yield events with any of the optional columns: the method, and the columns."""
    *_, columns, optional = FORMS[name]
    every = {"y_true": 1, "y_pred": 1, **dict.fromkeys(optional, 2.0), **columns}
    for n in range(len(optional) + 1):
        for absent in itertools.combinations(optional, n):
            row = {title: value for title, value in every.items() if title not in absent}
            unlabelled = {title: value for title, value in row.items() if title != "y_true"}
            yield from (("observe", row), ("observe", {**row, "id": 0}), ("predict", unlabelled))


def is_taken(state, form, key, *, several=False):
    """Send an event, and its label; return whether it is taken."""
    how, row = form
    columns = {"time": START, **row}
    if how == "predict" or "id" in row:
        columns["id"] = key
    if several:
        columns = {title: [value] for title, value in columns.items()}
    try:
        getattr(state, how)(**columns)
    except sm.InvalidBatchError:
        return False
    if how == "predict":
        state.label(id=key, time=START, y_true=1)
    return True


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_no_event_decides_which_columns_others_have(name, several):
    every = [*forms(name)]
    alone = [is_taken(of_form(name), form, 1, several=several) for form in every]
    hows = {how for (how, _), taken in zip(every, alone, strict=True) if taken}
    assert hows == ({"observe"} if name == "a ranking" else {"observe", "predict"})
    for first, was_taken in zip(every, alone, strict=True):
        state = of_form(name)
        before = state.to_bytes()
        assert is_taken(state, first, 0, several=several) == was_taken
        if not was_taken:
            assert state.to_bytes() == before
            continue
        held = state.to_bytes()
        for form, taken in zip(every, alone, strict=True):
            state = sm.from_bytes(held)
            assert is_taken(state, form, 1, several=several) == taken, (first, form)
            assert state.window("1h")["accuracy"].n_rows == 1 + taken


@pytest.mark.parametrize("name", FORMS)
def test_workers_keep_the_events_they_have_accepted_whatever_columns_these_have(name, tmp_path):
    more = {"store": tmp_path / "live.db", "durable": True}
    with of_form(name, **more) as one, of_form(name, **more) as other:
        n = 0
        for place, form in enumerate(forms(name)):
            n += is_taken(one, form, f"{place}/1") + is_taken(other, form, f"{place}/2")
        for state in (one, other):
            assert state.window("1h")["accuracy"].n_rows == n
    with of_form(name, **more) as again:
        assert again.window("1h")["accuracy"].n_rows == n > 0


BOX = [[0.0, 0.0, 2.0, 2.0]]


def image(label):
    """Return the columns of an image with one box that is found."""
    found = {"true_boxes": BOX, "true_labels": [label]}
    return {**found, "pred_boxes": BOX, "pred_labels": [label], "pred_scores": [0.5]}


WIDTHS = {
    "labels of a row": (
        sm.HammingLoss(), {"types": {"y_true": 3, "y_pred": 3}},
        {"y_true": [1, 0], "y_pred": [1, 0]}, {"y_true": [1, 0, 1], "y_pred": [1, 0, 1]},
    ),
    "labels of a row, not declared": (
        sm.ROCAUC(multilabel=True), {}, {"y_true": [1, 0], "y_score": [0.5, 0.5]}, None,
    ),
    "scores of a row": (
        sm.TopKAccuracy(k=1), {"types": {"y_score": 3}},
        {"y_true": 0, "y_score": [0.5, 0.5]}, {"y_true": 0, "y_score": [0.5, 0.25, 0.25]},
    ),
    "classes of scores": (
        sm.TopKAccuracy(k=1), {"types": {"y_score": 3}},
        {"y_true": "ghost", "y_score": [0.5, 0.25, 0.25]},
        {"y_true": 0, "y_score": [0.5, 0.25, 0.25]},
    ),
    "boxes": (sm.BoxAveragePrecision(), {}, image("cat"), image(1)),
    "boxes of words": (
        sm.BoxAveragePrecision(), {"types": {"true_labels": "text", "pred_labels": "text"}},
        image(1), image("cat"),
    ),
    "tags": (
        sm.SpanF1(), {}, {"y_true": [1], "y_pred": [1]}, {"y_true": ["O"], "y_pred": ["O"]},
    ),
    "samples": (
        sm.KSDistance(), {}, {"sample": -1, "values": 0.5}, {"sample": 0, "values": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", WIDTHS)
def test_no_first_event_decides_how_many_values_a_row_has(name, several):
    metric, declared, bad, good = WIDTHS[name]
    state = sm.Live(metric, **declared)

    empty = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="declare"):
        observe_row(state, bad, several)
    assert state.to_bytes() == empty
    if good is not None:
        observe_row(state, good, several)
        assert sm.from_bytes(state.to_bytes()).n_rows == 1


def test_bytes_say_what_is_declared():
    by, types = ["shop"], {"shop": "integers", "sample_weight": "number"}
    suite = sm.MetricSet({"mae": sm.MAE()})
    state = sm.Live(suite, by=by, types=types, target_range=(0, np.inf))
    again = sm.from_bytes(state.to_bytes())
    assert again == state
    good = {"time": START, "y_true": 1.0, "y_pred": 1.0, "shop": 1}
    for bad in ({"shop": "a"}, {"y_true": -1.0}, {"y_pred": [1.0, 2.0]}):
        with pytest.raises(sm.InvalidBatchError, match="declared"):
            again.observe(**{**good, **bad})
    for parameters, message in [
        ({"by": by, "types": types}, r"target_range is \['0.0', 'inf'\] there and None here"),
        (
            {"by": by, "target_range": (0, np.inf)},
            "shop is 'integers' there and 'text' here; .*sample_weight is 1 there and None here",
        ),
    ]:
        with pytest.raises(sm.IncompatibleMetricsError, match=message):
            sm.Live(suite, **parameters).merge(state)
    same = sm.Live(suite, by=by, types={**types, "y_true": 1}, target_range=(0, np.inf))
    assert same.merge(again).to_bytes() == state.to_bytes()  # a default may be named


def test_scores_of_any_width_in_memory_wait_together():
    state = sm.Live(sm.LogLoss(), types={"y_score": 2})
    state.predict(id=1, time=START, y_score=np.array([0.25, 0.75], np.float32))
    state.predict(id=2, time=START, y_score=np.array([0.25, 0.75]))
    state.label(id=[1, 2], time=[START] * 2, y_true=[1, 1])
    assert state.window("1min").n_rows == 2


@pytest.mark.parametrize(
    ("metric", "parameters", "message"),
    [
        (sm.ROCAUC(pos_label="yes"), {}, r"name both, labels=\['other', 'yes'\]"),
        (sm.ROCAUC(), {"labels": ["no", "yes"]}, "say which is positive, pos_label='yes'"),
        (sm.F1(threshold=0.5), {"labels": [0, 1, 2]}, "judges two classes, not 3"),
        (sm.MAE(), {"labels": [0, 1]}, "read no class"),
        (sm.ROCAUC(), {"target_range": (0, 1)}, "for regressions"),
        (sm.ROCAUC(), {"types": {"y_scor": 2}}, "'y_scor'; did you mean 'y_score'"),
        (sm.ROCAUC(), {"types": {"y_score": "words"}}, "y_score is 'words'; expected 'text'"),
        (sm.LogLoss(), {"types": {"y_score": 10**9}}, "1000000000 numbers a row, and may have"),
        (sm.ROCAUC(), {"default_label": 2}, "not a valid label here"),
        (
            sm.MAE(),
            {"default_label": 2, "target_range": (0, 1)},
            "not a valid label here: target_range is",
        ),
        (sm.MSLE(), {"target_range": (-9, -2)}, "has no target: y_true is not above -1"),
        (sm.MAE(), {"types": {"y_pred": "text"}}, "a metric reads numbers from it: leave out"),
        (sm.WER(), {"types": {"reference": "dates"}}, "reads text or integers from it"),
        (sm.WER(), {"types": {"reference": 2}}, "reads one text or integer a row"),
    ],
)
def test_what_cannot_be_declared_is_told_before_any_event(metric, parameters, message):
    with pytest.raises(ValueError, match=message):
        sm.Live(metric, **parameters)


FITTED = [sm.MAE(), sm.Accuracy(), sm.ROCAUC(), sm.NDCG(), sm.KSDistance(), sm.WER()]


@pytest.mark.parametrize("metric", FITTED, ids=lambda metric: type(metric).__name__)
def test_some_event_fits_whatever_is_declared_or_it_is_refused(metric):
    kinds = ("text", "integers", "booleans", "dates", "number", 2)
    slices = [(), *[[name] for name in (*metric.inputs, "c")], [sm.Bins(metric.inputs[0], [0.5])]]
    good = 0
    for by, name, kind, labels in itertools.product(
        slices, (*metric.inputs, "c", "sample_weight"), kinds, (None, ["a", "b"])
    ):
        suite = sm.MetricSet({"m": metric.copy()})
        try:
            state = sm.Live(suite, by=by, types={name: kind}, labels=labels)
        except ValueError:
            continue
        declared = state._config.declared
        if declared.misfit():
            continue
        for number in (0.5, 1.0):
            columns = declared._example(number)
            with contextlib.suppress(sm.InvalidBatchError):
                state.observe(time=[START] * len(next(iter(columns.values()))), **columns)
        assert state.n_rows, (by, name, kind, labels)
        good += 1
    assert good


def test_a_prediction_has_no_label_to_be_sliced_by():
    state = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}), by="y_true")
    with pytest.raises(sm.InvalidBatchError, match="slices are by the label, 'y_true', which a"):
        state.predict(id="a", time=START, y_pred=1)
    state.observe(time=START, y_true=1, y_pred=1)
    assert state.window("1h", by="y_true").n_rows == 1


def test_many_classes_are_declared_in_little_memory():
    tracemalloc.start()
    state = sm.Live(sm.LogLoss(), types={"y_score": 20_000})  # a square of them is 3 GB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert sm.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()
