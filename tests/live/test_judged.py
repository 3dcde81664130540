"""Estimates of a window are those of an `Estimated` of the same rows, however the events came."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from live.events import START

import streammetrics as sm
from streammetrics.core.state.container import packed, unpacked
from streammetrics.live.forgetting import forget, keys_named

SUITE = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(), "brier": sm.BrierScore()}
TTL, LATENESS = 300, 1800
TIERS = (("1min", "1h"), ("5min", "4h"))


def judged(metrics=None, **parameters):
    suite = sm.MetricSet(SUITE) if metrics is None else metrics
    defaults = {"tiers": TIERS, "label_ttl": "5min", "label_lateness": "30min", "proxy": "judge"}
    return sm.Live(suite, **defaults | parameters)


def estimator(metrics=SUITE):
    return sm.Estimated(metrics, proxy="judge")


def state_of(live, length="1h"):
    """Return the `Estimated` that a window's estimates are read from."""
    return live._queries.judged(length)


def history(events):
    """Return predictions, labels, and observations; labels may be late, twice or corrected."""
    found = []
    for place, (second, score, judge, labels, alone) in enumerate(events):
        row = {"y_score": score, "judge": judge}
        if alone:
            found.append(("observe", {"time": START + second, "y_true": labels[0][1], **row}))
            continue
        found.append(("predict", {"id": place, "time": START + second, **row}))
        for delay, label, version in labels:
            event = {"time": START + second + delay, "y_true": label, "version": version}
            found.append(("label", {"id": place, **event}))
    return found


def plain(events, begin=0, default=None, clock=0, metrics=SUITE):
    """Return an `Estimated` fed with the rows from `begin` on, with the labels that count."""
    made = estimator(metrics)
    for second, score, judge, labels, alone in events:
        timely = [(v, delay, label) for delay, label, v in labels if -LATENESS <= delay <= TTL]
        label = max(timely)[2] if timely else None
        if label is None and second + TTL < clock:
            label = default
        if alone:
            label = labels[0][1]
        if second >= begin:
            made.update(y_score=[score], judge=[judge], y_true=[label])
    return made


def events_of(random, n):
    """Return events that are all in time for the join, whatever their order."""
    found = []
    for _ in range(n):
        alone = random.random() < 0.2
        several = range(random.choice([1, 1, 2, 3] if alone else [0, 0, 1, 2, 3]))
        labels = [(random.randint(-50, 400), random.randint(0, 1), 1 + n % 2) for n in several]
        second, score = random.randint(0, 450), random.randint(0, 4) / 4
        found.append((second, score, random.randint(0, 1), labels, alone))
    return found


def feed(live, kind, columns):
    getattr(live, kind)(**columns)


