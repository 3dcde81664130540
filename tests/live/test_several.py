"""Labels of several values that come late: labels of a multilabel row, outputs of a regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.events import START

import streammetrics as sm

SUITE = {"subset": sm.SubsetAccuracy(threshold=0.5), "loss": sm.LabelRankingLoss()}
TTL, LATENESS = 300, 600
RNG = np.random.default_rng(0)
predictions = st.tuples(
    st.just("predict"),
    st.integers(0, 5),
    st.integers(0, 900),
    st.sampled_from([(0.25, 0.75), (1.0, 0.0), (0.5, 0.5)]),
)
labels = st.tuples(
    st.just("label"),
    st.integers(0, 6),
    st.integers(0, 900),
    st.sampled_from([(0, 1), (1, 0), (1, 1)]),
    st.integers(1, 2),
)


def joined(suite=None, **parameters):
    times = {"label_ttl": "5min", "label_lateness": "10min"}
    if suite is None:
        suite = sm.MetricSet(SUITE)
        times["types"] = {"y_true": 2, "y_score": 2}
    return sm.Live(suite, tiers=(("1min", "6min"), ("5min", "20min")), **times, **parameters)


def send(into, event, *, as_column):
    kind, name, second, values, *version = event
    one = {"id": name, "time": START + second}
    one |= {"y_score" if kind == "predict" else "y_true": list(values)}
    one |= {"version": version[0]} if version else {}
    if as_column:
        one = {title: [value] for title, value in one.items()}
    getattr(into, kind)(**one)


def by_hand(events):
    """Return the rows whose label counts, spelt out."""
    made = {}
    for kind, name, second, values, *_ in events:
        if kind == "predict":
            made[name] = min(made.get(name, (second, values)), (second, values))
    rows = []
    for name, (second, scores) in made.items():
        known = [
            (event[4], event[2], event[3])
            for event in events
            if event[:2] == ("label", name) and -LATENESS <= event[2] - second <= TTL
        ]
        if known:
            rows.append((max(known)[2], scores))
    return rows


@given(
    st.lists(st.one_of(predictions, labels), max_size=30),
    st.randoms(use_true_random=False),
)
def test_any_order_duplicates_workers_and_restarts_give_one_state(events, random):
    whole = joined()
    for event in events:
        send(whole, event, as_column=False)
    again = random.sample(events, len(events)) + (random.choices(events, k=3) if events else [])
    workers = [joined() for _ in range(random.randint(1, 3))]
    for event in again:
        place = random.randrange(len(workers))
        send(workers[place], event, as_column=random.random() < 0.3)
        if random.random() < 0.1:
            workers[place].window("5min")
            workers[place] = sm.from_bytes(workers[place].to_bytes())
    while len(workers) > 1:
        random.shuffle(workers)
        first, second = workers.pop(), workers.pop()
        workers.append(first.merge(second))
    assert workers[0].to_bytes() == whole.to_bytes()
    fresh, rows = sm.MetricSet(SUITE), by_hand(events)
    if rows:
        true, scores = zip(*rows, strict=True)
        fresh.update(y_true=np.array(true), y_score=np.array(scores))
    assert whole.window("20min").to_bytes() == fresh.to_bytes()


@pytest.mark.parametrize(
    ("metric", "title", "values"),
    [
        (sm.AveragePrecision(multilabel=True), "y_score", RNG.random((50, 3))),
        (sm.F1(average="macro", multilabel=True), "y_pred", np.eye(3, dtype=int)[[0, 2] * 25]),
        (sm.HammingLoss(), "y_pred", np.eye(3, dtype=bool)[[0, 2] * 25]),
        (sm.MAE(), "y_pred", RNG.normal(size=(50, 3))),
    ],
    ids=["ap", "f1", "hamming", "mae"],
)
@pytest.mark.parametrize("parameters", [{}, {"keep_rows": 10}], ids=["", "kept"])
def test_rows_that_came_late_are_those_that_were_observed(metric, title, values, parameters):
    true = (np.random.default_rng(2).random((50, 3)) < 0.5).astype(int)
    times, ids = START + np.arange(50) * 15, np.arange(50)
    whole = joined(metric.copy(), types={"y_true": 3, title: 3}).observe(
        time=times, y_true=true, **{title: values}
    )
    late = joined(metric.copy(), types={"y_true": 3, title: 3}, **parameters)
    for place in range(50):
        late.label(id=place, time=times[place] + 1, y_true=true[place].tolist())
        late.predict(id=place, time=times[place], **{title: values[place].tolist()})
    assert late.window("20min").to_bytes() == whole.window("20min").to_bytes()
    assert late.possible("20min") == (late.window("20min").compute(),) * 2
    columns = joined(metric.copy(), types={"y_true": 3, title: 3}, **parameters)
    columns.predict(id=ids, time=times, **{title: values.tolist()})
    columns.label(id=ids, time=times + 1, y_true=true.astype(float))
    assert columns.to_bytes() == late.to_bytes()
    assert sm.from_bytes(late.to_bytes()) == late
    late.predict(id="due", time=times[-1], **{title: values[-1].tolist()})
    assert late.possible("20min", target_range=(0, 1)) is None
    if parameters:
        newest = metric.copy().update(y_true=true[-4:], **{title: values[-4:]})
        assert late.last(4).to_bytes() == newest.to_bytes()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("metric", "types", "column", "label"),
    [
        (sm.ROCAUC(), {}, {"y_score": 0.5}, [1, 0]),
        (sm.Accuracy(), {}, {"y_pred": 1}, [1, 0]),
        (sm.LogLoss(labels=[0, 1, 2]), {}, {"y_score": [0.5, 0.25, 0.25]}, [1, 0, 0]),
        (sm.HammingLoss(), {"y_true": 2, "y_pred": 2}, {"y_pred": [1, 0]}, 1),
        (
            sm.SubsetAccuracy(threshold=0.5),
            {"y_true": 2, "y_score": 2},
            {"y_score": [0.5, 1.0]},
            [1, 0.5],
        ),
    ],
    ids=["auc", "accuracy", "loss", "hamming", "subset"],
)
def test_a_label_of_another_form_than_the_metrics_read_is_refused(
    metric, types, column, label, known
):
    state = joined(metric, types=types)
    if known:
        state.predict(id="a", time=START, **column)
    before = state.copy()
    with pytest.raises(sm.InvalidBatchError, match=r"y_true|labels|one-hot"):
        state.label(id="a", time=START, y_true=label)
    assert state == before


def test_a_row_has_as_many_labels_as_all_others():
    state = joined().predict(id="a", time=START, y_score=[0.25, 0.75])
    before = state.copy()
    with pytest.raises(sm.InvalidBatchError, match="y_true has 3 .* declared to have 2"):
        state.label(id="a", time=START, y_true=[1, 0, 1])
    with pytest.raises(sm.InvalidBatchError, match="score"):
        state.predict(id="b", time=START, y_score=[0.25, 0.75, 0.5])
    assert state == before


def test_one_label_does_not_stand_for_several():
    types = {"y_true": 2, "y_pred": 2}
    with pytest.raises(sm.InvalidBatchError, match="default_label=0 is one: leave it away"):
        joined(sm.MAE(), default_label=0, types=types).label(id="a", time=START, y_true=[1.0, 0.0])
    with pytest.raises(sm.InvalidBatchError, match="default_label=0 is one: leave it away"):
        joined(sm.MAE(), default_label=0, types=types).predict(
            id="a", time=START, y_pred=[1.0, 0.0]
        )
    with pytest.raises(
        ValueError, match="default_label=0 is not a valid label here: .* one number a row"
    ):
        joined(default_label=0)


def test_a_store_keeps_labels_of_several_values(tmp_path):
    whole = joined()
    with joined(store=tmp_path / "live.db") as state:
        for into in (state, whole):
            into.predict(id="a", time=START, y_score=[0.25, 0.75])
            into.label(id="a", time=START, y_true=[0, 1])
    with joined(store=tmp_path / "live.db") as state:
        assert state.to_bytes() == whole.to_bytes()
        assert state.window("1min").compute()["subset"] == 1.0
