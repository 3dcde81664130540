"""The ends of what is held: exponents, depths, widths of nothing, marks, weights of any size."""

from __future__ import annotations

import typing
import warnings
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fuzz.forging import forged, joined, split
from oracles.table import ORACLES

import streammetrics as sm
from kinds.rows import plain_rows
from streammetrics.core.arithmetic.exact import HIGHEST, LOWEST, ExactSum
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.counting import Union
from streammetrics.core.fields.keyed import Sums, unpacked_labels
from streammetrics.core.fields.weights import WeightedCount, WideWeights
from streammetrics.core.state.arrays import laid_out, taken_apart

WEIGHTS = {
    "plain": np.ones, "tiny": lambda n: np.full(n, 5e-324), "small": lambda n: np.full(n, 1e-200),
    "large": lambda n: np.full(n, 1e308), "one": lambda n: np.eye(1, n)[0] * 1e300,
    "apart": lambda n: np.resize([1e-200, 1e200, 1.0], n),
}  # fmt: skip
WEIGHED = [
    oracle for oracle in {repr(oracle.metric): oracle for oracle in ORACLES}.values()
    if not any(one.schema.unweighted for one in oracle.metric.statistics())
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("oracle", "kind"),
    [
        pytest.param(oracle, kind, id=f"{oracle.id}-{kind}")
        for place, oracle in enumerate(WEIGHED)
        for kind in ("apart", list(WEIGHTS)[place % 5])
    ],
)
def test_whatever_rows_weigh_all_can_be_read_or_is_refused_in_words(oracle, kind):
    all_is_read_or_refused_in_words(oracle, kind)


@pytest.mark.parametrize(
    ("cls", "said", "kind"),
    [
        (sm.MatthewsCorrcoef, {}, "one"), (sm.CohenKappa, {}, "one"),
        (sm.TopKAccuracy, {"normalize": False}, "large"), (sm.Quantile, {"q": 1.0}, "plain"),
        (sm.Quantile, {"q": 0.5}, "large"), (sm.ClassificationReport, {"multilabel": True}, "one"),
        (sm.Recall, {"multilabel": True, "average": "micro"}, "tiny"),
        (sm.Recall, {"labels": (4, 1), "average": "macro"}, "apart"),
    ],
)  # fmt: skip
def test_what_went_unread_at_some_weights(cls, said, kind):
    wanted = [
        o for o in WEIGHED if type(o.metric) is cls and said.items() <= o.metric.config.items()
    ]
    all_is_read_or_refused_in_words(wanted[0], kind)


def all_is_read_or_refused_in_words(oracle, kind):
    rows = plain_rows(oracle, 12)
    weight = WEIGHTS[kind](len(next(iter(rows.values()))))
    metric = oracle.metric.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        try:
            metric.update(**rows, sample_weight=weight)
        except sm.InvalidBatchError:
            return
        for read in (metric.compute, metric.bounds, metric.confidence, metric.to_bytes):
            try:
                read()
            except sm.StreamMetricsError:
                continue


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("step", [-960, 960])
@pytest.mark.parametrize(
    "top", [LOWEST - 1, LOWEST, LOWEST + 31, HIGHEST - 33, HIGHEST - 2, HIGHEST - 1, HIGHEST]
)
def test_scaling_ends_where_states_do(shape, step, top):
    one = ExactSum.single(1, top - step)
    sums = one if shape == () else ExactSum.row_of([one, one])
    if LOWEST <= top < HIGHEST - 1:
        product = sums.times(2.0**step)
        assert ExactSum.from_arrays(shape, product.arrays()) == product
    else:
        with pytest.raises(sm.InvalidBatchError, match="beyond what a state holds"):
            sums.times(2.0**step)


@pytest.mark.parametrize("around", [lambda x: [x], lambda x: {"a": x}, lambda x: {"a": [x]}])
def test_what_is_nested_too_deeply_is_refused_whatever_it_is_nested_in(around):
    inner = 1
    for _ in range(100):
        inner = around(inner)
    blob = forged(sm.Mean().to_bytes(), lambda header, meta: meta.update(more=inner))
    with pytest.raises(sm.StateFormatError, match="nested too deeply"):
        sm.from_bytes(blob)


