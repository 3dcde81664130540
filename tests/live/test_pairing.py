"""Models compared on the rows that all of them have predicted, against a table joined by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.events import START

import streammetrics as sm
from streammetrics.live.pairing import paired

METRICS = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss()}


def live(metrics=METRICS, **parameters):
    parameters = {"label_ttl": "1d", "label_lateness": "1d", **parameters}
    return sm.Live(sm.MetricSet(metrics), **parameters)


def model(ids, labels, seed, state=None, **more):
    """Return a model that has predicted some ids, in an order of its own."""
    chance = np.random.default_rng(seed)
    state = live() if state is None else state
    scores = dict(zip(ids, chance.integers(1, 100, len(ids)) / 100, strict=True))
    for key in chance.permutation(ids):
        state.predict(id=f"r{key}", time=START + int(key), y_score=scores[key], **more)
        if key in labels:
            state.label(id=f"r{key}", time=START + int(key) + 5, y_true=labels[key])
    return state, scores


def queries(**states):
    return {name: state._queries for name, state in states.items()}


def by_hand(labels, scores):
    duel = sm.Comparison(METRICS, list(scores), baseline=next(iter(scores)))
    keys = sorted(labels)
    return duel.update(
        y_true=[labels[key] for key in keys],
        **{name: [found[key] for key in keys] for name, found in scores.items()},
    ).compute()


@pytest.mark.parametrize("by", [(), "country"])
def test_the_differences_are_those_of_a_table_joined_by_id(by):
    labels = {key: int(key * 7 % 10 > 4) for key in range(600) if key % 5}
    more = {"country": "DE"} if by else {}
    old, a = model(range(500), labels, 1, live(by=by), **more)
    new, b = model(range(100, 600), labels, 2, live(by=by), **more)
    third, c = model(range(50, 550, 2), labels, 3, live(by=by), **more)
    for states, scores, keys in (
        ({"old": old, "new": new}, {"old": a, "new": b}, range(100, 500)),
        ({"new": new, "old": old, "x": third}, {"new": b, "old": a, "x": c}, range(100, 500, 2)),
    ):
        found = paired(queries(**states))
        some = {key: labels[key] for key in keys if key in labels}
        assert found.n_rows == len(some)
        assert found.differences == by_hand(some, scores)
        assert (found.labels_differ, found.left_out) == (0, ())
    assert paired(queries(old=old, new=new), (START + 400) * 10**9).n_rows == 80


def test_rows_whose_labels_differ_are_left_out_and_counted():
    labels = {key: key % 2 for key in range(200)}
    old, a = model(range(200), labels, 1)
    new, b = model(range(200), {**labels, 7: 0, 9: 0}, 2)
    found = paired(queries(old=old, new=new))
    rest = {key: label for key, label in labels.items() if key not in {7, 9}}
    assert (found.n_rows, found.labels_differ) == (198, 2)
    assert found.differences == by_hand(rest, {"old": a, "new": b})


def test_labels_that_are_text():
    state = {name: live({"right": sm.Accuracy()}, labels=["no", "yes"]) for name in ("old", "new")}
    for place in range(40):
        for name, says in (("old", "yes"), ("new", "no" if place % 4 else "yes")):
            state[name].predict(id=place, time=START, y_pred=says)
            state[name].label(id=place, time=START, y_true="no" if place % 2 else "yes")
    (line,) = paired(queries(**state)).differences
    assert (line.value, line.other, line.n_rows) == (0.75, 0.5, 40)


def test_only_metrics_with_the_same_parameters_are_compared():
    labels = {key: key % 2 for key in range(50)}
    old, _ = model(range(50), labels, 1)
    other = {**METRICS, "accuracy": sm.Accuracy(threshold=0.7), "brier": sm.BrierScore()}
    new, _ = model(range(50), labels, 2, live(other))
    found = paired(queries(old=old, new=new))
    assert {line.metric for line in found.differences} == {"auc", "loss"}
    assert found.left_out == ("accuracy", "brier")
    for metrics in ({"error": sm.MAE()}, {"mean": sm.Mean()}):
        none = paired(queries(old=old, new=live(metrics)))
        assert (len(none.differences), none.n_rows) == (0, 0)


def test_without_rows_in_common_nothing_is_known():
    old, _ = model(range(50), {}, 1)
    new, _ = model(range(50, 90), {60: 1}, 2)
    for states in ({"old": old, "new": new}, {"new": new, "old": old}, {"a": live(), "b": live()}):
        found = paired(queries(**states))
        assert found.n_rows == 0
        assert all(np.isnan(line.difference) for line in found.differences)
    with pytest.raises(ValueError, match="two models or more"):
        paired(queries(old=old))
    for metric in (sm.Accuracy(), sm.F1(average="macro"), sm.MAE()):
        found = paired(queries(old=live({"it": metric}), new=live({"it": metric})))
        assert (found.n_rows, [line.verdict for line in found.differences]) == (0, ["no evidence"])


TTL = 100  # seconds, of labels; they may be late by as much, so that all rows wait
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("predict"), st.integers(0, 9), st.integers(0, 90), st.integers(0, 1)),
        st.tuples(
            st.just("label"),
            st.integers(0, 9),
            st.integers(0, 180),
            st.tuples(st.integers(1, 3), st.integers(0, 1)),  # version and value
        ),
    ),
    max_size=40,
)


def by_rule(events, default):
    """Return the prediction and the label of each id that has both, as the docs define them."""
    clock, found = max((second for _, _, second, _ in events), default=0), {}
    for key in range(10):
        mine = [(kind, second, what) for kind, one, second, what in events if one == key]
        rows = [(second, what) for kind, second, what in mine if kind == "predict"]
        if rows:
            begin, said = min(rows)
            labels = [
                (version, second, value)
                for kind, second, (version, value) in (m for m in mine if m[0] == "label")
                if -TTL <= second - begin <= TTL
            ]
            if labels:
                found[key] = said, max(labels)[2]
            elif default is not None and begin + TTL < clock:
                found[key] = said, default
    return found


def send(state, event):
    kind, key, second, what = event
    if kind == "predict":
        state.predict(id=key, time=START + second, y_pred=what)
    else:
        version, value = what
        state.label(id=key, time=START + second, y_true=value, version=version)


@pytest.mark.parametrize("is_stored", [False, True])
@given(
    histories=st.tuples(EVENTS, EVENTS),
    default=st.sampled_from([None, 0]),
    random=st.randoms(use_true_random=False),
)
def test_any_order_of_events_is_compared_by_the_labels_that_count(
    histories, default, random, is_stored, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("stores") if is_stored else None
    states = {
        name: live(
            {"accuracy": sm.Accuracy()},
            label_ttl=f"{TTL}s",
            label_lateness=f"{TTL}s",
            default_label=default,
            **({"store": folder / f"{name}.db"} if folder else {}),
        )
        for name in ("old", "new")
    }
    try:
        for state, events in zip(states.values(), histories, strict=True):
            for event in random.sample(events, len(events)):
                send(state, event)
                if random.random() < 0.05:
                    paired(queries(**states))
        found = paired(queries(**states))
        old, new = (by_rule(events, default) for events in histories)
        both = sorted(old.keys() & new.keys())
        same = [key for key in both if old[key][1] == new[key][1]]
        assert (found.n_rows, found.labels_differ) == (len(same), len(both) - len(same))
        (line,) = found.differences
        if same:
            for value, rows in ((line.value, new), (line.other, old)):
                said, labels = zip(*[rows[key] for key in same], strict=True)
                assert value == sm.Accuracy().update(labels, said).compute()
    finally:
        for state in states.values():
            state.close()


def test_every_read_joins_labels_that_came_before_their_predictions():
    """The same rows in the usual order give the same results, whichever read comes first."""
    reads = [
        lambda s: s.window("1h").compute(),
        lambda s: s.coverage("1h"),
        lambda s: s.possible("1h"),
        lambda s: s.estimated("1h"),
        lambda s: s.last(50).compute(),
        lambda s: s.decayed("1h").compute(),
        lambda s: s.series("1h", every="1h").to_dict(),
        lambda s: s.window("1h", by="shop").compute().to_dict(),
        lambda s: s.alerts([sm.Below("a", 0.9, window="1min", min_rows=1, after="1min")]).to_dict(),
        lambda s: s.to_bytes(),
        lambda s: s.copy().last(50).compute(),
        lambda s: s.copy().reset().merge(s).to_bytes(),
        lambda s: str(s.inputs("1h")),
        lambda s: str(paired(queries(a=s, b=s.copy()))),
    ]
    for read in reads:
        found = []
        for is_first in (True, False):
            state = live(
                {"a": sm.Accuracy()}, by="shop", keep_rows=50, proxy="judge", inputs={"x": "number"}
            )
            for kind in ("label", "predict") if is_first else ("predict", "label"):
                for key in range(20):
                    if kind == "label":
                        state.label(id=key, time=START + key + 1, y_true=key % 2)
                    else:
                        row = {"y_pred": 1, "shop": "s", "judge": 1, "x": 1.0}
                        state.predict(id=key, time=START + key, **row)
            found.append(read(state))
        assert str(found[0]) == str(found[1])
