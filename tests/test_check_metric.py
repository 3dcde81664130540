"""`check_metric` tells all that is missing or broken: a metric here is broken for each finding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from streammetrics.authoring import (
    AveragedMetric,
    Confusion,
    ContingencyMetric,
    ExactSum,
    Metric,
    Moments,
    Numbers,
    Schema,
    Statistic,
    Sum,
    check_metric,
)
from streammetrics.testing import behaviour, check_laws

VALUES = {"values": np.array([0.5, 0.25, 0.25, -3.0, 1e9, 1.0] * 5)}


class Sums(Statistic):
    """Exact sums of the values and the weights."""

    total = Sum()
    rows = Sum()

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def update(self, values, *, weight):
        self.total += ExactSum.of(values, weight)
        self.rows += ExactSum.of(np.ones(len(values)), weight)


class Whole(Metric[float]):
    """The mean of values that are all there, Σ x / n.

    Example:
        >>> Whole().update([1.0, 2.0]).compute()
        1.5
    """

    def statistics(self):
        return (Sums(),)

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values, "sample_weight": sample_weight})

    def readout(self, sums):
        rows = sums.rows.to_float()
        return sums.total.to_float() / rows if rows else float("nan")


class Undocumented(Whole):
    def readout(self, sums):
        return super().readout(sums)


class WithoutExample(Whole):
    """The mean."""


class WrongExample(Whole):
    """The mean.

    Example:
        >>> WrongExample().update([1.0, 2.0]).compute()
        2.5
    """


class UnsaidParameter(Whole):
    """The mean, times something.

    Example:
        >>> UnsaidParameter().update([1.0, 2.0]).compute()
        1.5
    """

    multiplier: float = 1.0


class NoParameter(Whole):
    """The mean.

    Example:
        >>> NoParameter().update([1.0, 2.0]).compute()
        1.5
    """

    scale = 2.0


class Unsaid(Metric):  # type: ignore[type-arg]  # on purpose
    """The mean of nobody knows what.

    Example:
        >>> 1 + 1
        2
    """

    statistics, update, readout = Whole.statistics, Whole.update, Whole.readout


class Unfinished(Metric[float]):
    """Says nothing of its statistics."""


class Needy(Whole):
    """The mean for a `reason`."""

    reason: str


class RaisesInReadout(Whole):
    """The mean, read by somebody who expects two sums.

    Example:
        >>> 1 + 1
        2
    """

    def readout(self, sums):
        total, rows = (sums.total.to_float(),)
        return total / rows


class Unstable(Whole):
    """The mean, with a `factor` that grows."""

    factor: float = 1.0

    def check_parameters(self):
        self.factor = self.factor + 1


class NoTuple(Whole):
    """The mean of a statistic that comes alone."""

    def _attach(self, accumulator: Any) -> None:
        super()._attach(accumulator)
        type(self).statistics = lambda self: Sums()


class SameObject(Whole):
    """The mean of a statistic that is kept."""

    kept = (Sums(),)

    def statistics(self):
        return self.kept


class MadeUp(Whole):
    """The mean, 1 without rows."""

    def readout(self, sums):
        return super().readout(sums) if sums.rows.to_float() else 1.0


class Raising(Whole):
    """The mean, without a thought of no rows."""

    def readout(self, sums):
        return sums.total.fraction() / sums.rows.fraction()


class Warning_(Whole):  # noqa: N801 - it is one
    """The mean as NumPy has it."""

    def readout(self, sums):
        if not sums.rows.to_float():
            warnings.warn("invalid value encountered", RuntimeWarning, stacklevel=1)
        return super().readout(sums)


class Otherwise(Whole):
    """The mean of a column by another name."""

    def update(self, numbers):
        return self.feed({"values": numbers})


class Forgetful(Whole):
    """The mean of an update that returns nothing."""

    def update(self, values, *, sample_weight=None):
        self.feed({"values": values, "sample_weight": sample_weight})


class Doubling(Whole):
    """The mean of twice what it is given."""

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": 2 * np.asarray(values), "sample_weight": sample_weight})


class Floating(Statistic):
    """A sum that is rounded in each batch, so that its bytes tell the order."""

    total = Sum()

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def update(self, values, *, weight):
        self.total += ExactSum.of(np.array([values.sum() / 3]))


class Rounded(Whole):
    """A third of a sum that depends on batches."""

    def statistics(self):
        return (Floating(),)

    def readout(self, sums):
        return sums.total.to_float()


class Crossed(Whole):
    """The mean, with bounds the wrong way round."""

    def interval(self, sums):
        value = self.readout(sums)
        return sm.Interval(value + 1, value - 1)


class Apart(Whole):
    """The mean, with bounds though it is exact."""

    def interval(self, sums):
        value = self.readout(sums)
        return sm.Interval(value - 1, value + 1)


class Writing(Statistic):
    """Counts in an array that is written to."""

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def clear(self):
        self.counts = np.zeros(1, np.int64)

    def update(self, values, *, weight):
        self.counts[0] += len(values)

    def merge(self, other):
        self.counts = self.counts + other.counts

    def arrays(self):
        return {"counts": self.counts}

    def restore(self, arrays):
        self.counts = arrays["counts"].copy()


class Written(Whole):
    """How many rows there are."""

    def statistics(self):
        return (Writing(),)

    def readout(self, counts):
        return float(counts.counts[0])


class Picky(Statistic):
    """Logarithms of numbers of which its schema says nothing."""

    total = Sum()

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def update(self, values, *, weight):
        if (values == 0).any():
            raise ZeroDivisionError("division by zero")
        self.total += ExactSum.of(values)


class Surprised(Whole):
    """A sum of numbers none of which may be 0."""

    def statistics(self):
        return (Picky(),)

    def readout(self, sums):
        return sums.total.to_float()


class Overflowing(Whole):
    """A power of the mean."""

    def readout(self, sums):
        value = super().readout(sums)
        return float(int(abs(value)) ** 3) if abs(value) >= 0 else value


class Deaf(Sums):
    """Sums of values, whatever they weigh."""

    def update(self, values, *, weight):
        super().update(values, weight=None)


class Unweighted(Whole):
    """The mean of values that all weigh one."""

    def statistics(self):
        return (Deaf(),)


class DeafSum(Sums):
    """The sum of values whatever they weigh, and the rows by weight."""

    def update(self, values, *, weight):
        self.total += ExactSum.of(values)
        self.rows += ExactSum.of(np.ones(len(values)), weight)


class LostSum(Whole):
    """A sum without weights over the sum of weights."""

    def statistics(self):
        return (DeafSum(),)


class LostWeight(Whole):
    """The mean of an update that keeps the weights to itself."""

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values})


class Remembering(Sums):
    """Sums, and the largest value in an attribute that is no field."""

    largest = 0.0

    def update(self, values, *, weight):
        super().update(values, weight=weight)
        self.largest = max(self.largest, float(values.max()))


class Remembered(Whole):
    """The largest value."""

    def statistics(self):
        return (Remembering(),)

    def readout(self, sums):
        return sums.largest


class Scribbling(Sums):
    """Sums of values that are set to 0 afterwards."""

    def update(self, values, *, weight):
        super().update(values, weight=weight)
        values[:] = 0


class Scribbled(Whole):
    """The mean of what is lost then."""

    def statistics(self):
        return (Scribbling(),)


class NeverDefined(Whole):
    """A mean that is forgotten."""

    def readout(self, sums):
        super().readout(sums)
        return float("nan")


class NoValue(Whole):
    """A mean that is not returned."""

    def readout(self, sums):
        super().readout(sums)


BROKEN = [
    (NeverDefined, "value: it is nan on these rows, so no formula was checked: return a number"),
    (NoValue, "value: it is None on these rows, so no formula was checked: return a number"),
    (Unweighted, "weights: a row of weight 2 does not count as two rows"),
    (LostSum, "weights: a row of weight 2 does not count as two rows"),
    (LostWeight, "weights: a row of weight 2 does not count as two rows"),
    (Remembered, "state: Remembering.largest is not a field, so it is neither merged nor saved"),
    (Scribbled, "update: a statistic writes to values, which is its caller's: copy it"),
    (Undocumented, "documentation: the class has no docstring"),
    (WithoutExample, "documentation: the docstring has no example"),
    (WrongExample, "the example does not run as it is written"),
    (UnsaidParameter, "documentation: the parameter multiplier is not described"),
    (NoParameter, "parameters: scale has no annotation, so it is not a parameter"),
    (Unsaid, "types: nobody knows what its value is: write class Unsaid(Metric[float])"),
    (Unfinished, "class: it does not say readout, statistics, update: write these methods"),
    (Needy, "class: it has parameters without a default (reason): pass an object"),
    (
        RaisesInReadout,
        "value: compute() raises, so nothing else was checked: ValueError: not enough",
    ),
    (Unstable, "parameters: rebuilt from its own config it is a different metric"),
    (SameObject, "statistics: statistics() gives the same objects twice"),
    (MadeUp, "no rows: compute() makes up 1.0: return nan"),
    (Raising, "no rows: compute() raises: ZeroDivisionError"),
    (Warning_, "no rows: compute() warns by itself (invalid value encountered)"),
    (Otherwise, "update: it does not take values, which the statistics read"),
    (Forgetful, "update: it does not return the metric"),
    (Doubling, "update: what it feeds are not the columns that it is given"),
    (Rounded, "laws: rows in another order and other batches: this does not hold"),
    (Crossed, "bounds: the lower one lies above the upper one"),
    (Apart, "bounds: they lie apart where `exact` says that the value is known"),
    (Written, "laws: "),
    (Surprised, "hostile values: values=-0.0: its statistic refuses what its schema has taken"),
    (Overflowing, "hostile values: compute() with values=1.7e+308 raises OverflowError"),
]


@pytest.mark.parametrize(("metric", "told"), BROKEN, ids=lambda case: getattr(case, "__name__", ""))
def test_what_is_broken_is_found(metric, told, monkeypatch):
    monkeypatch.setattr(behaviour, "seen_elsewhere", lambda *_: [])  # which takes longest
    with pytest.raises(AssertionError, match=rf"^{metric.__name__} has \d+ finding") as caught:
        check_metric(metric, VALUES)
    assert told in str(caught.value)


class SecondClass(ContingencyMetric[float]):
    """The share of rows that are right and of the second class.

    Example:
        >>> SecondClass().update([0, 1], [0, 1]).compute()
        0.5
    """

    def read(self, table):
        return table.tp[:, 1] / table.total


class PositiveClass(SecondClass):
    """The share of rows that are right and of the positive class.

    Example:
        >>> PositiveClass().update([0, 1], [0, 1]).compute()
        0.5
    """

    def read(self, table):
        return self.positive(table).tp / table.total


def test_nan_policy_is_advised_only_to_a_metric_that_has_it():
    for metric, column in ((sm.Mean(), "values"), (sm.MAE(), "y_true")):
        rows = {name: [1.0] for name in metric.inputs} | {column: [float("nan")]}
        with pytest.raises(sm.InvalidBatchError, match="nan_policy='omit' leaves such rows out"):
            metric.update(**rows)
    suite = sm.MetricSet({"own": Whole(), "mean": sm.Mean()})
    for own in (Whole(), suite):
        with pytest.raises(sm.InvalidBatchError, match=r"in 1 row, first in row 0$"):
            own.update(values=[float("nan")])


def test_rows_with_counts_of_0_and_more_are_no_finding():
    rows = {"y_true": np.arange(40) % 7 / 4, "y_pred": np.arange(40) % 5 / 4}
    check_metric(sm.MAE, {**rows, "counts": np.arange(40) % 4})


def test_rows_of_one_class_are_tried():
    for seed in range(3):
        with pytest.raises(AssertionError, match="SecondClass has 1 finding") as caught:
            check_metric(SecondClass, seed=seed)
        told = "value: compute() raises for rows of one class (0 in y_true, y_pred), so nothing"
        assert told in str(caught.value)
    check_metric(PositiveClass)


def test_counts_of_the_positive_class_are_there_if_no_row_has_it():
    class Counts(ContingencyMetric[float]):
        side: str = "tp"

        def read(self, table):
            return getattr(self.positive(table), self.side)

    found = {"tp": [1, 0, 1], "fp": [1, 0, 1], "fn": [0, 0, 1], "tn": [0, 3, 2]}
    rows = {"y_true": [1, 0, 2, 0, 2, 1, 2, 0, 1, 2], "y_pred": [1, 1, 0, 2, 2, 1, 1, 0, 0, 2]}
    rows["group"] = ["a", "a", "b", "b", "b", "c", "c", "c", "c", "c"]
    for side, expected in found.items():
        suite = sm.MetricSet({"counts": Counts(side=side)})
        slices = sm.Slices(suite, by="group").update(rows).compute()
        assert dict(zip(slices["group"].tolist(), slices["counts"], strict=True)) == dict(
            zip("abc", expected, strict=True)
        )
        for group, value in zip("abc", expected, strict=True):
            places = [place for place, one in enumerate(rows["group"]) if one == group]
            alone = {n: [rows[n][place] for place in places] for n in ("y_true", "y_pred")}
            assert Counts(side=side).update(**alone).compute() == value
    assert Counts(side="tp", pos_label="yes").update(["yes"], ["yes"]).compute() == 1.0
    with pytest.raises(
        sm.InvalidBatchError, match=r"no label can be 1 \(pos_label\); pos_label='yes'"
    ):
        Counts().update(["no", "yes"], ["no", "yes"]).compute()


def test_laws_of_rows_with_weights_include_their_meaning():
    rows = {**VALUES, "sample_weight": np.arange(30) % 4 / 2}
    check_laws(Whole(), rows)
    check_laws(
        sm.MetricSet({"mean": Whole()}, columns={"sample_weight": "w"}),
        {**VALUES, "w": rows["sample_weight"]},
    )
    for broken in (Unweighted(), sm.MetricSet({"mean": sm.Mean(), "bad": LostSum()})):
        with pytest.raises(AssertionError, match="law broken: a row of weight"):
            check_laws(broken, rows)


def test_laws_are_checked_of_sets_with_a_unit_and_of_slices_but_not_of_a_class():
    rows = {"y_true": np.arange(60) % 2, "y_pred": np.arange(60) % 3 % 2, "user": np.arange(60) % 7}
    suite = sm.MetricSet({"accuracy": sm.Accuracy()})
    check_laws(sm.MetricSet({"accuracy": sm.Accuracy()}, unit="user"), rows)
    check_laws(sm.Slices(suite, by="user"), rows)
    for wrong, told in ((sm.Accuracy, "the class Accuracy"), (1, "an int")):
        with pytest.raises(TypeError, match=f"expected a metric or a metric set, not {told}"):
            check_laws(wrong, rows)


def test_all_findings_come_in_one_report():
    class Everything(ContingencyMetric):
        extra: float = 0.0
        more = 1

        def read(self, table: Confusion) -> np.ndarray:
            return np.full(table.groups, self.extra)

        def update(self, y_true):
            return self.feed({"y_true": y_true, "y_pred": y_true})

    with pytest.raises(AssertionError, match="Everything has 7 findings") as caught:
        check_metric(Everything)
    lines = str(caught.value).splitlines()
    assert [line.partition(". ")[0] for line in lines[1:]] == list("1234567")
    for told in ("docstring", "extra", "more", "value is", "inside a function", "y_pred"):
        assert any(told in line for line in lines), told


def test_a_law_that_breaks_is_told_once_and_not_as_one_of_threads():
    with pytest.raises(AssertionError, match="Rounded has") as caught:
        check_metric(Rounded, VALUES)
    assert "threads" not in str(caught.value)

    class Local(Whole):
        """The mean.

        Example:
            >>> 1
            1
        """

    with pytest.raises(AssertionError, match="Local has") as caught:
        check_metric(Local, VALUES)
    told = [line.partition(". ")[2] for line in str(caught.value).splitlines()[1:]]
    assert len(told) == len(set(told))
    assert sum("they cannot be checked" in line for line in told) <= 2  # of the rows, and hard ones


def test_rows_that_are_refused_are_told():
    with pytest.raises(AssertionError, match="these rows are to be fed.*values holds text"):
        check_metric(Whole, {"values": ["a", "b"]})
    with pytest.raises(AssertionError, match="pass rows that it takes"):
        check_metric(sm.TopKAccuracy)


def test_a_set_may_not_be_passed_for_a_metric():
    with pytest.raises(TypeError, match="expected a metric or its class, not a MetricSet"):
        check_metric(sm.MetricSet({"mean": sm.Mean()}))  # type: ignore[arg-type]  # on purpose


class Gain(AveragedMetric):
    """Recall less false positive rate, TPR - FPR.

    Example:
        >>> Gain().update([0, 1, 1], [0, 1, 0]).compute()
        0.5
    """

    def read(self, table):
        return self.averaged(table, table.tp, table.actual) - self.averaged(
            table, table.fp, table.fp + table.tn
        )


class AreaLoss(sm.ROCAUC):
    """One less the area, with the bounds of the area mirrored.

    Example:
        >>> AreaLoss().update([0, 1], [0.1, 0.9]).compute()
        0.0
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def readout(self, scores, *_):
        return 1 - super().readout(scores)

    def interval(self, scores, *_):
        low, high = super().interval(scores)
        return sm.Interval(1 - high, 1 - low)


