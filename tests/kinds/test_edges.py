"""What one-line changes of the code went unnoticed in: words of refusals, what is made anew."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import streammetrics as sm
from kinds.rows import statistics_of
from streammetrics.core import elsewhere
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.batch import meant
from streammetrics.core.columns.column import Column, stacked
from streammetrics.core.counting import Union
from streammetrics.core.feeding.many import ColumnKinds
from streammetrics.core.fields.keyed import KeyedExtremes
from streammetrics.core.registry import catalogue
from streammetrics.core.results.differences import Difference, Differences
from streammetrics.metrics.specs import SpecError, known_as
from streammetrics.statistics.points import label_hashes, lengths, point_hashes

# What `label_hashes` and `point_hashes` give.
NAMES = [1747299791859774546, 13833452599589517403, 11388497021295642190]
NUMBERS = [11388497021295642190, 1593918348581160074, 8015791930977592799]
POINTS = [11706049393264164864, 17120036896113688576]


def test_a_bad_row_of_points_is_counted_and_found_once_however_many_numbers_are_bad():
    points = [[0.0, 1.0], [2.0, 3.0], [math.inf, math.inf], [4.0, math.inf]]
    with pytest.raises(sm.InvalidBatchError, match=r"in 2 rows, first in row 2"):
        sm.CalinskiHarabasz().update(points, [0, 1, 0, 1])


def test_parameters_are_the_public_annotations_that_are_not_of_the_class():
    class Shifted(sm.Mean):
        """A mean with one parameter more."""

        shift: float = 0.5
        _hidden: int = 3

    assert Shifted(shift=2.0).config["shift"] == 2.0
    with pytest.raises(TypeError, match="has no parameter '_hidden'"):
        Shifted(_hidden=4)
    with pytest.raises(ValueError, match=r"shift='x'"):
        Shifted(shift="x")


def test_up_to_three_names_are_suggested():
    assert meant("aaab", ["aaaa", "aaac", "aaad", "zzzz"]).count("'aaa") == 3


def test_extremes_of_other_widths_are_refused_in_words():
    labels = Union.of(np.array([1, 2]), np.array([2, 3]))
    words = "3 columns cannot join 2 columns"
    with pytest.raises(sm.IncompatibleMetricsError, match=words):
        KeyedExtremes().plus(np.zeros((2, 2)), np.zeros((2, 3)), labels)


@pytest.mark.parametrize("largest", [False, True])
def test_extremes_of_labels_that_one_of_two_lacks_are_the_others(largest):
    labels = Union.of(np.array([1, 2]), np.array([2, 3]))
    both = KeyedExtremes(largest=largest).plus(
        np.array([[-5.0], [7.0]]), np.array([[9.0], [-3.0]]), labels
    )
    assert both.tolist() == [[-5.0], [9.0 if largest else 7.0], [-3.0]]


def test_differences_that_are_not_finite_are_told_in_words():
    line = Difference(
        "auc", "a", "b", 0.5, math.nan, math.inf, -math.inf, 1.0, 0.5, 0.5, "no evidence", "t"
    )
    text = repr(Differences([line], 0.95))
    for p, told in ((0.5, " 0.5000 "), (1e-4, " 0.0001 "), (9e-5, " 9.0e-05 "), (0.0, "< 1e-300")):
        assert told in repr(Differences([line._replace(p=p, p_adjusted=0.75)], 0.95))
    assert "undefined" in text
    assert " inf" in text
    assert "-inf" in text
    unknown = line._replace(value=0.25, difference=0.125, high=math.nan)
    assert " 0.2500 " in repr(Differences([unknown], 0.95))


@pytest.mark.parametrize(
    "update",
    [
        lambda long: sm.TopKAccuracy(k=1).update([0, 1, 0], np.array([[0, 1], long[:2], long[1:]])),
        lambda long: sm.NDCG().update(query=[1, 1, 1], relevance=[1, 0, 1], score=[0, *long[:2]]),
    ],
)
def test_of_two_integers_that_are_too_long_the_first_is_named(update):
    with pytest.raises(sm.InvalidBatchError, match=r"in [24] values, first in row 1"):
        update([2**53 + 1, 2**53 + 3, 2**53 + 5])


def test_a_zero_beside_integers_that_only_unsigned_ones_hold_is_no_negative_one():
    with_zero = [np.array([0, 3]), np.array([2**63, 2**63 + 2], np.uint64)]
    column = stacked(list(map(Column, with_zero)), "x")
    assert column.values.tolist() == [[0, 2**63], [3, 2**63 + 2]]
    with_zero[0][1] = -3
    with pytest.raises(sm.InvalidBatchError, match="x is negative .* in 1 value, first in row 1"):
        stacked(list(map(Column, with_zero)), "x")


@pytest.mark.parametrize("k", [71, 72])
def test_a_contradiction_raises_at_the_update_that_brings_it(k):
    metric = sm.MetricSet({"ndcg": sm.NDCG(k=k), "rows": sm.MAP(k=k)})
    metric.update(query=[1], doc=[1], relevance=[1], score=[0.5])
    with pytest.raises(sm.InvalidBatchError, match="relevance"):
        metric.update(query=[1], doc=[1], relevance=[2], score=[0.5])
    assert metric.n_rows == 1


def test_a_loss_that_overflows_between_the_ends_of_the_targets_is_refused():
    with pytest.raises(sm.InvalidBatchError, match="loss beyond float64 in 1 row, first in row 1"):
        sm.MAPE().update([-0.5, 0.0, 0.5], [0.0, 1e300, 0.0])


@pytest.mark.parametrize("n_items", [2**31, 2**62, 2**63 - 1])
def test_items_that_never_were_shown_may_be_of_any_number(n_items):
    metric = sm.ExposureGini(n_items=n_items).update(["u", "u", "v", "w"], ["a", "b", "a", "a"])
    assert metric.compute() == pytest.approx(1 - 1.5 / n_items, rel=1e-15)


def test_keys_that_know_of_a_fact_are_the_same_object_when_they_are_told_again():
    none = ColumnKinds.none(4)
    told = none.joined(np.array([1, 3]), {"labels": "strings"})
    assert told is told.joined(np.array([3]), {"labels": "strings"})
    assert told is told.joined(np.array([1, 3]), {"labels": "strings"})
    assert told is not told.joined(np.array([0, 3]), {"labels": "strings"})
    assert none is none.joined(np.array([], int), {"labels": "strings"})


@pytest.mark.parametrize("power", [-1040, -600, 0, 600, 1015])
def test_lengths_of_vectors_neither_overflow_nor_underflow(power):
    vectors = np.array([[3.0, 4.0], [0.0, 0.0], [-8.0, 15.0]]) * 2.0**power
    assert lengths(vectors).tolist() == [5 * 2.0**power, 0.0, 17 * 2.0**power]


def test_hashes_by_which_samples_are_drawn_are_the_same_for_ever():
    """States of other versions join a sample only as long as they are."""
    names = label_hashes(np.array(["a", "bc", ""]), 7)
    assert names.tolist() == label_hashes(np.array(["a", "bc", "", "long"])[:3], 7).tolist()
    assert names.tolist() == NAMES
    assert label_hashes(np.array([0, -1, 1 << 62]), 7).tolist() == NUMBERS
    assert point_hashes(np.array([[0.0, 1.0], [1.0, -0.5]])).tolist() == POINTS


def test_squares_of_weights_are_summed_exactly():
    codes, weight = np.arange(40) % 2, np.random.default_rng(0).random(40) * 3.0
    metric = sm.ROCAUC().update(codes, np.full(40, 0.5), sample_weight=weight)
    arrays = statistics_of(metric)[0].arrays()
    squares = ExactSum.grouped(codes, 2, weight, weight).arrays()
    for name, array in squares.items():
        assert np.array_equal(arrays[f"squares/0/mass.{name}"], array)


def test_a_list_in_a_frame_is_a_row_of_its_numbers_also_where_it_is_the_only_one():
    both = [pl.Series([[1.0, 2.0]]), pl.Series([[1.5, 4.0]])]
    assert sm.MAE(multioutput="raw_values").update(*both).compute().tolist() == [0.5, 2.0]


ELSEWHERE = {
    "auroc": "'ROCAUC'",
    "ece": "'CalibrationError'",
    "mcc": "'MatthewsCorrcoef'",
    "psi": "'PopulationStability'",
    "c_index": "'ConcordanceIndex'",
    "c-index": "'ConcordanceIndex'",
    "AP": "'AveragePrecision' or 'MAP'",
    "top_k": "'TopKAccuracy'",
    "MeanAbsoluteError": "'MAE'",
    "BinaryAUROC": "'ROCAUC'",
    "MultilabelF1Score": "'F1'",
    "F1_Score": "'F1'",
    "RetrievalNormalizedDCG": "'NDCG'",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_libraries_are_told_ours(name):
    words = rf"{name}'; did you mean {ELSEWHERE[name]}"
    with pytest.raises(AttributeError, match=f"module 'streammetrics' has no attribute '{words}"):
        getattr(sm, name)
    with pytest.raises(ValueError, match=f"there is no metric '{words}"):
        sm.MetricSet([name])
    with pytest.raises(SpecError, match=f"no metric '{words}"):
        known_as(name, catalogue())


def test_every_name_in_the_table_of_others_leads_to_ours():
    for theirs, ours in elsewhere.ELSEWHERE.items():
        assert {*ours.split(", ")} <= {*sm.__all__}, theirs
        assert not hasattr(sm, theirs)
    assert not hasattr(sm, "__wrapped__")
