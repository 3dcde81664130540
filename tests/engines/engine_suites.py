"""Sets of metrics that the engines' tests evaluate, with metrics of a user's own that they ship."""

from __future__ import annotations

import numpy as np

import streammetrics as sm
from streammetrics.authoring import Floats, RowMean, prepare
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
        return self.earns * self.positive(table).tp / table.total


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


class Tokens(RowMean):
    """A user's own metric of text and of objects: tokens a word."""

    @prepare
    def counted(self, text: list[str], reply: list[dict[str, int]]) -> dict[str, list[int]]:
        words = [0 if one is None else len(one.split()) for one in text]
        return {"words": words, "tokens": [each["tokens"] for each in reply]}

    def row(self, words: Floats, tokens: Floats):
        return tokens, words

    def of_mean(self, tokens: Floats, words: Floats):
        return tokens / words


def prepared_suite():
    return sm.MetricSet({"tokens": Tokens()}, columns={"text": "question"})


def prepared_rows(n=200):
    """Rows of texts, of which some are null, and of structs."""
    words = np.random.default_rng(3).integers(0, 5, n).tolist()
    texts = [None if count == 4 else " ".join(["be"] * count) for count in words]
    return {"question": texts, "reply": [{"tokens": 3 * count} for count in words]}