def test_a_readout_of_its_own_can_read_the_inherited_interval():
    rows = {"y_true": np.arange(90) % 2, "y_score": np.arange(90) * 7 % 90 / 90}
    area, loss = sm.ROCAUC(max_bins=8).update(**rows), AreaLoss(max_bins=8).update(**rows)
    low, high = area.bounds()
    assert low < high
    assert loss.bounds() == sm.Interval(1 - high, 1 - low)


@pytest.mark.parametrize(
    "metric",
    some(
        [
            Whole, AreaLoss, sm.NDCG(k=2), Gain(average="macro"), Gain(threshold=0.5), sm.ROCAUC,
            sm.Mean, sm.KendallTau, sm.LogLoss, sm.PairRecall, sm.Silhouette, sm.Quantile(q=0.5),
        ],
        every=4,
    ),
    ids=lambda metric: getattr(metric, "__name__", type(metric).__name__),
)  # fmt: skip
def test_nothing_is_found_where_nothing_is_missing(metric):
    check_metric(metric)


def test_of_a_metric_that_is_not_exact_the_bounds_hold_the_value_of_the_oracle():
    rng = np.random.default_rng(0)
    rows = {"y_true": rng.integers(0, 2, 300), "y_score": rng.normal(size=300)}
    exact = sm.ROCAUC().update(**rows).compute()
    coarse = sm.ROCAUC(max_bins=16)
    check_metric(coarse, rows, oracle=lambda y_true, y_score: sm.score("ROCAUC", y_true, y_score))
    assert coarse.update(**rows).compute() != exact
    with pytest.raises(AssertionError, match="oracle: the bounds do not hold its value"):
        check_metric(coarse, rows, oracle=lambda y_true, y_score: 0.99)


