"""Evaluate Parquet that need not fit in memory, a batch at a time, by group as well.

Run: python examples/out_of_core.py [FILE OR FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

import streammetrics as sm

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"


def main() -> None:
    """Stream the file through metrics for all rows and for each group."""
    path = sys.argv[1] if len(sys.argv) > 1 else PATH
    blank = sm.MetricSet(
        {
            "auc": sm.ROCAUC(max_bins=2**12),
            "brier": sm.BrierScore(),
            "f1": sm.F1(threshold=0.5),
        },
        columns={"y_true": "label", "y_score": "score"},
    )
    whole = blank.copy()
    groups: dict[str, sm.MetricSet] = {}
    for batch in ds.dataset(path).to_batches(columns=["label", "score", "sex"], batch_size=8192):
        whole.update(batch)
        for group in pc.unique(batch["sex"]):
            rows = batch.filter(pc.equal(batch["sex"], group))
            groups.setdefault(group.as_py(), blank.copy()).update(rows)

    for title, suite in {"all": whole, **groups}.items():
        low, high = suite["auc"].bounds()
        values = ", ".join(f"{name} {value:.4f}" for name, value in suite.compute().items())
        print(
            f"{title:8} {suite.n_rows:6,} rows: {values}; AUC certainly in [{low:.5f}, {high:.5f}]"
        )
    # The groups together are the whole, to the byte.
    assert sm.merge(groups.values()) == whole
    print(f"held in memory: {whole.nbytes:,} bytes")


if __name__ == "__main__":
    main()
