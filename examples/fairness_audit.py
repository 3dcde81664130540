"""A fairness audit: for whom a model is worse, how much, and how sure that is.

Run: python examples/fairness_audit.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import streammetrics as sm

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"


def audited() -> sm.Slices:
    """Return the slices of the file, read in two shards and merged, as a cluster would."""
    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(), "recall": sm.Recall(threshold=0.5), "loss": sm.LogLoss()},
        columns={"y_true": "label", "y_score": "score"},
    )
    slices = sm.Slices(suite, by=[[], ["sex"], ["race", sm.Bins("age", [25, 45, 65])]])
    table = pq.read_table(PATH)
    shards = [table.slice(0, 20_000), table.slice(20_000)]
    return sm.merge([slices.copy().update(shard) for shard in shards])


def main() -> None:
    """Print the worst slices and the gap between women and men."""
    audit = audited()
    print(f"{audit.n_rows:,} rows, {audit.nbytes / 1e6:.1f} MB")
    worst = audit.worst("recall", k=5, min_rows=500)
    print(worst.to_frame().drop(columns="by").round(4).to_string(index=False))
    for name in ("recall", "auc"):
        gap = audit.gap(name, by="sex")
        low, high = gap.confidence or (float("nan"), float("nan"))
        print(
            f"{name}: {gap.lowest} is {gap.value:.3f} below {gap.highest}, {low:.3f} to {high:.3f}"
        )
    whole = sm.evaluate(audit.copy().reset(), PATH)
    assert whole == audit  # to the byte, however the rows came


if __name__ == "__main__":
    main()
