"""Beam: any bundles, windows and merge trees, of rows or tables, give the bytes of one pass."""

from __future__ import annotations

import pickle
import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine_suites import suite
from hypothesis import given, settings
from hypothesis import strategies as st

import streammetrics as sm

beam = pytest.importorskip(
    "apache_beam", reason="needs apache-beam: pip install 'streammetrics[engines]'"
)

from apache_beam.coders import FastPrimitivesCoder, PickleCoder  # noqa: E402 - where Beam is there
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner  # noqa: E402
from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

from streammetrics.engines.beam import CombineMetrics  # noqa: E402

# "DirectRunner" would try to download Prism, a program in Go; these two run in this process.
RUNNERS = pytest.mark.parametrize("runner", [FnApiRunner, BundleBasedDirectRunner])

rng = np.random.default_rng(6)
N = 1300
TABLE = pa.table(
    {
        "label": rng.integers(0, 2, N),
        "score": rng.random(N).round(2),
        "weight": rng.integers(0, 4, N) / 2,
        "group": ["abc"[row % 3] for row in range(N)],
        "note": ["not read"] * N,
    }
)
ROWS = TABLE.to_pylist()


class Prediction(NamedTuple):
    label: int
    score: float
    weight: float
    note: str


def alone(table):
    return suite().update(table).to_bytes()


EXPECTED = alone(TABLE)
BY_GROUP = {group: alone(TABLE.filter(pc.equal(TABLE["group"], group))) for group in "abc"}


MADE = []


def keep(elements):
    # Pickled by its name, and both runners work in threads of this process.
    MADE.append(list(elements))


def run(runner, elements, *steps):
    """Run the steps and return the elements that they make."""
    MADE.clear()
    with beam.Pipeline(runner=runner()) as pipeline:
        out = pipeline | beam.Create(elements)
        for step in steps:
            out = out | step
        assert_that(out, keep)
    (made,) = MADE
    return made


def combined(elements, cuts=()):
    """Return the state of accumulators that begin at the cuts, compacted, shipped and merged."""
    fn = CombineMetrics(suite())
    accumulators = []
    for index, part in enumerate(np.split(np.arange(len(elements)), cuts)):
        accumulator = fn.create_accumulator()
        for row in part:
            accumulator = fn.add_input(accumulator, elements[row])
        accumulators.append(fn.compact(accumulator) if index % 2 else accumulator)
    return fn.extract_output(fn.merge_accumulators(accumulators)).to_bytes()


@RUNNERS
def test_a_whole_collection(runner):
    fn = CombineMetrics(suite())
    (result,) = run(runner, ROWS, beam.CombineGlobally(fn))
    assert result.to_bytes() == EXPECTED


@RUNNERS
def test_keys(runner):
    keyed = [(row["group"], row) for row in ROWS]
    result = run(runner, keyed, beam.CombinePerKey(CombineMetrics(suite())))
    assert {key: state.to_bytes() for key, state in result} == BY_GROUP


def test_fanouts():
    fn = CombineMetrics(suite())
    (result,) = run(FnApiRunner, ROWS, beam.CombineGlobally(fn).with_fanout(3))
    assert result.to_bytes() == EXPECTED
    keyed = [(row["group"], row) for row in ROWS]
    result = run(FnApiRunner, keyed, beam.CombinePerKey(fn).with_hot_key_fanout(2))
    assert {key: state.to_bytes() for key, state in result} == BY_GROUP


def test_windows():
    stamped = beam.Map(lambda row: beam.window.TimestampedValue(row, "abc".index(row["group"])))
    windows = beam.WindowInto(beam.window.FixedWindows(1))
    fn = CombineMetrics(suite())
    result = run(FnApiRunner, ROWS, stamped, windows, beam.CombineGlobally(fn).without_defaults())
    assert sorted(state.to_bytes() for state in result) == sorted(BY_GROUP.values())


def test_no_elements():
    fn = CombineMetrics(suite())
    (result,) = run(FnApiRunner, [], beam.CombineGlobally(fn))
    assert result == suite()
    assert run(FnApiRunner, [], beam.CombineGlobally(fn).without_defaults()) == []
    assert run(FnApiRunner, [], beam.CombinePerKey(fn)) == []


