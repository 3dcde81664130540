"""Models compared on the rows that all of them have predicted, against a table joined by hand."""

from __future__ import annotations

import numpy as np
import pytest
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
