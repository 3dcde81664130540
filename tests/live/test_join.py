"""Labels that come late: which one counts, when, and what becomes of predictions without one."""

from __future__ import annotations

import math
import uuid
from itertools import islice, permutations, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from live.events import START, fresh, joined, live
from thinning import drawn, some

import streammetrics as sm
from streammetrics.live.ingest import EventColumns

TTL, LATENESS = 300, 600


def test_a_window_is_a_fresh_set_of_the_rows_whose_label_came():
    state = joined()
    for place in range(20):
        state.predict(id=place, time=START + place, y_score=place / 20)
    for place in range(0, 20, 2):
        state.label(id=place, time=START + 60 + place, y_true=int(place > 9))
    expected = fresh([(place, int(place > 9), place / 20) for place in range(0, 20, 2)])
    assert state.window("1min").to_bytes() == expected.to_bytes()
    found = state.coverage("1min")
    assert (found.predicted, found.labelled, found.pending, found.expired) == (20, 10, 10, 0)
    assert found.delay_median == 60
    assert found.coverage == 0.5


@pytest.mark.parametrize(
    "name",
    ["a", "", "a" * 15, "a" * 16, "ä" * 40, b"a", b"", 7, -7, 2**63, -(2**70), uuid.UUID(int=7)],
)
def test_ids_of_every_kind(name):
    state = joined()
    others = ["b", "aa", b"b", "7", b"7", 8, uuid.UUID(int=8), "a" * 17, 2**64]
    for place, other in enumerate([*others, name]):
        state.predict(id=other, time=START, y_score=place / 16)
    state.label(id=name, time=START, y_true=1)
    assert state.window("1min").to_bytes() == fresh([(0, 1, len(others) / 16)]).to_bytes()
    assert state.coverage("1min").predicted == len(others) + 1
    columns = joined().predict(id=[name], time=[START], y_score=[len(others) / 16])
    columns.label(id=[name], time=[START], y_true=[1])
    assert columns.window("1min").to_bytes() == state.window("1min").to_bytes()


def test_ids_in_columns_are_those_of_single_events():
    columns, single = joined(), joined()
    ids = np.arange(-3, 4)
    columns.predict(id=ids, time=START + ids, y_score=np.full(7, 0.5))
    for name in ids.tolist():
        single.predict(id=name, time=START + name, y_score=0.5)
    assert columns == single


def test_what_is_no_event_of_the_join_is_refused():
    state = joined().predict(id=1, time=START, y_score=0.5)
    before = state.to_bytes()
    for call, message in [
        (lambda: state.predict(id=None, time=START, y_score=0.5), "id is missing"),
        (lambda: state.predict(id=1.5, time=START, y_score=0.5), "id is 1.5"),
        (lambda: state.predict(id=["a", None], time=[START] * 2, y_score=[0.5] * 2), "in row 1"),
        (lambda: state.predict(id=2, time=START, y_score=float("nan")), "y_score is missing"),
        (lambda: state.predict(id=2, time=START, y_score=2.0), "y_score"),
        (lambda: state.predict(id=2, time=START, y_score=0.5, y_true=1), "without 'y_true'"),
        (lambda: state.predict(id=2, time=START), "no column 'y_score'"),
        (lambda: state.predict(id=[2, 3], time=[START] * 2, y_score=[0.5, None]), "missing"),
        (lambda: state.predict(id=[2], time=[START] * 2, y_score=[0.5] * 2), "differ in length"),
        (lambda: state.label(id=1, time=START, y_true=0.5), "none of the classes .*0.5"),
        (lambda: state.label(id=1, time=START, y_true=None), "y_true"),
        (
            lambda: state.label(id=1, time=START, y_true="yes"),
            "y_true has text, .* declared to have integers",
        ),
        (lambda: state.label(id=1, time=START, y_score=0.5), "one column, 'y_true'"),
        (lambda: state.label(id=1, time=START, y_true=1, version=-1), "version is -1"),
        (lambda: state.label(id=1, time=START, y_true=1, version="a"), "version is 'a'"),
        (lambda: sm.Live(sm.Mean()).predict(id=1, time=START, values=1.0), "read no label"),
    ]:
        with pytest.raises(sm.InvalidBatchError, match=message):
            call()
    assert state.to_bytes() == before


def test_the_largest_version_counts_then_the_later_then_the_larger_label():
    cases = [
        ([(1, 10, 0), (2, 5, 1)], 1, (1, 0)),
        ([(2, 5, 1), (1, 10, 0)], 1, (1, 0)),
        ([(1, 10, 0), (1, 20, 1)], 1, (1, 0)),
        ([(1, 10, 1), (1, 10, 0)], 1, (1, 1)),
        ([(1, 10, 0), (1, 10, 0)], 0, (0, 0)),
        ([(1, 10, 0), (1, 10, 1), (2, 0, 0)], 0, (1, 0)),
        ([(1, 299, 1), (5, 301, 0)], 1, (0, 0)),  # of which one is too late to count
    ]
    for labels, winner, (corrected, conflicting) in cases:
        state = joined().predict(id="a", time=START, y_score=0.25)
        for version, second, label in labels:
            state.label(id="a", time=START + second, y_true=label, version=version)
            state.window("5min")
        together = joined().predict(id="a", time=START, y_score=0.25)
        versions, seconds, values = map(np.array, zip(*labels, strict=True))
        together.label(
            id=["a"] * len(labels), time=START + seconds, version=versions, y_true=values
        )
        assert state == together
        assert state.window("5min").to_bytes() == fresh([(0, winner, 0.25)]).to_bytes()
        found = state.coverage("5min")
        assert (found.corrected, found.conflicting) == (corrected, conflicting)