@pytest.mark.parametrize(
    "seed", [*range(8), *[pytest.param(n, marks=pytest.mark.long) for n in range(8, 60)]]
)
def test_any_order_and_merge_tree_gives_the_estimates_of_the_rows(seed):
    random = Random(seed)
    events = events_of(random, 1 + 4 * seed)
    told = history(events)
    whole = judged()
    for kind, columns in told:
        feed(whole, kind, columns)
    every = random.sample(told, len(told))
    every += random.sample([each for each in told if each[0] != "observe"], len(events) // 8)
    states = [judged() for _ in range(random.randint(1, 3))]
    for kind, columns in every:
        into = random.choice(states)
        one = random.random() < 0.7
        feed(into, kind, columns if one else {name: [value] for name, value in columns.items()})
        if random.random() < 0.1:
            state_of(into)
        if random.random() < 0.1:
            states[states.index(into)] = sm.from_bytes(into.to_bytes())
    merged = states.pop()
    merged.merge(*states)
    assert merged.to_bytes() == whole.to_bytes()
    assert state_of(merged).to_bytes() == plain(events).to_bytes()
    newest = max([int(columns["time"]) for kind, columns in told if kind != "label"])
    first = newest // 60 * 60 - 240 - START
    inside = plain(events, first)
    assert state_of(merged, "5min").to_bytes() == inside.to_bytes()
    later = {"y_score": 0.5, "judge": 1, "id": "later", "time": START + 3000}
    for live in (merged, whole):
        live.predict(**later)  # the others leave
    assert len(merged.flush()._shared.current.join.table) == 1
    assert merged.to_bytes() == whole.to_bytes()
    expected = plain([*events, (3000, 0.5, 1, [], False)])
    for live in (merged, merged.copy(), sm.from_bytes(merged.to_bytes())):
        assert state_of(live).to_bytes() == expected.to_bytes()


def rows(n, seed=0, span=1500):
    """Return events in columns of which one in five has a label."""
    rng = np.random.default_rng(seed)
    answer, score = rng.integers(0, 2, n), rng.integers(0, 17, n) / 16
    judge = np.where(rng.random(n) < 0.9, answer, 1 - answer)
    times = np.sort(START + rng.integers(0, span, n)).astype(float)
    return {"id": np.arange(n), "time": times, "y_score": score, "judge": judge}, answer


def sent(live, n=400, **changed):
    """Send predictions and the labels of some; return what a plain set is fed with."""
    columns, answer = rows(n)
    columns |= changed
    known = np.full(n, np.nan)
    known[::5] = answer[::5]
    for first in range(0, n, 20):
        part = slice(first, first + 20)
        live.predict(**{name: column[part] for name, column in columns.items()})
        few = np.arange(first, min(first + 20, n), 5)
        live.label(id=few, time=columns["time"][few] + 60, y_true=answer[few])
    return {"y_true": known, **{k: v for k, v in columns.items() if k not in {"id", "time"}}}


def judged_values(estimated):
    values, limits = estimated.compute(), estimated.confidence(0.95)
    return {
        name: (value, *limits[name], 0.95, limits[name].method) for name, value in values.items()
    }


def test_values_and_limits_are_those_of_an_estimated():
    live = judged()
    expected = estimator().update(sent(live))
    found = live.estimated("1h")
    assert found == judged_values(expected)
    assert all(one.low < one.value < one.high for one in found.values())
    narrow, wide = (live.estimated("1h", level=level)["auc"] for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.value == wide.value == found["auc"].value
    end = START + 900
    assert live.estimated("5min", end=end)["auc"] != found["auc"]


@pytest.mark.parametrize("by", [(), "y_score"])
def test_rows_that_wait_left_or_were_evicted_are_all_there(by):
    waits = judged(by=by and sm.Bins(by, [0.5]))
    expected = estimator().update(sent(waits))
    assert state_of(waits).to_bytes() == expected.to_bytes()
    left = judged(label_ttl="2min", label_lateness="1min", by=by and sm.Bins(by, [0.5]))
    sent(left)
    assert left.coverage("1h").expired > 250
    assert state_of(left).to_bytes() == expected.to_bytes()
    assert len(left._shared.current.join.table) < 100
    assert left.estimated("1h") == waits.estimated("1h") == judged_values(expected)
    for again in (left.copy(), sm.from_bytes(left.to_bytes())):
        assert state_of(again).to_bytes() == expected.to_bytes()


def test_rows_that_leave_early_keep_their_judgment():
    crowded = judged(max_pending=100, label_ttl="1h")
    columns, answer = rows(400)
    with pytest.warns(UserWarning, match="max_pending"):
        crowded.predict(**columns)
    crowded.label(id=range(400), time=columns["time"] + 60, y_true=answer)
    displaced = crowded.coverage("1h").displaced
    assert displaced
    known = np.where(np.arange(400) < displaced, np.nan, answer)
    expected = estimator().update(y_true=known, y_score=columns["y_score"], judge=columns["judge"])
    assert state_of(crowded).to_bytes() == expected.to_bytes()


def test_panes_that_are_gone_take_their_rows_along():
    live = judged(tiers=[("1min", "5min")], label_ttl="1min", label_lateness="1min")
    columns, _ = rows(400)
    live.predict(**columns)
    first = live.span("5min")[0].timestamp()
    young = columns["time"] >= first
    part = {name: columns[name][young] for name in ("y_score", "judge")}
    expected = estimator().update(y_true=[None] * int(young.sum()), **part)
    assert state_of(live, "5min").to_bytes() == expected.to_bytes()


def test_a_default_label_is_the_label_of_rows_that_expired():
    events = [(second, 0.25 * (second % 5), second % 3 % 2, [], False) for second in range(900)]
    events[::7] = [(*one[:3], [(60, 1, 1)], False) for one in events[::7]]
    live = judged(default_label=0)
    for kind, columns in history(events):
        feed(live, kind, columns)
    assert state_of(live) == plain(events, default=0, clock=956)
    assert 0 < state_of(live)["labels"].n_rows < 900
    live.predict(id="later", time=START + 3000, y_score=0.5, judge=1)
    rest = [*events, (3000, 0.5, 1, [], False)]
    assert state_of(live) == plain(rest, default=0, clock=3000)
    assert state_of(live)["labels"].n_rows == 900


def test_a_label_that_does_not_fit_its_prediction_leaves_the_judgment():
    live = judged(sm.MetricSet({"loss": sm.MSLE()}))
    live.predict(id=[1, 2], time=[START] * 2, y_pred=[1.0, 2.0], judge=[1.0, 3.0])
    live.label(id=1, time=START, y_true=1.0)
    state = state_of(live)
    assert (state["labels"].n_rows, state["judgments"].n_rows) == (1, 2)


def test_observations_count_once_and_have_judgments_too():
    live = judged(dedupe="10min")
    row = {"y_score": 0.75, "y_true": 1, "judge": 0}
    for _ in range(2):
        live.observe(id="a", time=START, **row)
        live.observe(time=[START + 1], **{name: [value] for name, value in row.items()})
        live.observe(time=START + 2, **row)
    columns = {name: [value] * 5 for name, value in row.items()}
    assert state_of(live).to_bytes() == estimator().update(columns).to_bytes()
    live.observe(time=START + 3000, **row)
    assert state_of(live).to_bytes() == state_of(sm.from_bytes(live.to_bytes())).to_bytes()
    assert live.window("1h").n_rows == 6


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")  # of three rows
@pytest.mark.parametrize(
    ("metrics", "predicted", "truth", "declared"),
    [
        (sm.MetricSet({"a": sm.Accuracy()}), ["x", "y", "y"], ["x", "y", "x"], ["x", "y"]),
        (sm.MetricSet({"a": sm.F1(average="macro")}), [0, 1, 2], [0, 2, 2], None),
        (sm.MetricSet({"a": sm.MSE()}), [0.5, 1.5, 2.5], [1.0, 1.5, 2.0], None),
        (sm.MetricSet({"a": sm.MAE()}, columns={"y_true": "t", "y_pred": "p"}), [1, 2, 3],
         [1.0, 2.5, 2.0], None),
        (sm.Accuracy(), [True, False, True], [True, True, True], None),
    ],
)  # fmt: skip
def test_text_numbers_names_and_single_metrics(metrics, predicted, truth, declared):
    of = metrics if isinstance(metrics, sm.MetricSet) else sm.MetricSet({"a": metrics})
    label, pred = (of.columns.get(name, name) for name in ("y_true", "y_pred"))
    live = judged(metrics, labels=declared)
    for row in range(3):
        live.predict(id=row, time=START, **{pred: predicted[row], "judge": truth[-row]})
    live.label(id=[0, 1], time=[START] * 2, **{label: truth[:2]})
    columns = {pred: predicted, "judge": [truth[-row] for row in range(3)]}
    expected = sm.Estimated(of, proxy="judge").update({**columns, label: [*truth[:2], None]})
    found = live.estimated("1h")
    found = found["a"] if isinstance(metrics, sm.MetricSet) else found
    assert found.value == expected.compute()["a"]
    assert repr(found[1:]) == repr((*(limits := expected.confidence()["a"]), 0.95, limits.method))
    assert repr(sm.from_bytes(live.to_bytes()).estimated("1h")) == repr(live.estimated("1h"))


def test_weights_are_those_of_the_rows():
    live = judged(types={"sample_weight": "number"})
    fed = sent(live, sample_weight=np.arange(400) % 3 + 1.0)
    assert state_of(live).to_bytes() == estimator().update(**fed).to_bytes()


def test_metrics_without_an_estimate_are_none_and_so_are_all_without_a_label():
    live = judged(sm.MetricSet({**SUITE, "ece": sm.CalibrationError()}), keep_rows=50)
    columns, answer = rows(100)
    live.predict(**columns)
    assert live.estimated("1h") == dict.fromkeys([*SUITE, "ece"])
    live.label(id=range(50), time=columns["time"][:50], y_true=answer[:50])
    live.observe(time=START, y_true=1, y_score=0.5, judge=1)
    found = live.estimated("1h")
    assert [name for name, one in found.items() if one is None] == ["ece"]
    assert live.last(50).n_rows == 50
    assert judged(sm.Accuracy()).estimated("1h") is None


def test_a_store_is_read_with_its_judgments(tmp_path):
    path = tmp_path / "live.db"
    with judged(store=path) as live:
        expected = estimator().update(sent(live))
        live.observe(time=START, y_true=1, y_score=0.5, judge=0)
    expected.update(y_true=[1], y_score=[0.5], judge=[0])
    with judged(store=path) as live, judged(store=path) as other:
        assert state_of(live).to_bytes() == state_of(other).to_bytes() == expected.to_bytes()
    with pytest.raises(sm.StreamMetricsError, match="proxy is 'judge' there and None here"):
        judged(store=path, proxy=None)


def test_without_a_proxy_nothing_is_kept_and_the_error_says_what_to_type():
    live = judged(proxy=None)
    with pytest.raises(ValueError, match=r'Live\(proxy="judge"\)'):
        live.estimated("1h")
    meta, arrays = unpacked(live.to_bytes())[:2]
    assert "proxy" not in meta["config"]
    assert not [name for name in arrays if name.startswith("judged")]
    with pytest.raises(sm.IncompatibleMetricsError, match="proxy is 'judge' there and None here"):
        live.merge(judged())


def refuse(live, message, kind, **columns):
    before = live.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        feed(live, kind, columns)
    assert live.to_bytes() == before


@pytest.mark.parametrize("durable", [False, True])
def test_bad_judgments_are_refused_with_column_count_and_row(durable, tmp_path):
    store = {"store": tmp_path / "live.db", "durable": True} if durable else {}
    with judged(**store) as live:
        sent(live)
        times, scores = [START] * 4, [0.5] * 4
        label = {"y_true": [1] * 4}
        for kind, more in (("predict", {"id": [1001, 1002, 1003, 1004]}), ("observe", label)):
            alike = {"time": times, "y_score": scores, **more}
            one = {name: column[0] for name, column in alike.items()}
            for bad in (None, np.nan):
                message = "judge is missing .* in 2 rows, first in row 1"
                refuse(live, message, kind, **alike, judge=[1, bad, 0, bad])
                refuse(live, "judge'? is missing", kind, **one, judge=bad)
            message = "judge is none of the classes in 1 row, first in row 2"
            refuse(live, message, kind, **alike, judge=[1, 0, 2, 0])
            refuse(live, "judge is none of the classes .* row 0", kind, **one, judge=7)
            refuse(live, "'judge' is missing: every prediction", kind, **alike)
            refuse(live, "'judge' is missing: every prediction", kind, **one)
            refuse(live, "judge has text", kind, **one, judge="yes")
            refuse(live, "differ in length|judge has 3", kind, **alike, judge=[1, 0, 1])
        refuse(live, "a label has one column", "label", id=1, time=START, y_true=1, judge=1)


def test_a_judgment_outside_the_range_of_targets_is_refused():
    live = judged(sm.MetricSet({"mse": sm.MSE()}), target_range=(0, 10))
    message = r"judge is outside \[0, 10\].* in 1 row, first in row 1"
    refuse(live, message, "predict", id=[1, 2], time=[START] * 2, y_pred=[1.0] * 2, judge=[1, 11])


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("y_score", "proxy='y_score' is also read as another column"),
        ("y_true", "proxy='y_true' is also read"),
        ("sample_weight", "is also read"),
        ("time", "is also read"),
        ("", "expected the name of a column"),
        (7, "expected the name of a column"),
    ],
)
def test_a_proxy_is_a_column_of_its_own(proxy, message):
    with pytest.raises(ValueError, match=message):
        judged(proxy=proxy)


