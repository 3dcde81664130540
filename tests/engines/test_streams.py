"""Streams that are killed, retried and late count every row once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streammetrics as sm
from streammetrics.engines.committed import Committed

HERE = Path(__file__).parent
START = 1_700_000_040


def empty():
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "brier": sm.BrierScore()})
    return sm.Live(suite, tiers=[("1min", "3h")], max_ahead=None)


def rows(seed, n=200):
    rng = np.random.default_rng(seed)
    times = START + 60 * seed + rng.integers(0, 240, n) / 4
    return {"time": times, "y_true": rng.integers(0, 2, n), "y_score": rng.random(n).round(2)}


def test_a_batch_that_comes_again_changes_nothing(tmp_path):
    whole = empty()
    for number in range(4):
        batch, held = rows(number), Committed(empty(), tmp_path)
        whole.observe(**batch)
        parts = [empty().observe(**{k: v[i::2] for k, v in batch.items()}) for i in (0, 1)]
        assert held.take(number, parts)
        assert not held.take(number, parts)
        assert not Committed(empty(), tmp_path).take(number, parts)
    assert Committed(empty(), tmp_path).live.to_bytes() == whole.to_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(sm.IncompatibleMetricsError, match="tiers is panes"):
        Committed(sm.Live(whole.copy().reset().window("1min"), tiers=[("1min", "1h")]), tmp_path)


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="needs Java: install a JRE 17+"
)
def test_a_spark_query_that_is_killed_goes_on_and_counts_once(tmp_path):
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'streammetrics[engines]'")
    source = tmp_path / "rows"
    source.mkdir()
    whole = empty()
    for seed in range(4):
        whole.observe(**rows(seed))
        pq.write_table(pa.table(rows(seed)), source / f"{seed}.parquet")
    command = [sys.executable, str(HERE / "spark_stream.py"), str(tmp_path)]
    # Killed once a batch is written, before Spark knows of it.
    killed = subprocess.run([*command, "1"], check=False, timeout=480)
    assert killed.returncode == -signal.SIGKILL
    assert Committed(empty(), tmp_path / "states").number == 1
    subprocess.run([*command, "-1"], check=True, timeout=480)
    assert Committed(empty(), tmp_path / "states").live.to_bytes() == whole.to_bytes()


def test_late_rows_fire_a_window_again_and_its_last_pane_counts():
    beam = pytest.importorskip(
        "apache_beam", reason="needs apache-beam: pip install 'streammetrics[engines]'"
    )
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
    from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
    from apache_beam.testing.test_stream import TestStream
    from apache_beam.testing.util import assert_that
    from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
    from apache_beam.transforms.window import FixedWindows, TimestampedValue

    from streammetrics.engines.beam import AsAttempts, CombineMetrics

    suite = sm.MetricSet({"brier": sm.BrierScore()})
    events = [TimestampedValue({"y_true": n % 2, "y_score": n / 8}, 20 * n) for n in range(8)]
    early, late = [*events[:2], *events[3:]], events[2]
    stream = TestStream().add_elements(early).advance_watermark_to(120).add_elements([late])
    options = PipelineOptions()
    options.view_as(StandardOptions).streaming = True

    def check(found):
        ledger = sm.Ledger(suite)
        for shard, attempt, state in [*reversed(found), *found]:  # again, in the wrong order
            ledger.add(shard, state, attempt=attempt)
        assert sorted(ledger.ids) == ["0/60", "120/180", "60/120"]
        assert ledger.attempts["0/60"] > 0
        rows = {name: [e.value[name] for e in events] for name in ("y_true", "y_score")}
        assert ledger.merged().to_bytes() == suite.copy().update(**rows).to_bytes()

    with beam.Pipeline(runner=BundleBasedDirectRunner(), options=options) as pipeline:
        states = (
            pipeline
            | stream.advance_watermark_to_infinity()
            | beam.WindowInto(
                FixedWindows(60),
                trigger=AfterWatermark(late=AfterCount(1)),
                accumulation_mode=AccumulationMode.ACCUMULATING,
                allowed_lateness=3600,
            )
            | beam.CombineGlobally(CombineMetrics(suite)).without_defaults()
            | beam.ParDo(AsAttempts())
        )
        assert_that(states, check)


def test_a_kafka_consumer_that_dies_anywhere_counts_every_message_once(tmp_path):
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    sys.path.insert(0, str(HERE.parents[1] / "examples"))
    try:
        import engine_kafka as example
    finally:
        sys.path.pop(0)
    with example.broker() as servers:
        messages = example.produce(servers, 3000)
        began = time.monotonic()
        for dies_after in (700, 1, 1200, None):  # before it saved what it had taken
            ledger = example.consume(servers, tmp_path, stop_after=dies_after)
            assert time.monotonic() - began < 120
    expected = example.SUITE.copy().update(
        {name: [message[name] for message in messages] for name in ("y_true", "y_score")}
    )
    assert ledger.merged().to_bytes() == expected.to_bytes()