def test_a_label_counts_up_to_its_ttl_and_expires_after_it():
    state = joined().predict(id=1, time=START, y_score=0.5).predict(id=2, time=START, y_score=0.5)
    state.label(id=1, time=START + TTL, y_true=1).label(id=2, time=START + TTL + 0.001, y_true=1)
    found = state.coverage("5min")
    assert (found.labelled, found.expired, found.pending, found.late) == (1, 1, 0, 1)
    later = joined().predict(id=1, time=START, y_score=0.5)
    assert later.coverage("6min").pending == 1
    assert later.now(START + TTL).coverage("6min").pending == 1
    assert later.now(START + TTL + 0.001).coverage("6min").expired == 1
    assert later.now(None).coverage("6min").pending == 1


def test_a_default_label_is_what_no_label_means():
    state = joined(default_label=0).predict(id=1, time=START, y_score=0.75)
    state.predict(id=2, time=START, y_score=0.25).label(id=2, time=START + 9, y_true=1)
    assert state.window("5min").n_rows == 1
    expected = fresh([(0, 0, 0.75), (0, 1, 0.25)])
    assert state.now(START + TTL + 1).window("6min").to_bytes() == expected.to_bytes()
    state.observe(time=START + TTL + 1, y_true=1, y_score=1.0)
    expected.update(y_true=[1], y_score=[1.0])
    assert state.now(None).window("6min").to_bytes() == expected.to_bytes()
    state.label(id=1, time=START + 20, y_true=1)  # it comes late, but its time was in time
    expected = fresh([(0, 1, 0.75), (0, 1, 0.25), (0, 1, 1.0)])
    assert state.window("6min").to_bytes() == expected.to_bytes()
    assert state.coverage("6min").predicted == state.coverage("6min").labelled == 2


def test_rows_leave_the_join_and_stay_in_their_panes():
    state = live(tiers=[("1min", "2h")], label_ttl="5min", label_lateness="10min", default_label=0)
    state.predict(id=1, time=START, y_score=0.75).predict(id=2, time=START, y_score=0.25)
    state.label(id=1, time=START + 9, y_true=1).label(id=77, time=START + 9, y_true=1)
    assert state.coverage("1h").labels_waiting == 1
    state.observe(time=START + 3000, y_true=1, y_score=1.0)
    restored = sm.from_bytes(state.to_bytes())
    for one in (state, restored):
        expected = fresh([(0, 1, 0.75), (0, 0, 0.25), (0, 1, 1.0)])
        assert one.window("1h").to_bytes() == expected.to_bytes()
        found = one.coverage("1h")
        assert (found.predicted, found.labelled, found.expired) == (2, 1, 1)
        assert found.labels_waiting == 0
    assert state.coverage("1h").labels_unmatched == 1
    before = state.to_bytes()
    state.label(id=2, time=START + 9, y_true=1).predict(id=3, time=START, y_score=0.5)
    found = state.coverage("1h")
    assert (found.labels_refused, found.predictions_refused) == (1, 1)
    assert state.to_bytes() == before


def test_a_prediction_twice_is_one_and_of_two_the_earlier_counts():
    state = joined().predict(id=1, time=START + 5, y_score=0.5)
    once = state.to_bytes()
    state.predict(id=1, time=START + 5, y_score=0.5)
    assert state.to_bytes() == once
    state.predict(id=1, time=START, y_score=0.25).label(id=1, time=START + 9, y_true=1)
    state.predict(id=1, time=START, y_score=0.75)
    assert state.window("1min").to_bytes() == fresh([(0, 1, 0.25)]).to_bytes()
    assert state.coverage("1min").repeated == state.coverage("1min").predicted == 1
    other = joined().predict(
        id=[1, 1, 1], time=START + np.array([0, 5, 0]), y_score=[0.75, 0.5, 0.25]
    )
    assert other.label(id=1, time=START + 9, y_true=1) == state


def test_beyond_the_budget_the_oldest_leave_and_are_counted():
    state = joined(max_pending=32)
    for place in range(100):
        state.predict(id=place, time=START + place, y_score=0.5)
    with pytest.warns(
        UserWarning, match=r"more than max_pending=32 .* is enough for 0.0 predictions a second"
    ):
        state.flush()
    state.label(id=3, time=START + 100, y_true=1).label(id=99, time=START + 100, y_true=1)
    found = state.coverage("5min")
    assert found.predicted == 100
    assert found.displaced >= 68
    assert found.labelled == 1
    assert found.pending == 99 - found.displaced
    assert sm.from_bytes(state.to_bytes()) == state