def test_a_report_has_the_value_of_the_oracle_and_the_smallest_batch():
    check_metric(Whole, VALUES, oracle=lambda values: float(np.mean(values)))
    with pytest.raises(AssertionError, match="oracle: the values differ: ") as caught:
        check_metric(Whole, VALUES, oracle=lambda values: float(np.max(values)))
    assert "(smallest batch, 2 rows of 30: values=[" in str(caught.value)
    with pytest.raises(AssertionError, match="oracle: it cannot be compared: ZeroDivisionError"):
        check_metric(Whole, VALUES, oracle=lambda values: 1 / 0)


class PlainTuple(Whole):
    """A mean with bounds that are no Interval."""

    def is_exact(self, sums):
        return False

    def interval(self, sums):
        return (0.0, 1.0)


class NoSchema(Sums):
    """A statistic that returns its columns."""

    @property
    def schema(self):
        return (Numbers("values"),)


class WithoutSchema(Whole):
    """A mean of a statistic without a schema."""

    def statistics(self):
        return (NoSchema(),)


def test_mistakes_of_types_are_said_in_a_sentence():
    with pytest.raises(AssertionError, match=r"interval\(\) gives \(0.0, 1.0\): return sm.Inter"):
        check_metric(PlainTuple, VALUES)
    with pytest.raises(TypeError, match=r"NoSchema.schema is \(.*: return a Schema, as in Schema"):
        WithoutSchema()
    with pytest.raises(TypeError, match=r"Schema\(.*\): expected a tuple of columns"):
        Schema(Numbers("values"))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match=r"Named.family = 'mean': expected a member of Family"):
        type("Named", (Whole,), {"family": "mean", "__module__": __name__})


