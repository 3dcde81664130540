"""Which of two models is better, and how sure that is: on the same rows, from files, with weights.

Run with: python examples/compare_models.py
"""

from __future__ import annotations

from pathlib import Path

import streammetrics as sm

DATA = Path(__file__).parent / "data" / "adult_income_predictions.parquet"


def main() -> None:
    """Compare gradient boosting with logistic regression on the census data."""
    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(), "recall": sm.Recall(threshold=0.5), "loss": sm.LogLoss()},
        columns={"y_true": "label"},
    )
    duel = sm.Comparison(suite, {"boosting": "score", "logistic": "baseline_score"})
    print(sm.evaluate(duel, DATA).compute())

    # Census weights: rows stand for as many people as they weigh.
    weighted = sm.MetricSet(
        dict(suite.items()), columns={"y_true": "label", "sample_weight": "weight"}
    )
    duel = sm.Comparison(weighted, {"boosting": "score", "logistic": "baseline_score"})
    for line in sm.evaluate(duel, DATA).compute(confidence=0.99):
        print(f"{line.metric}: {line.difference:+.4f}, {line.verdict} ({line.test})")


if __name__ == "__main__":
    main()