def test_values_of_every_kind_wait():
    cases = {
        "strings": (
            sm.Accuracy(),
            {"y_pred": "cat"},
            {"y_true": "dog"},
            {"labels": ["cat", "dog"]},
        ),
        "vectors": (
            sm.ROCAUC(),
            {"y_score": [0.25, 0.25, 0.5]},
            {"y_true": 2},
            {"labels": [0, 1, 2]},
        ),
        "short floats": (
            sm.LogLoss(),
            {"y_score": np.array([0.1, 0.2, 0.7], np.float32)},
            {"y_true": 2},
            {"types": {"y_score": 3}},
        ),
        "numbers": (sm.MAE(), {"y_pred": 3}, {"y_true": 2.5}),
        "weights": (
            sm.MAE(),
            {"y_pred": 3.0, "sample_weight": 2.0},
            {"y_true": 2.5},
            {"types": {"sample_weight": "number"}},
        ),
        "whole floats": (sm.Accuracy(), {"y_pred": 3.0}, {"y_true": np.float32(3)}),
        "text beside scores": (
            sm.ROCAUC(pos_label="yes"),
            {"y_score": 0.5},
            {"y_true": "yes"},
            {"labels": ["no", "yes"]},
        ),
    }
    for metric, prediction, label, *declared in cases.values():
        state, expected = sm.Live(metric, **dict(*declared)), metric.copy()
        for place in range(3):
            state.predict(id=place, time=START, **prediction)
            state.label(id=place, time=START, **label)
            columns = {**prediction, **label}
            expected.update(**{key: [value] for key, value in columns.items()})
        assert state.window("1min").to_bytes() == expected.to_bytes()
        assert sm.from_bytes(state.to_bytes()) == state
        assert state.copy().merge(state).window("1min") == expected


def test_kinds_that_cannot_wait_together_are_refused(undeclared):
    state = sm.Live(sm.Accuracy()).predict(id=1, time=START, y_pred="a")
    with pytest.raises(
        sm.InvalidBatchError, match="'integers' here, 'strings' in rows seen before"
    ):
        state.predict(id=2, time=START, y_pred=1)
    other = sm.Live(sm.Accuracy()).predict(id=2, time=START, y_pred=1)
    with pytest.raises(sm.IncompatibleMetricsError, match="different kinds of rows"):
        state.merge(other)
    state = sm.Live(sm.MAE()).predict(id=1, time=START, y_pred=1.0)
    with pytest.raises(sm.InvalidBatchError, match="beyond 2\\*\\*53"):
        state.predict(id=2, time=START, y_pred=2**60 + 1)


predictions = st.tuples(
    st.just("predict"), st.integers(0, 11), st.integers(0, 900), st.sampled_from([0.25, 0.5, 0.75])
)
labels = st.tuples(
    st.just("label"),
    st.integers(0, 13),
    st.integers(0, 900),
    st.integers(0, 1),
    st.integers(1, 2),
)
seen = st.tuples(
    st.just("observe"), st.integers(0, 900), st.integers(0, 1), st.sampled_from([0.0, 1.0])
)


def send(into, event):
    kind, *rest = event
    if kind == "predict":
        name, second, score = rest
        into.predict(id=name, time=START + second, y_score=score)
    elif kind == "label":
        name, second, label, version = rest
        into.label(id=name, time=START + second, y_true=label, version=version)
    else:
        second, label, score = rest
        into.observe(time=START + second, y_true=label, y_score=score)


def by_hand(events, default):
    """Return the rows with their labels, and how many predictions there are, spelt out."""
    made, newest = (
        {},
        max((event[1 if event[0] == "observe" else 2] for event in events), default=0),
    )
    for event in events:
        if event[0] == "predict":
            _, name, second, score = event
            made[name] = min(made.get(name, (second, score)), (second, score))
    rows = [tuple(event[1:]) for event in events if event[0] == "observe"]
    for name, (second, score) in made.items():
        known = [
            (version, at, label)
            for kind, other, at, label, version in (e for e in events if e[0] == "label")
            if other == name and -LATENESS <= at - second <= TTL
        ]
        if known:
            rows.append((second, max(known)[2], score))
        elif default is not None and second + TTL < newest:
            rows.append((second, default, score))
    return rows, len(made)


