"""What differs in any field is unequal and does not merge."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracles.table import thinned
from thinning import some

import streammetrics as sm
from kinds.rows import FIRST, named, plain_rows, with_parameters
from streammetrics.core.registry import REGISTRY, registered_name

TRIED = (True, False, 0, 1, 2, 3, 2048, 4096, 0.25, 0.5, 1.0, None, "a", (0, 1), (0, 1, 2),
         ("a", "b"), ("a", "b", "c"), ((0.0,), (1.0,)), ((0.0,), (2.0,)), "f1", "accuracy",
         tuple((0.0, n, 1.0) for n in (1.0, 2.0, 3.0)),
         tuple((0.0, n, 2.0) for n in (1.0, 2.0, 3.0)))  # fmt: skip
PLAIN = {
    sm.BLEU: {"smooth_method": "floor"},
    sm.ExpectedCost: {"labels": (0, 1), "cost": ((0.0, 1.0), (2.0, 0.0))},
    sm.LogAUC: {"max_fpr": 1.0},
    sm.Specificity: {"average": "macro"},
    sm.PanopticQuality: {"things": (9,)},
    sm.ModifiedPanopticQuality: {"things": (9,)},
}
# The loss of all labels leaves none out, unlike the other metrics of its family.
FIXED = {(sm.HammingLoss, "ignore_index")}
FIELDS = [
    (oracle, name)
    for oracle in FIRST
    for name in oracle.metric.config
    if (type(oracle.metric), name) not in FIXED
]


def words(metric, name):
    hint = get_type_hints(type(metric))[name]
    options = (hint, *get_args(hint))
    return [word for option in options for word in get_args(option) if isinstance(word, str)]


def configurations(metric, name):
    """Return the metric with every value of a parameter that it takes, each once.

    Where other parameters leave but one, those of `PLAIN` or of no parameters take their place.
    """
    for base in (metric.config, PLAIN.get(type(metric), {})):
        found = {}
        for value in (*TRIED, *words(metric, name)):
            try:
                other = type(metric)(**{**base, name: value})
            except (ValueError, TypeError):
                continue
            found[repr(other.config[name])] = other
        if len(found) > 1:
            break
    return list(found.values())


@pytest.mark.parametrize(
    ("oracle", "name"), some(FIELDS, every=12), ids=lambda v: v if type(v) is str else named(v)
)
def test_other_parameters_are_unequal_and_do_not_merge(oracle, name):
    several = configurations(oracle.metric, name)
    assert len(several) > 1, f"no two values of {name} are known to this test"
    blobs = {one.to_bytes() for one in several}
    assert len(blobs) == len(several)
    assert all(one == with_parameters(one) == sm.from_bytes(one.to_bytes()) for one in several)
    for one, other in itertools.combinations(several, 2):
        assert one != other
        with pytest.raises(sm.IncompatibleMetricsError, match=f"configurations differ .*{name} is"):
            one.merge(other)


@pytest.mark.parametrize("oracle", thinned(FIRST))
def test_nan_is_no_value_of_a_parameter_but_of_zero_division(oracle):
    for name in oracle.metric.config:
        for nan in (math.nan, np.float32("nan"), (math.nan, 1.0), ((math.nan,), (1.0,))):
            if name == "zero_division" and not isinstance(nan, tuple):
                assert math.isnan(with_parameters(oracle.metric, zero_division=nan).zero_division)
                continue
            with pytest.raises(ValueError, match=rf"{name}|one kind|finite"):
                with_parameters(oracle.metric, **{name: nan})


BEYOND = 10**400
LARGE = (BEYOND, -BEYOND, (BEYOND,), (0, BEYOND), ((0, BEYOND), (1, 0)), ((0, 1), (BEYOND, 0)),
         (0, 10**308), (1 << 63) - 1, 1e200, 1e308, 1e-200, 5e-324)  # fmt: skip


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST))
def test_a_number_of_any_size_is_refused_as_a_parameter_or_can_be_read_with(oracle):
    rows = plain_rows(oracle, 6)
    for name, value in itertools.product(oracle.metric.config, LARGE):
        try:
            metric = with_parameters(oracle.metric, **{name: value})
        except ValueError:
            continue
        with contextlib.suppress(sm.InvalidBatchError):  # of what does not go with the parameter
            metric.update(**rows)
            metric.compute()
            metric.bounds()
        assert sm.from_bytes(metric.to_bytes()) == metric


@pytest.mark.parametrize("oracle", FIRST)
def test_what_no_parameter_can_be_is_told_by_its_name(oracle):
    odd = (
        {"a": 1},
        ({"a": 1},),
        [{}],
        ([],),
        {1},
        [{1}],
        b"x",
        [None],
        object(),
        [object()],
        [1, "a"],
    )
    for name, value in itertools.product(oracle.metric.config, odd):
        try:
            with_parameters(oracle.metric, **{name: value})
        except (TypeError, ValueError) as error:
            told = str(error)
        else:
            continue
        assert re.search(rf"\b{name}\b", told), (name, value)


@pytest.mark.parametrize("metric", [
    sm.SetF, sm.ChrF, sm.FBeta, sm.VMeasure, sm.PairFBeta,
    lambda **parameters: sm.FBetaAtK(k=2, **parameters),
    lambda **parameters: sm.BestThreshold(for_="fbeta", **parameters),
])  # fmt: skip
def test_a_weight_of_recall_whose_square_overflows_leaves_the_recall(metric):
    rows = {
        "query": [1, 1, 1, 1], "relevance": [0, 1, 1, 1], "score": [0.5, 0.25, 0.125, None],
        "reference": ["abcde fgh"], "prediction": ["abcde xyz"],
        "y_true": [0, 1, 1], "y_pred": [0, 1, 0], "y_score": [0.5, 0.25, 0.125],
        "labels_true": [0, 0, 1, 1], "labels_pred": [0, 0, 1, 2],
    }  # fmt: skip
    large, larger = (
        one.update(**{n: c for n, c in rows.items() if n in one.inputs}).compute()
        for one in (metric(beta=1e12), metric(beta=1e300))
    )
    np.testing.assert_allclose(larger, large, rtol=1e-9)


@pytest.mark.parametrize("metric", [sm.F1, sm.ROCAUC, sm.LogLoss, sm.ConfusionMatrix])
@pytest.mark.parametrize("label", [0.5, math.inf])
def test_a_positive_label_that_no_row_can_have_is_refused(metric, label):
    with pytest.raises(ValueError, match=rf"pos_label={label}\): expected an integer, a boolean"):
        metric(pos_label=label)


@pytest.mark.parametrize(
    ("metric", "parameters", "message"),
    [
        (
            sm.F1,
            {"threshold": math.nan},
            r"threshold=nan\): expected a number or a tuple of numbers or None",
        ),
        (sm.FBeta, {"beta": -1}, r"beta=-1\): expected a number from 0 to inf"),
        (sm.VMeasure, {"beta": 0}, r"beta=0\): expected a finite number above 0"),
        (sm.PairFBeta, {"beta": math.inf}, r"beta=inf\): expected a finite number above 0"),
        (sm.TopKAccuracy, {"k": 0}, r"k=0\): expected an integer, 1 or above"),
        (sm.CalibrationError, {"n_bins": 0}, r"n_bins=0\): expected an integer from 1 to 2"),
        (sm.CalibrationCurve, {"n_bins": 0}, r"n_bins=0\): expected an integer from 1 to 2"),
        (
            sm.ROCAUC,
            {"max_fpr": 1.5},
            r"max_fpr=1.5\): expected a number from 0 to 1, but not 0,",
        ),
        (sm.RecallAtPrecision, {"p": 2}, r"p=2\): expected a number from 0 to 1"),
        (sm.F1, {"threshold": 2, "from_logits": True}, r"threshold=2.0\): expected a probability"),
    ],
)
def test_a_parameter_out_of_range_is_told_with_the_name_of_the_metric(metric, parameters, message):
    with pytest.raises(ValueError, match=rf"^{metric.__name__}\({message}"):
        metric(**parameters)


@pytest.mark.parametrize("oracle", thinned(FIRST))
def test_subclasses_are_unequal_to_their_base_and_do_not_merge(oracle):
    cls = type(oracle.metric)
    derived = type(f"My{cls.__name__}", (cls,), {"__module__": __name__, "__doc__": "Mine."})
    try:
        base, mine = oracle.metric.copy(), derived(**oracle.metric.config)
        assert base != mine
        assert mine != base
        for one, other in ((base, mine), (mine, base)):
            with pytest.raises(sm.IncompatibleMetricsError, match="configurations differ"):
                one.merge(other)
            with pytest.raises(sm.IncompatibleMetricsError, match="configurations differ"):
                sm.MetricSet({"a": one}).merge(sm.MetricSet({"a": other}))
    finally:
        del REGISTRY[registered_name(derived)]


F1 = sm.F1(threshold=0.5)
SETS = {
    "plain": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC()}),
    "other order": sm.MetricSet({"auc": sm.ROCAUC(), "f1": F1}),
    "other name": sm.MetricSet({"f2": F1, "auc": sm.ROCAUC()}),
    "other column": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC()}, columns={"y_true": "label"}),
    "other columns": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC()}, columns={"y_score": "label"}),
    "its own name": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC()}, columns={"y_true": "y_true"}),
    "weights": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC()}, columns={"sample_weight": "w"}),
    "one more": sm.MetricSet({"f1": F1, "auc": sm.ROCAUC(), "again": F1}),
    "one less": sm.MetricSet({"f1": F1}),
    "other parameter": sm.MetricSet({"f1": sm.F1(threshold=0.4), "auc": sm.ROCAUC()}),
    "none": sm.MetricSet({}),
}


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(SETS, 2)))
def test_other_sets_are_unequal_and_do_not_merge(one, other):
    before = SETS[one].to_bytes()
    assert SETS[one] != SETS[other]
    with pytest.raises(sm.IncompatibleMetricsError, match="configurations differ"):
        SETS[one].merge(SETS[other])
    assert SETS[one].to_bytes() == before


LARGEST = 2**63 - 1


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object])
def test_labels_of_the_largest_size_are_what_they_are(kind):
    labels = [LARGEST, LARGEST - 1, 0]
    counts = sm.ConfusionMatrix().update(np.array(labels, kind), np.array(labels, kind))
    assert list(counts.compute().to_dict()) == sorted(labels)
    again = sm.from_bytes(counts.to_bytes())
    assert list(again.compute().to_dict()) == sorted(labels)


@pytest.mark.parametrize("label", [1 << 63, -(1 << 63) - 1, 1 << 64])
@pytest.mark.parametrize("metric", [sm.F1, sm.ClassificationReport, sm.ROCAUC, sm.LogLoss])
def test_labels_that_no_row_can_have_are_no_parameters(metric, label):
    with pytest.raises(ValueError, match="expected integers of 64 bits"):
        metric(labels=[0, label])


@pytest.mark.parametrize("dtype", [np.uint64, np.float64, object])
@pytest.mark.parametrize("metric", [sm.Accuracy(), sm.F1(), sm.RandIndex(), sm.CohenKappa()])
def test_labels_past_the_largest_size_are_refused(metric, dtype):
    wrong = np.array([1, 2**63], dtype)
    with pytest.raises(sm.InvalidBatchError, match="in 1 row, first in row 1|64 signed bits"):
        metric.copy().update(wrong, wrong)
    least = np.array([1, -(2**63)], np.int64)
    metric.copy().update(least, least).to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="is not a label"):
        metric.copy().update(least.astype(float), least.astype(float))


SIGNED = [o for o in FIRST if {c.dtype.kind for c in plain_rows(o, 4).values()} == {"f"}]
POSITIVE = (  # which refuse zeros
    sm.CRPSGaussian, sm.CrossEntropy, sm.GammaDeviance, sm.KLDivergence, sm.MASE, sm.Novelty,
    sm.PoissonDeviance, sm.PopularityBias, sm.RMSSE,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "oracle", [o for o in SIGNED if not isinstance(o.metric, POSITIVE)], ids=named
)
def test_minus_zero_is_zero(oracle):
    zero = {name: np.zeros_like(column) for name, column in plain_rows(oracle, 6).items()}
    plain = oracle.metric.copy().update(**zero)
    for names in (zero.keys(), list(zero)[:1], list(zero)[1:]):
        signed = {name: -c if name in names else c for name, c in zero.items()}
        state = oracle.metric.copy().update(**signed)
        assert state.to_bytes() == plain.to_bytes() == sm.from_bytes(state.to_bytes()).to_bytes()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: sm.F1(threshold=2**53 + 1), r"F1\(threshold=9007199254740993\)"),
        (lambda: sm.F1(threshold=(2**60 + 1, 0), multilabel=True), r"F1\(threshold=\(1152921504"),
        (lambda: sm.ConfusionAtThresholds(thresholds=[2**53 + 1]), "ConfusionAtThresholds"),
        (lambda: sm.HuberLoss(delta=10**400), "HuberLoss"),
    ],
)
def test_integers_that_float64_would_round_are_no_numbers_of_a_parameter(make, told):
    with pytest.raises(ValueError, match=f"{told}.*; float64 would round an integer"):
        make()


def test_a_parameter_of_several_values_takes_any_array():
    for make in (pd.Series, pd.Index, pl.Series, pa.array):
        assert sm.F1(labels=make(["b", "a"]), average="macro").labels == ("b", "a")
        assert sm.ConfusionAtThresholds(thresholds=make([0.1, 0.5])).thresholds == (0.1, 0.5)


def test_integers_that_fit_a_parameter_stay():
    assert sm.F1(threshold=2**64).threshold == 2.0**64
    assert sm.F1(labels=[2**53 + 1, 1], average="macro").labels == (2**53 + 1, 1)
    with pytest.raises(ValueError, match=r"from 2 to 2\*\*29$"):
        sm.ROCAUC(max_bins=10**30)