def test_what_is_of_the_class_is_no_parameter_however_it_is_annotated():
    class Told(sm.Mean):
        """A mean with attributes of its class."""

        plain: ClassVar = 1
        of_some: ClassVar[int] = 2
        of_many: typing.ClassVar[dict[str, list[int]]] = {}
        shift: float = 0.5

    assert set(Told().config) == {*sm.Mean().config, "shift"}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([], pa.list_(pa.float64())), pa.array([], pa.large_list(pa.float64())),
        pl.Series([], dtype=pl.List(pl.Float64)), np.zeros((0, 0)),
    ],
    ids=["list", "large list", "polars", "numpy"],
)  # fmt: skip
def test_no_lists_have_no_width(column):
    assert as_column(column, "X").values.shape == (0, 0)


@pytest.mark.parametrize("label", [2.0**62, 2.0**63 - 1024, -(2.0**63) + 1024, 2.0**53 + 2])
def test_labels_handed_over_as_floats_are_those_integers(label):
    metric = sm.Accuracy().update([int(label), 0], [int(label), 1])
    assert sm.Accuracy().update([label, 0.0], [label, 1.0]) == metric
    with pytest.raises(sm.InvalidBatchError, match="is not a label"):
        metric.update([2.0**63], [1.0])


@pytest.mark.parametrize("tiny", [1e-20, -1e-20, 0.0, 2.0**-30, -(2.0**-30)])
@pytest.mark.parametrize("whole", [2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**54 + 2, 2**60 + 128])
def test_ties_of_long_integers_are_decided_by_what_is_far_below(whole, tiny):
    exact = float(abs(Fraction(whole) - Fraction(tiny)))
    assert sm.MaxError().update([whole], [tiny]).compute() == exact
    assert sm.MAE().update([whole], [tiny]).compute() == exact


def test_an_unknown_label_of_a_set_is_named_wherever_it_is():
    metric = sm.Recall(multilabel=True, average="micro", labels=["a", "b"])
    for row in (["b", "a", "c"], ["c", "b"], ["a", "c"]):
        with pytest.raises(sm.InvalidBatchError, match=r"in 1 row, first in row 1 \('c'\)"):
            metric.update([["a"], row], [["a"], ["a"]])


def test_sums_of_other_widths_are_refused_in_words():
    labels = Union.of(np.array([1, 2]), np.array([2, 3]))
    with pytest.raises(sm.IncompatibleMetricsError, match="3 columns cannot join those of 2"):
        Sums().plus(ExactSum.zero((2, 2)), ExactSum.zero((2, 3)), labels)


def test_nothing_may_be_taken_out_of_anything_and_nothing_else_of_nothing():
    field = WideWeights(1, "labels")
    none, some = WeightedCount.zero((1, 0)), WeightedCount.zero((1, 3))
    assert field.minus(some, none) is some
    assert field.minus(none, none) is none
    for one, two in ((none, some), (some, WeightedCount.zero((1, 2)))):
        with pytest.raises(sm.IncompatibleMetricsError, match="labels are not among"):
            field.minus(one, two)


@pytest.mark.parametrize("place", [-1, 2, 1 << 40])
def test_arrays_of_a_group_that_is_not_there_are_refused(place):
    arrays = laid_out([{"a": np.arange(2)}, {"a": np.arange(3)}])
    assert [list(each["a"]) for each in taken_apart(arrays, 2)] == [[0, 1], [0, 1, 2]]
    with pytest.raises(sm.StateFormatError, match="belongs to no group"):
        taken_apart({**arrays, "0/places": np.array([0, place])}, 2)


@pytest.mark.parametrize("shapes", [[[-1], [6]], [[-2], [7]], [[6], [-1]], [[2], [4]], [[2], [2]]])
def test_arrays_of_groups_whose_shapes_are_none_are_refused(shapes):
    arrays = laid_out([{"a": np.arange(2)}, {"a": np.arange(3)}])
    with pytest.raises(sm.StateFormatError, match="no shapes|cut short|belong to no array"):
        taken_apart({**arrays, "0/shapes": np.array(shapes)}, 2)