@drawn(
    12,
    60,
    st.lists(st.one_of(predictions, labels, seen), max_size=40),
    st.randoms(use_true_random=False),
    st.sampled_from([None, 0]),
)
def test_any_order_duplicates_workers_and_restarts_give_one_state(events, random, default):
    # No event is later than the lateness: all lie within 15 minutes.
    whole = joined(default_label=default)
    for event in events:
        send(whole, event)
    again = random.sample(events, len(events)) + (random.choices(events, k=3) if events else [])
    duplicates = [event for event in again if event[0] != "observe"]
    once = [event for event in random.sample(events, len(events)) if event[0] == "observe"]
    workers = [joined(default_label=default) for _ in range(random.randint(1, 3))]
    for event in random.sample(duplicates + once, len(duplicates + once)):
        place = random.randrange(len(workers))
        send(workers[place], event)
        if random.random() < 0.1:
            workers[place].window("5min")
            workers[place] = sm.from_bytes(workers[place].to_bytes())
    while len(workers) > 1:
        random.shuffle(workers)
        first, second = workers.pop(), workers.pop()
        untouched = second.to_bytes()
        workers.append(first.merge(second))
        assert second.to_bytes() == untouched
    assert workers[0].to_bytes() == whole.to_bytes()
    rows, n = by_hand(events, default)
    newest = max((e[1 if e[0] == "observe" else 2] for e in events if e[0] != "label"), default=0)
    last = newest // 300 * 300 + 300
    inside = [row for row in rows if last - 1200 <= row[0]]
    for state in (workers[0], whole):
        assert state.window("20min").to_bytes() == fresh(inside).to_bytes()
        found = state.coverage("20min")
        assert found.predicted == n
        assert found.predicted == found.labelled + found.pending + found.expired + found.displaced


SETS = {
    "a later label that is too late for the earlier prediction": (
        [(0, 0.25), (200, 0.75)], [(250, 1, 1), (400, 0, 2)],
    ),
    "an early label that only the earlier prediction takes": (
        [(0, 0.25), (700, 0.75)], [(50, 1, 1), (750, 0, 1), (20, 0, 0)],
    ),
    "a label too early for both": ([(700, 0.25), (800, 0.75)], [(50, 1, 1), (900, 0, 1)]),
    "a conflict that is left": (
        [(0, 0.25), (200, 0.75)], [(250, 1, 1), (250, 0, 1), (450, 0, 2)],
    ),
    "a conflict that goes": (
        [(0, 0.25), (200, 0.75)], [(250, 1, 1), (450, 1, 2), (450, 0, 2)],
    ),
    "one time": ([(0, 0.75), (0, 0.25)], [(10, 1, 1), (10, 1, 1), (-650, 0, 2)]),
}  # fmt: skip


def judged(made, labels):
    """Return the row of one id and its coverage, spelt out."""
    at, score = min(made)
    known = {(v, t, y) for t, y, v in labels if -LATENESS <= t - at <= TTL}
    best = max(known, default=None)
    told = {
        "labelled": best is not None,
        "corrected": len(known) > 1,
        "conflicting": best is not None and sum(one[:2] == best[:2] for one in known) > 1,
        "late": any(not -LATENESS <= t - at <= TTL for t, _, _ in labels),
        "repeated": len(set(made)) > 1,
    }
    return [] if best is None else [(at, best[2], score)], told


@pytest.mark.parametrize("every", some([19, 1]))
@pytest.mark.parametrize("name", SETS)
def test_several_predictions_and_labels_of_an_id_give_one_state_in_any_order(name, every):
    made, labels = SETS[name]
    rows, told = judged(made, labels)
    events = [("predict", "a", t, score) for t, score in made]
    events += [("label", "a", t, y, version) for t, y, version in labels]
    found = set()
    for order in islice(permutations(events), 0, None, every):
        whole = joined()
        for event in order:
            send(whole, event)
            whole.coverage("20min")
        half = len(order) // 2
        parts = [joined(), joined()]
        for place, event in enumerate(order):
            send(parts[place < half], event)
        restored = sm.from_bytes(parts[0].to_bytes())
        for state in (whole, restored.merge(parts[1]), parts[1].copy().merge(parts[0])):
            found.add(state.to_bytes())
            assert state.window("20min").to_bytes() == fresh(rows).to_bytes()
            counted = state.coverage("20min")
            assert {name: getattr(counted, name) for name in told} == told
    assert len(found) == 1


def test_labels_beside_the_one_that_counts_leave_with_their_row_and_are_limited():
    state = joined(max_pending=64)
    for second in range(40):
        state.label(id="a", time=START + second, y_true=second % 2)
    state.predict(id="a", time=START, y_score=0.5).predict(id="b", time=START + 1, y_score=0.5)
    assert state.coverage("1min").corrected == 1
    assert state._shared.current.join.size == 41
    state.label(id=["a"] * 40, time=START + np.arange(40), y_true=np.arange(40) % 2)  # again
    assert state.to_bytes() == sm.from_bytes(state.to_bytes()).to_bytes()
    for second in range(40, 120):
        state.label(id="a", time=START + second, y_true=second % 2)
    with pytest.warns(UserWarning, match="max_pending=64"):
        assert state.coverage("1min").displaced == 1  # "b"; "a" has its label
    assert state._shared.current.join.size == 0
    patient = joined().predict(id="a", time=START, y_score=0.5)
    patient.label(id=["a", "a"], time=[START, START + 1], y_true=[0, 1])
    patient.observe(time=START + 3000, y_true=1, y_score=0.5).flush()
    assert patient._shared.current.join.size == 0


def everything(found):
    return sum((found.labelled, found.pending, found.expired, found.displaced, found.refused))