def test_rows_are_needed():
    none = {"values": np.zeros(0)}
    with pytest.raises(AssertionError, match="rows: there are none, so nothing else was checked"):
        check_metric(Whole, none)
    with pytest.raises(ValueError, match="there are no rows to check with: pass 20 to 1000"):
        check_laws(Whole(), none)


def test_an_oracle_may_need_weights():
    def mean(values, sample_weight):
        return float(np.average(values, weights=sample_weight))

    check_metric(Whole, VALUES, oracle=mean)
    with pytest.raises(AssertionError, match="oracle: the values differ"):
        check_metric(Whole, VALUES, oracle=lambda values, sample_weight: float(np.mean(values)))


def test_moments_are_there_to_be_read():
    class Spread(sm.Metric[float]):
        """Standard deviation."""

        statistics = lambda self: (Moments(of="values"),)  # noqa: E731 - as short as may be
        update = Whole.update

        def readout(self, moments):
            return float(moments.centred("x", "x")[0]) ** 0.5 if moments.total else float("nan")

    assert Spread().update([1.0, 3.0]).compute() == 2**0.5


class ErrorSum(Statistic):
    """Exact sums of errors, of which the largest are no number any more."""

    errors = Sum()

    @property
    def schema(self):
        return Schema((Numbers("y_true"), Numbers("y_pred")))

    def update(self, y_true, y_pred, *, weight):
        with np.errstate(over="ignore"):
            self.errors += ExactSum.of(y_pred - y_true, weight)


class ErrorInAll(Metric[float]):
    """The sum of all errors, Σ p - y.

    Example:
        >>> ErrorInAll().update([1.0, 2.0], [1.5, 2.5]).compute()
        1.0
    """

    higher_is_better = False

    def statistics(self):
        return (ErrorSum(),)

    def update(self, y_true, y_pred, *, sample_weight=None):
        return self.feed({"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})

    def readout(self, sums):
        return sums.errors.to_float()


def test_two_columns_that_are_too_far_apart_are_tried():
    rows = {"y_true": VALUES["values"], "y_pred": VALUES["values"][::-1]}
    with pytest.raises(
        AssertionError, match=r"y_true=1.7e\+308 beside y_pred=-1.7e\+308: its stat"
    ):
        check_metric(ErrorInAll, rows)
