"""Sets of metrics that the engines' tests evaluate, with metrics of a user's own that they ship."""

from __future__ import annotations

import numpy as np

import streammetrics as sm
from streammetrics.metrics.classification.base import ContingencyMetric


class Own(sm.Metric):
    """A user's own metric, read from a statistic of ours."""

    def statistics(self):
        return sm.Mean().statistics()

    def readout(self, mean):
        return sm.Mean().readout(mean)

    def update(self, values):
        return self.feed({"values": values})


class HitProfit(ContingencyMetric):
    """A user's own metric with a parameter: what the hits earn per row."""

    earns: float = 10.0

    def read(self, table):
        return self.earns * table.tp[:, 1] / table.total


def suite():
    return sm.MetricSet(
        {"auc": sm.ROCAUC(max_bins=64), "f1": sm.F1(threshold=0.5), "own": Own()},
        columns={
            "y_true": "label",
            "y_score": "score",
            "values": "score",
            "sample_weight": "weight",
        },
    )


def exact_suite():
    return sm.MetricSet(
        {
            "auc": sm.ROCAUC(),
            "loss": sm.LogLoss(),
            "f1": sm.F1(threshold=0.5),
            "profit": HitProfit(threshold=0.5),
        },
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )


def weighted_rows(n=300):
    """Rows whose weights span sixteen orders of magnitude, so that rounding would show."""
    rng = np.random.default_rng(7)
    return {
        "label": rng.integers(0, 2, n),
        "score": rng.random(n).round(2),
        "weight": rng.random(n) * 10.0 ** rng.integers(-8, 8, n),
    }