def test_a_label_that_does_not_go_with_its_prediction_is_refused_and_counted(undeclared):
    state = sm.Live(sm.TopKAccuracy(k=1), label_ttl="5min", label_lateness="5min")
    for place in range(40):
        state.label(id=place, time=START, y_true=7)
    for place in range(40):
        state.predict(id=place, time=START, y_score=[0.25, 0.25, 0.5])
    found = state.coverage("1min")
    assert (found.predicted, found.labelled, found.refused) == (40, 0, 40)
    assert state.window("1min").n_rows == 0
    state.observe(time=START + 1200, y_true=1, y_score=[0.25, 0.25, 0.5])
    assert state.coverage("1h") == sm.from_bytes(state.to_bytes()).coverage("1h")
    assert everything(state.coverage("1h")) == state.coverage("1h").refused == 40


@pytest.mark.parametrize("read", [False, True])
def test_what_contradicts_a_prediction_that_waits_is_refused_and_all_else_can_be_read(
    read, undeclared
):
    state = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}), by="client")
    state.predict(id=1, time=START, y_pred="a", client="web")
    if read:
        state = sm.from_bytes(state.to_bytes())
    good = {"y_pred": "a", "client": "web"}
    for bad in ({"client": 5}, {"y_pred": 5}):
        columns = {**good, **bad}
        with pytest.raises(sm.InvalidBatchError, match="'integers' here|y_pred holds integers"):
            state.predict(id=2, time=START, **columns)
        with pytest.raises(sm.InvalidBatchError, match="here, .* in rows seen before|y_true holds"):
            state.observe(time=[START], y_true=["a"], **{name: [v] for name, v in columns.items()})
    with pytest.raises(sm.InvalidBatchError, match="'integers' here"):
        state.observe(time=START, y_true=5, y_pred=5, client="web")
    state.observe(time=START, y_true="b", **good).label(id=1, time=START, y_true="a")
    assert state.window("1min").compute() == {"accuracy": 0.5}
    assert state.window("1min", by="client").compute().to_dict()["n_rows"] == [2]


def test_a_third_label_among_rows_that_wait_is_refused_wherever_it_came_in(undeclared):
    state = joined().predict(id=[1, 2], time=[START] * 2, y_score=[0.5, 0.75])
    other = state.copy().label(id=2, time=START, y_true=-1)
    state.label(id=1, time=START, y_true=0)
    before = state.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="negative label"):
        state.merge(other)
    assert state.to_bytes() == before
    with pytest.raises(sm.InvalidBatchError, match="negative label"):
        sm.from_bytes(before).label(id=2, time=START, y_true=-1)
    with pytest.raises(sm.InvalidBatchError, match="negative label"):
        state.observe(time=START, y_true=-1, y_score=0.5)
    assert state.window("1min").n_rows == 1


@pytest.mark.parametrize(
    ("suite", "label", "predicted", "message"),
    [
        (sm.MSE(), "x", 1.0, "y_true holds text; numbers are needed"),
        (sm.F1(), [1, 0], 1, "y_true has 2 values a row: pass one label a row"),
    ],
)
def test_a_label_that_no_prediction_can_have_is_refused_before_there_is_one(
    suite, label, predicted, message
):
    state = sm.Live(suite)
    with pytest.raises(sm.InvalidBatchError, match=message):
        state.label(id="a", time=START, y_true=label)
    state.predict(id="a", time=START, y_pred=predicted).label(id="a", time=START, y_true=1)
    assert state.window("1min").n_rows == 1


def test_predictions_of_several_values_go_with_their_labels():
    state = sm.Live(sm.MSE(), types={"y_true": 2, "y_pred": 2}).predict(
        id="a", time=START, y_pred=[1.0, 2.0]
    )
    with pytest.raises(
        sm.InvalidBatchError, match="y_true has one value a row, .* declared to have 2"
    ):
        state.label(id="a", time=START, y_true=1.0)
    state.label(id="a", time=START, y_true=[1.0, 4.0])
    assert state.window("1min").compute() == 2.0


def test_labels_of_many_places_have_no_time_of_their_own():
    state = sm.Live(sm.F1(labels=[0, 1]))
    with pytest.raises(sm.InvalidBatchError, match="y_true has 2 values a row: pass one label"):
        state.observe(time=START, y_true=[0, 1], y_pred=[0, 1])
    assert state.observe(time=START, y_true=1, y_pred=1).window("1min").compute() == 1


def test_a_default_label_may_be_a_number_of_an_array():
    state = sm.Live(sm.Accuracy(threshold=0.5), default_label=np.int64(1))
    assert state == sm.Live(sm.Accuracy(threshold=0.5), default_label=1)


@pytest.mark.parametrize("label", [0.5, math.nan, math.inf, 1e30, "x", 2**70])
def test_a_default_label_that_is_none_is_refused_when_it_is_given(label):
    with pytest.raises(ValueError, match="default_label=.* is not a valid label here: y_true"):
        sm.Live(sm.Accuracy(threshold=0.5), default_label=label)