def test_types_are_inferred():
    pipeline = beam.Pipeline(runner=FnApiRunner())
    rows = pipeline | beam.Create(ROWS[:3])
    assert (rows | beam.CombineGlobally(CombineMetrics(suite()))).element_type is sm.MetricSet
    keyed = rows | beam.Map(lambda row: (row["group"], row)).with_output_types(tuple[str, dict])
    states = keyed | beam.CombinePerKey(CombineMetrics(suite()))
    assert states.element_type == beam.typehints.Tuple[str, sm.MetricSet]


@pytest.mark.parametrize(
    "tables",
    [
        TABLE.to_batches(max_chunksize=400),
        [TABLE, TABLE.slice(0, 0)],
        [TABLE.to_pandas()],
        [{name: TABLE[name].to_numpy() for name in TABLE.column_names}],
        [TABLE.slice(0, 900).to_pydict(), *ROWS[900:]],
        [beam.Row(**row) for row in ROWS],
        [Prediction(*(row[name] for name in Prediction._fields)) for row in ROWS],
        [pd.Series(row).to_dict() for row in ROWS],  # of NumPy scalars
    ],
    ids=["batches", "tables", "pandas", "arrays", "mixed", "Row", "NamedTuple", "NumPy"],
)
def test_rows_and_tables_give_the_same_bytes(tables):
    assert combined(tables) == EXPECTED


@given(
    cuts=st.lists(st.integers(0, N), max_size=6).map(sorted),
    order=st.permutations(range(7)),
    steps=st.lists(st.sampled_from(["merge", "compact", "ship", "compact and ship"])),
)
@settings(max_examples=40)
def test_any_tree_of_accumulators_gives_the_same_bytes(cuts, order, steps):
    fn = CombineMetrics(suite())
    waiting = []
    for part in np.split(np.arange(N), cuts):
        accumulator = fn.create_accumulator()
        waiting.append(fn.add_inputs(accumulator, [ROWS[row] for row in part]))
    waiting = [waiting[index] for index in order if index < len(waiting)]
    for step in steps:
        first = waiting.pop(0)
        if step == "merge":
            first = fn.merge_accumulators(iter([first, *waiting[:2]]))
            del waiting[:2]
        if "compact" in step:
            first = fn.compact(first)
        if "ship" in step:
            first = FastPrimitivesCoder().decode(FastPrimitivesCoder().encode(first))
        waiting.append(first)
    assert fn.extract_output(fn.merge_accumulators(waiting)).to_bytes() == EXPECTED


def test_compacted_accumulators_hold_no_rows():
    fn = CombineMetrics(suite())
    accumulator = fn.compact(fn.add_inputs(fn.create_accumulator(), ROWS[:100]))
    for coder in (PickleCoder(), FastPrimitivesCoder(), fn.get_accumulator_coder()):
        state, rows = coder.decode(coder.encode(accumulator))
        assert state.to_bytes() == alone(TABLE.slice(0, 100))
        assert rows == []
    again = pickle.loads(pickle.dumps(fn))
    assert again.extract_output(again.create_accumulator()) == suite()


def test_merging_changes_the_first_accumulator_only():
    fn = CombineMetrics(suite())
    parts = [fn.add_inputs(fn.create_accumulator(), ROWS[start::3]) for start in range(3)]
    before = pickle.dumps(parts[1:])
    merged = fn.merge_accumulators(parts)
    assert pickle.dumps(parts[1:]) == before
    first = fn.extract_output(merged)
    assert first.to_bytes() == EXPECTED
    fn.compact(fn.add_input(merged, ROWS[0]))
    assert first.to_bytes() == EXPECTED  # a later pane is another set