def test_a_proxy_needs_a_metric_that_can_be_estimated():
    with pytest.raises(ValueError, match="nothing can be estimated: 'value', CalibrationError"):
        judged(sm.CalibrationError())
    with pytest.raises(ValueError, match="no metric reads a label"):
        judged(sm.Mean())


def test_what_is_declared_for_labels_is_declared_for_judgments():
    live = judged(sm.MetricSet({"a": sm.Accuracy()}), types={"y_true": "text", "y_pred": "text"})
    live.predict(id=1, time=START, y_pred="cat", judge="dog")
    with pytest.raises(ValueError, match="judge is 'text'"):
        judged(sm.MetricSet({"a": sm.MSE()}), types={"judge": "text"})


def test_forged_states_are_refused():
    live = judged()
    sent(live)
    meta, arrays = unpacked(live.to_bytes())[:2]
    without = {name: a for name, a in arrays.items() if not name.startswith("judged/")}
    wrong = dict(arrays)
    place = meta["rows"]["names"].index("judge")
    (name,) = [n for n in arrays if n.startswith(f"rows/column/{place}") and n.endswith("values")]
    wrong[name] = arrays[name] + 7
    for proxy in ("y_score", 7):
        told = {**meta, "config": {**meta["config"], "proxy": proxy}}
        with pytest.raises(sm.StateFormatError, match="invalid declaration: proxy=|Estimated"):
            sm.from_bytes(packed(told, arrays, ""))
    for forged, message in ((without, "numbers"), (wrong, "judge is")):
        with pytest.raises(sm.StateFormatError, match=message):
            sm.from_bytes(packed(meta, forged, ""))


def test_rows_that_are_forgotten_leave_the_estimates_where_that_is_exact():
    def served(ids, lateness="2min"):
        suite = sm.MetricSet({"a": sm.Accuracy()})
        live = judged(suite, label_ttl="2min", label_lateness=lateness)
        for place in ids:
            row = {"y_pred": place % 3 % 2, "judge": place % 2}
            live.predict(id=f"r{place}", time=START + place, **row)
            if place % 3:
                live.label(id=f"r{place}", time=START + place, y_true=place % 5 % 2)
        return live

    gone = [1, 2, 30, 500, 901]
    live, others = served(range(1000)), served([n for n in range(1000) if n not in gone])
    known = served(gone[:-1], "1h")._ingest.snapshot()
    pipeline = live._ingest.snapshot()
    found = forget(pipeline, keys_named([f"r{place}" for place in gone]), known)
    assert (found.waiting, found.taken_back, len(found.kept)) == (1, 3, 1)  # 30 has no label
    assert state_of(sm.Live._of(pipeline)) == state_of(others)
