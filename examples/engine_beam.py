"""Apache Beam combines metrics by key: how good predictions are at each level of education.

Run: python examples/engine_beam.py
"""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003 - Beam reads the annotations
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that

import streammetrics as sm
from streammetrics.engines.beam import CombineMetrics

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"


def by_education(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split a table: Beam combines tables as well as rows, and much faster."""
    for education in pc.unique(table["education"]):
        yield str(education), table.filter(pc.equal(table["education"], education))


def line(education: str, metrics: sm.MetricSet) -> str:
    """Return a line of the report."""
    values = ", ".join(f"{name} {value:.4f}" for name, value in metrics.compute().items())
    return f"{education:12} {metrics.n_rows:6,} rows: {values}"


def main() -> None:
    """Combine the file by key, and compare each key with one pass over its rows."""
    suite = sm.MetricSet(
        {"AUC": sm.ROCAUC(), "Brier": sm.BrierScore(), "F1": sm.F1(threshold=0.5)},
        columns={"y_true": "label", "y_score": "score"},
    )
    alone = {
        education: suite.copy().update(rows).to_bytes()
        for education, rows in by_education(pq.read_table(PATH))
    }

    def check(states: list[tuple[str, sm.MetricSet]]) -> None:
        assert {education: metrics.to_bytes() for education, metrics in states} == alone

    # The runner of Beam that runs in this process; yours would be Dataflow, Flink or Spark.
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        states = (
            pipeline
            | beam.io.ReadFromParquetBatched(str(PATH), columns=["education", "label", "score"])
            | beam.FlatMap(by_education)
            | beam.CombinePerKey(CombineMetrics(suite))
        )
        states | beam.MapTuple(line) | beam.Map(print)
        assert_that(states, check)
    print("the same bytes as one pass over each")


if __name__ == "__main__":
    main()