def test_labels_go_with_the_one_that_stands_for_those_that_never_came():
    state = sm.Live(sm.Accuracy(threshold=0.5), default_label=0)
    with pytest.raises(sm.InvalidBatchError, match="none of the classes"):
        state.observe(time=START, y_true=2, y_score=0.5)


def test_rows_that_contradict_what_came_from_elsewhere_are_counted(undeclared):
    state = live().observe(time=START, y_true=0, y_score=0.5)
    for place in range(100):  # known to be good, and waiting
        state.observe(time=START + place, y_true=place % 2, y_score=0.5)
    other = live().observe(time=[START] * 2, y_true=[1, -1], y_score=[0.5] * 2)
    kept = sm.from_bytes(other.to_bytes())
    with pytest.raises(sm.InvalidBatchError, match="contradict|negative label|neither 0"):
        kept.observe(time=START, y_true=0, y_score=0.5)
    kept.observe(time=START, y_true=1, y_score=0.5).observe(time=START, y_true=-1, y_score=0.5)
    expected = live().observe(time=[START] * 4, y_true=[1, -1] * 2, y_score=[0.5] * 4)
    assert kept == expected
    state.flush()
    with pytest.raises(sm.IncompatibleMetricsError, match="different kinds of rows"):
        kept.merge(state)


@pytest.mark.parametrize("order", [1, -1])
def test_one_and_true_are_one_label_by_rule(order):
    seen, waiting = sm.Live(sm.Accuracy()), sm.Live(sm.Accuracy())
    for place, label in list(enumerate([True, 1, False, 0]))[::order]:
        seen.observe(time=START, y_true=label, y_pred=label)
        waiting.predict(id=place, time=START, y_pred=label)
        waiting.label(id=place, time=START, y_true=label)
    expected = sm.Accuracy().update([1, 1, 0, 0], [1, 1, 0, 0])
    assert seen.window("1min").to_bytes() == expected.to_bytes()
    assert waiting.window("1min").to_bytes() == expected.to_bytes()


def test_one_label_among_many_that_contradicts_is_seen_and_named():
    state = joined().observe(time=START, y_true=0, y_score=0.5)
    n = 3000
    columns = {"id": np.arange(n), "time": np.full(n, START + 1)}
    labels = np.arange(n) % 2
    labels[2000:] += 1  # 1 and 2, of which 2 is not a label beside 0 and 1
    before = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"2"):
        state.label(**columns, y_true=labels)
    assert state.to_bytes() == before
    scores = np.full(n, 0.5)
    scores[1234] = np.nan
    with pytest.raises(sm.InvalidBatchError, match="1234"):
        state.predict(**columns, y_score=scores)
    assert state.to_bytes() == before


def test_rows_that_tell_nothing_new_are_not_read_again_and_those_that_do_are(monkeypatch):
    state, read = joined(), []
    checks = state._shared.current._checks

    def watched(check):
        def reading(columns):
            read.append(set(columns))
            return check(columns)

        return reading

    for name in ("predicted", "labelled"):
        monkeypatch.setattr(checks, name, watched(getattr(checks, name)))
    for part in range(4):
        ids = np.arange(part * 10, part * 10 + 10)
        state.predict(id=ids, time=START + ids, y_score=ids % 10 / 10)
        state.label(id=ids, time=START + ids, y_true=ids % 2)
    assert read == [{"y_score"}, {"y_true"}]
    state.predict(id=[99], time=[START], y_score=[0.95])
    assert read[2:] == [{"y_score"}]
    with pytest.raises(sm.InvalidBatchError, match="none of the classes"):
        state.label(id=[99], time=[START], y_true=[7])
    assert state.window("5min").n_rows == 40


@pytest.mark.parametrize(
    "version",
    [
        [1],
        np.array([1]),
        np.empty((0, 2)),
        "",
        "2",
        [[1]],
        [],
        1.0,
        True,
        -1,
        2**63,
    ],
)
def test_a_version_that_is_none_takes_no_other_events_with_it(version):
    state = joined().predict(id="a", time=START, y_score=0.75)
    state.predict(id="b", time=START, y_score=0.25).label(id="b", time=START, y_true=0)
    with pytest.raises(sm.InvalidBatchError, match=r"versions are integers from 0 to 2\^63 - 1"):
        state.label(id="a", time=START, y_true=1, version=version)
    assert state.label(id="a", time=START, y_true=1).coverage("5min").labelled == 2


@pytest.mark.parametrize(
    "versions",
    [
        None,
        [1, 2, None, None],
        [1, 2, math.nan, math.nan],
        pd.Series([1, 2, None, None]),
        pa.array([1, 2, None, None]),
        np.array([1, 2, None, None]),
    ],
)
def test_missing_versions_are_counted(versions):
    state = joined().predict(id=[1, 2, 3, 4], time=[START] * 4, y_score=[0.5] * 4)
    n, first = (4, 0) if versions is None else (2, 2)
    found = rf"version is missing \(null\) in {n} rows, first in row {first}; pass an integer"
    with pytest.raises(sm.InvalidBatchError, match=found) as raised:
        state.label(id=[1, 2, 3, 4], time=[START] * 4, y_true=[1] * 4, version=versions)
    assert (raised.value.row, raised.value.column) == (first, "version")
    assert state.coverage("5min").labelled == 0


