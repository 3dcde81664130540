"""Make the pictures of the docs: python tests/pictures/make.py docs/pictures."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from browser import opened
from idea import idea

import streammetrics as sm

DATA = Path(__file__).parents[2] / "examples" / "data" / "adult_income_predictions.parquet"


def census():
    """Return the income predictions by sex and education, as a report would be asked for."""
    suite = sm.MetricSet(
        {
            "accuracy": sm.Accuracy(threshold=0.5),
            "ROC AUC": sm.ROCAUC(max_bins=2048),
            "average precision": sm.AveragePrecision(max_bins=2048),
            "log loss": sm.LogLoss(),
            "calibration": sm.CalibrationCurve(n_bins=10, max_bins=2048),
            "confusion": sm.ConfusionMatrix(threshold=0.5),
        },
        columns={"y_true": "label", "y_score": "score"},
    )
    return sm.Slices(suite, by=[[], ["sex"], ["education"]]).update(pq.read_table(DATA))


def main(folder):
    (folder / "idea.svg").write_text(idea())
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        census().report(page, title="Who earns over 50K: gradient boosting, out of fold")
        for scheme in ("light", "dark"):
            with opened(page, width=900, height=1500, dark=scheme == "dark") as driver:
                driver.get_screenshot_as_file(str(folder / f"report-{scheme}.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
