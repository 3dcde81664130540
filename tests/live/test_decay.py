"""What is older weighs less, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from live.events import START, live, rows

import streammetrics as sm


def test_a_row_weighs_by_the_age_of_its_pane():
    data = rows(500, span=360)
    suite = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.BrierScore()}
    tiers = (("1min", "10min"), ("5min", "200min"))
    state = sm.Live(sm.MetricSet(suite), tiers=tiers).observe(**data)
    panes = data["time"] // 60
    # Powers of two for weights, and so scaling and weighing are the same to the byte.
    expected = sm.MetricSet(suite)
    expected.update(
        y_true=data["y_true"],
        y_score=data["y_score"],
        sample_weight=2.0 ** -(panes.max() - panes),
    )
    assert state.decayed("1min").compute() == expected.compute()
    for half_life in ("7min", "90s", "3h"):
        length = {"7min": 7 / 5, "90s": 1.5 / 5, "3h": 180 / 5}[half_life]  # in panes of 5 minutes
        ages = data["time"].max() // 300 - data["time"] // 300
        weights = 2.0 ** -(ages / length)
        expected.reset().update(
            y_true=data["y_true"], y_score=data["y_score"], sample_weight=weights
        )
        found = state.decayed(half_life).compute()
        assert found == pytest.approx(expected.compute(), rel=1e-12)


def test_decay_does_not_depend_on_the_order_of_events():
    data = rows(300)
    order = np.random.default_rng(1).permutation(300)
    one = live().observe(**data)
    other = live().observe(**{name: column[order] for name, column in data.items()})
    assert one.decayed("3min").to_bytes() == other.decayed("3min").to_bytes()
    assert live().decayed("3min").n_rows == 0


def test_labels_that_came_late_weigh_by_their_prediction():
    state = sm.Live(sm.MAE())
    state.predict(id=1, time=START, y_pred=1.0).predict(id=2, time=START + 60, y_pred=1.0)
    state.label(id=1, time=START + 90, y_true=4.0).label(id=2, time=START + 90, y_true=1.0)
    assert state.decayed("1min").compute() == 1.0


def test_rows_without_weights_cannot_decay():
    state = sm.Live(sm.NDCG()).observe(time=START, query="1", doc="1", relevance=1, score=0.5)
    with pytest.raises(sm.InvalidBatchError, match="cannot be scaled"):
        state.decayed("1h")
    with pytest.raises(ValueError, match="half_life=0 is not a duration"):
        state.decayed(0)