@pytest.mark.filterwarnings("ignore:.*'sample_weight' is not read")
def test_columns_that_only_some_rows_have():
    columns = {"y_true": "label", "y_score": "score"}
    fn = CombineMetrics(sm.MetricSet({"auc": sm.ROCAUC()}, columns=columns))
    rows = [
        {name: value for name, value in row.items() if name != "weight"}
        | ({"sample_weight": 0.0} if index % 3 else {})
        for index, row in enumerate(ROWS)
    ]
    result = fn.extract_output(fn.add_inputs(fn.create_accumulator(), rows))
    expected = sm.MetricSet({"auc": sm.ROCAUC()}, columns=columns)
    expected.update(TABLE.drop(["weight"]))  # no weight is asked for
    assert result.to_bytes() == expected.to_bytes()


def test_judgments_and_runs_in_one_collection():
    ranking = sm.MetricSet({"mrr": sm.MRR()})
    judged = [{"query": row // 5, "doc": row, "relevance": row % 2} for row in range(50)]
    run_of = [{"query": row // 5, "doc": row, "score": float(-row)} for row in range(50)]
    fn = CombineMetrics(ranking)
    mixed = [judged[index // 2] if index % 2 else run_of[index // 2] for index in range(100)]
    result = fn.extract_output(fn.add_inputs(fn.create_accumulator(), mixed))
    for rows in (judged, run_of):
        ranking.update({name: [row[name] for row in rows] for name in rows[0]})
    assert result.to_bytes() == ranking.to_bytes()


def test_values_that_are_vectors_or_missing():
    top = sm.MetricSet({"top": sm.TopKAccuracy(k=2)})
    rows = [{"y_true": row % 3, "y_score": [0.1 * row, 0.5, 0.2]} for row in range(7)]
    fn = CombineMetrics(top)
    result = fn.extract_output(fn.add_inputs(fn.create_accumulator(), rows))
    expected = top.update({name: [row[name] for row in rows] for name in rows[0]})
    assert result.to_bytes() == expected.to_bytes()

    mean = sm.MetricSet({"mean": sm.Mean(nan_policy="omit")})
    fn = CombineMetrics(mean)
    rows = [{"values": 1.0}, {"values": None}, {"values": 2.0}]
    result = fn.extract_output(fn.add_inputs(fn.create_accumulator(), rows))
    assert result.to_bytes() == mean.update({"values": [1.0, None, 2.0]}).to_bytes()


def test_a_set_already_fed_is_refused():
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        CombineMetrics(suite().update(TABLE))
    with pytest.raises(TypeError, match="not a MetricSet"):
        CombineMetrics(sm.ROCAUC())


@RUNNERS
def test_a_bad_row_fails_the_pipeline_and_is_shown(runner):
    rows = [dict(row) for row in ROWS]
    rows[1200].update(score=float("nan"), label=1, weight=0.5)
    template = suite()
    shown = (
        "score is missing (NaN or null) in 1 row, "
        "first in {'label': 1, 'score': nan, 'weight': 0.5}"
    )
    with pytest.raises(sm.InvalidBatchError, match=re.escape(shown)):
        run(runner, rows, beam.CombineGlobally(CombineMetrics(template)))
    assert template == suite()


def test_what_cannot_be_taken_is_said():
    fn = CombineMetrics(suite())
    accumulator = fn.add_inputs(fn.create_accumulator(), ROWS[:10])
    with pytest.raises(sm.InvalidBatchError, match="no column 'weight'; there are: 'label', 'sco"):
        fn.add_input(accumulator, {"label": 1, "score": 0.5, "wieght": 1.0})
    with pytest.raises(sm.InvalidBatchError, match="an int is not a table"):
        fn.add_input(accumulator, 3)
    table = TABLE.slice(0, 8).set_column(1, "score", pa.array([0.5] * 7 + [None]))
    with pytest.raises(sm.InvalidBatchError, match="a Table of 8 rows: .* in row 7 of the table"):
        fn.add_input(accumulator, table)
    assert fn.extract_output(accumulator).to_bytes() == alone(TABLE.slice(0, 10))

    mixed = [*ROWS[:2], {"label": "yes", "score": 0.5, "weight": 1.0}]
    accumulator = fn.add_inputs(fn.create_accumulator(), mixed)
    with pytest.raises(sm.InvalidBatchError, match=r"\('yes' in {'label': 'yes', "):
        fn.compact(accumulator)