@pytest.mark.parametrize("ids", [["a", math.nan], pd.Series(["a", None]), pa.array(["a", None])])
def test_missing_ids_are_counted(ids):
    with pytest.raises(
        sm.InvalidBatchError, match=r"id is missing \(null\) in 1 row, first in row 1"
    ):
        joined().predict(id=ids, time=[START] * 2, y_score=[0.5] * 2)


@pytest.mark.parametrize("kind", ["predict", "label"])
def test_an_event_whose_value_is_none_says_so(kind):
    name = "y_score" if kind == "predict" else "y_true"
    with pytest.raises(sm.InvalidBatchError, match=f"{name} is None; pass its values"):
        getattr(joined(), kind)(id=1, time=START, **{name: None})


MISSING = {
    "list": [None, 3.0],
    "integers": [None, 3],
    "nan": [math.nan, 3.0],
    "arrow": pa.array([None, 3]),
    "pandas": pd.array([None, 3], dtype="Int64"),
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_a_missing_prediction_is_left_out_or_refused(values, first):
    """In the first batch of a state, nulls of lists and of Arrow counted as 0."""
    columns = {"id": [1, 2], "time": [START] * 2}

    def states(policy):
        state = sm.Live(sm.MetricSet({"m": sm.MAE(nan_policy=policy)}), dedupe="1h", max_ahead=None)
        if not first:
            state.predict(id=[8], time=[START], y_pred=[0.5])
        return state

    found = [
        states("omit").predict(**columns, y_pred=values).label(**columns, y_true=[1.0, 2.0]),
        states("omit").observe(**columns, y_pred=values, y_true=[1.0, 2.0]),
    ]
    for state in found:
        window = state.window("1h", end=START + 1800)
        assert (window.n_rows, window.compute()) == (1, {"m": 1.0})
    told = "y_pred is missing .* in 1 row, first in row 0"
    with pytest.raises(sm.InvalidBatchError, match=told):
        states("raise").predict(**columns, y_pred=values)
    with pytest.raises(sm.InvalidBatchError, match=told):
        states("raise").observe(**columns, y_pred=values, y_true=[1.0, 2.0])


def test_a_missing_label_of_a_prediction_is_refused():
    state = sm.Live(sm.MetricSet({"m": sm.F1(nan_policy="omit")}), max_ahead=None)
    with pytest.raises(sm.InvalidBatchError, match="a row that waits has all its columns"):
        state.predict(id=[1, 2], time=[START] * 2, y_pred=[None, 1])


@pytest.mark.parametrize("wrong", [-1, 2**63, "2", 1.5, [1]])
def test_a_version_that_is_none_is_told_by_its_row_and_not_among_all_others(wrong):
    versions = [*range(500), wrong, *range(500), wrong]
    n = len(versions)
    with pytest.raises(sm.InvalidBatchError, match="first in row 500: versions are") as raised:
        joined().label(id=list(range(n)), time=[START] * n, y_true=[1] * n, version=versions)
    assert (raised.value.row, raised.value.column) == (500, "version")
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize("versions", [[1], [1, 2, 3], []])
def test_columns_of_labels_have_as_many_versions(versions):
    state = joined().predict(id=["a", "b"], time=[START, START], y_score=[0.75, 0.25])
    before = state.copy()
    with pytest.raises(sm.InvalidBatchError, match="columns differ in length"):
        state.label(id=["a", "b"], time=[START, START], y_true=[1, 0], version=versions)
    assert state == before


@pytest.mark.parametrize("ids", ["ab", b"ab", {"a", "b"}, {"a": 1, "b": 2}, 5, None, np.array(7)])
def test_one_id_beside_columns_is_not_taken_for_its_parts(ids):
    with pytest.raises(sm.InvalidBatchError, match="beside columns: pass an id a row"):
        joined().predict(id=ids, time=[START, START], y_score=[0.75, 0.25])


def test_a_prediction_without_a_value_is_refused_by_name():
    with pytest.raises(sm.InvalidBatchError, match="y_score"):
        joined().predict(id="a", time=START, y_score=None)


@pytest.mark.parametrize("reads", [False, pytest.param(True, marks=pytest.mark.long)])
def test_labels_that_come_before_their_predictions_merge_in_any_split_and_order(reads):
    """Labels may wait in one state for a prediction in the other, or in either for one to come."""
    events = [
        ("predict", {"id": 1, "time": START, "y_score": 0.75}),
        ("label", {"id": 1, "time": START + 60, "y_true": 1}),
        ("predict", {"id": 2, "time": START + 1, "y_score": 0.25}),
        ("label", {"id": 2, "time": START + 30, "y_true": 1}),
    ]
    expected = fresh([(0, 1, 0.75), (1, 1, 0.25)]).to_bytes()
    ends = set()
    for order in islice(permutations(events), 0, None, 1 if reads else 5):
        for split in product((0,), *[(0, 1)] * 3):  # the others merge the same parts
            parts = joined(), joined()
            for (kind, columns), part in zip(order, split, strict=True):
                getattr(parts[part], kind)(**columns)
            if reads:
                parts = tuple(sm.from_bytes(part.to_bytes()) for part in parts)
            one, other = parts
            before = other.to_bytes()
            merged, back = one.copy().merge(other), other.copy().merge(one)
            assert other.to_bytes() == before
            assert merged.window("1min").to_bytes() == expected
            assert merged == back
            found = merged.coverage("1min")
            assert (found.predicted, found.labelled, found.pending) == (2, 2, 0)
            ends.add(merged.to_bytes())
    assert len(ends) == 1


def test_a_label_that_waits_in_a_merged_state_meets_its_prediction_after():
    state = joined().merge(joined().label(id=1, time=START + 60, y_true=1))
    assert state.window("1min").n_rows == 0
    again = sm.from_bytes(state.to_bytes())
    for held in (state, again):
        held.predict(id=1, time=START, y_score=0.75)
        assert held.window("1min").to_bytes() == fresh([(0, 1, 0.75)]).to_bytes()


@pytest.mark.parametrize("first", ["predict", "observe"])
def test_prediction_older_than_every_tier_is_dropped_at_once(first):
    live = sm.Live(sm.Accuracy(threshold=0.5), label_ttl="1h", label_lateness="1h")
    day, scored = 86400, {"y_score": 0.5}
    if first == "predict":
        live.predict(id="new", time=1000 * day, **scored)
    else:
        live.observe(time=1000 * day, y_true=1, **scored)
    live.predict(id="old", time=500 * day, **scored).predict(id="kept", time=601 * day, **scored)
    assert live.dropped == 1  # though both waited in a buffer
    times = [1000 * day, 1001 * day, 601 * day]
    live.predict(id=["same", "newer", "older"], time=times, y_score=[0.5, 0.5, 0.5])
    assert live.dropped + live.coverage("1h").predictions_refused == 2
    assert sm.from_bytes(live.to_bytes()) == live


def test_answer_counts_predictions_older_than_every_tier():
    live = sm.Live(sm.Accuracy(threshold=0.5), label_ttl="1h", label_lateness="1h")
    scored = {"y_score": [0.5]}
    old = EventColumns("predict", [500 * 86400], (["old"],), scored)
    new = EventColumns("observe", [1000 * 86400], (), {**scored, "y_true": [1]})
    assert live._ingest.take_all([new, old]) == [0, 1]
    assert live.dropped == 1


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("reads", [False, True])
def test_a_label_is_judged_by_the_earliest_prediction_in_any_order(order, several, reads):
    """The label is in time of the later prediction, and too late for the earlier one."""
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)})
    live = sm.Live(suite, label_ttl="1min", label_lateness="1min")
    events = [
        ("predict", {"id": "x", "time": START, "y_score": 0.75}),
        ("label", {"id": "x", "time": START + 52.25, "y_true": 1}),
        ("predict", {"id": "x", "time": START - 10, "y_score": 0.75}),
    ]
    for place in order:
        kind, columns = events[place]
        getattr(live, kind)(**{n: [v] if several else v for n, v in columns.items()})
        if reads:
            live.coverage("10min")
    found = live.coverage("10min")
    assert (found.predicted, found.labelled, found.late, found.repeated) == (1, 0, 1, 1)
    again = sm.Live(suite, label_ttl="1min", label_lateness="1min")
    for kind, columns in events[::-1]:
        getattr(again, kind)(**columns)
    assert live.to_bytes() == again.to_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_predictions_of_one_id_in_one_call_are_as_if_they_came_one_by_one(seed):
    dice = np.random.default_rng(seed)
    ids, times = dice.integers(0, 6, 40), START + dice.integers(0, 3, 40)
    scores = dice.integers(0, 3, 40) / 4
    together, apart = joined(), joined()
    for state in (together, apart):
        state.predict(id=[0, 1], time=[START + 1, START + 1], y_score=[0.25, 0.25])
        state.label(id=range(6), time=[START + 60] * 6, y_true=[1] * 6)
    together.predict(id=ids, time=times, y_score=scores)
    for place in dice.permutation(40):
        apart.predict(id=ids[place], time=times[place], y_score=scores[place])
    assert together.to_bytes() == apart.to_bytes()
    assert together.coverage("5min") == apart.coverage("5min")


def test_an_id_may_be_repeated_any_number_of_times_in_one_call(tmp_path):
    rows = {"id": ["x"] * 30_000, "time": [START] * 30_000}
    with joined(store=tmp_path / "live.db", durable=True) as state:
        state.predict(**rows, y_score=[0.5] * 30_000)
        state.observe(**rows, y_true=[1] * 30_000, y_score=[0.25] * 30_000)
    with joined(store=tmp_path / "live.db") as again:
        found = again.coverage("5min")
        assert (found.predicted, found.repeated, again.window("5min").n_rows) == (1, 0, 1)