@pytest.mark.parametrize("bad", [b"[\xff]", b"[", b"[1]", b"{}", b"[" * 5000])
def test_labels_that_cannot_be_read_are_refused_in_words(bad):
    with pytest.raises(sm.StateFormatError, match="^labels of a state"):
        unpacked_labels({"labels": np.frombuffer(bad, np.uint8)}, "labels")


def test_zeros_below_zero_are_in_no_sample_of_points():
    header, body = split(sm.Silhouette().update([[0.0], [1.0], [0.5]], [0, 1, 1]).to_bytes())
    start, stop = next(told for name, told in places(header) if name.endswith("points"))
    points = np.frombuffer(body[start:stop]).copy()
    points[points == 0.0] = -0.0
    with pytest.raises(sm.StateFormatError, match="coordinate is nan, infinite or -0.0"):
        sm.from_bytes(joined(header, body[:start] + points.tobytes() + body[stop:]))


def places(header):
    return [(name, told["data_offsets"]) for name, told in header.items() if name != "__metadata__"]


JUDGED = {
    "apart": {"query": [1, 2], "doc": [1, 2], "relevance": [1, 0]},
    "without documents": {"query": [1, 2], "relevance": [1, 0]},
    "with scores": {"query": [1, 2], "doc": [1, 2], "relevance": [1, 0], "score": [0.5, 0.25]},
}


@pytest.mark.parametrize("kind", JUDGED)
def test_a_query_with_a_judgment_is_marked_as_judged(kind):
    header, body = split(sm.NDCG().update(**JUDGED[kind]).to_bytes())
    start, stop = header["0/judged"]["data_offsets"]
    with pytest.raises(sm.StateFormatError, match="'judged' of a ranking state is not canonical"):
        sm.from_bytes(joined(header, body[:start] + bytes(stop - start) + body[stop:]))


@pytest.mark.parametrize("ends", [(5e-324, 1e300), (1e-300, 1.7e308), (0.0, 1.7e308)])
def test_scores_from_end_to_end_of_float64_are_sorted(ends):
    low, high = np.array(ends, np.float64).view(np.int64)
    rng, n = np.random.default_rng(0), 1 << 13
    scores = rng.permutation(np.linspace(low, high, n).astype(np.int64)).view(np.float64)
    scores[::2] *= -1.0
    labels = rng.integers(0, 2, n)
    whole = sm.ROCAUC().update(labels, scores)
    parts = [sm.ROCAUC().update(labels[k : k + 512], scores[k : k + 512]) for k in range(0, n, 512)]
    assert whole.to_bytes() == sm.merge(parts).to_bytes()
    ones, zeros = scores[labels == 1], scores[labels == 0]
    above = (ones[:, None] > zeros).sum() + (ones[:, None] == zeros).sum() / 2
    assert whole.compute() == above / (ones.size * zeros.size)


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 21.0)])
def test_rows_that_wait_for_their_groups_are_counted_in_bytes(weight):
    rows = {"y_true": np.arange(20) % 2, "y_score": np.arange(20) / 20}
    slices = sm.Slices(sm.MetricSet({"auc": sm.ROCAUC()}), by="c")
    before = slices.nbytes
    slices.update(**rows, c=np.arange(20) % 3, sample_weight=weight)
    least = rows["y_score"].nbytes + (0 if weight is None else weight.nbytes)
    assert slices.nbytes >= before + least


def test_annotations_that_are_no_text_are_parameters_but_for_those_of_the_class():
    annotations = {"count": int, "shared": ClassVar[int], "kept": ClassVar}
    body = {"__annotations__": annotations, "count": 3, "shared": 1, "kept": 2}
    made = type("Annotated", (sm.Mean,), {**body, "__module__": __name__})
    assert made(count=5).config == {**sm.Mean().config, "count": 5}
