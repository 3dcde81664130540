"""Ray Data reads a Parquet file in blocks; each task sends back the state of what it read.

Run: python examples/engine_ray.py
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import ray

import streammetrics as sm
from streammetrics.engines.ray import evaluate, evaluate_groups

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"


def main() -> None:
    """Evaluate the file as a whole and by group, and compare with one pass."""
    # Ray's own settings warn that they are deprecated when Ray makes them.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"ray\.data\.context")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=200 * 2**20,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(), "ap": sm.AveragePrecision(), "loss": sm.LogLoss()},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )
    dataset = ray.data.read_parquet(str(PATH), override_num_blocks=8)

    result = evaluate(suite, dataset)
    for name, value in result.compute().items():
        print(f"{name}: {value:.6f}")
    alone = suite.copy().update(pq.read_table(PATH))
    assert result.to_bytes() == alone.to_bytes()
    print("the same bytes as one pass")

    groups = evaluate_groups(suite, dataset, by="sex")
    for group, metrics in groups.items():
        print(f"{group}: {metrics.n_rows:,} rows, AUC {metrics['auc'].compute():.4f}")
    assert sm.merge(groups.values()) == result
    ray.shutdown()


if __name__ == "__main__":
    main()
