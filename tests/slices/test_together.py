"""Metrics of all slices are read at once, to the bits of what each slice reads alone."""

import math
import warnings

import numpy as np
import pytest
from oracles.table import ORACLES, distinct, thinned

import streammetrics as sm
from streammetrics.authoring import ContingencyMetric
from streammetrics.core.errors import InvalidBatchError, UndefinedMetricWarning
from streammetrics.core.results.values import numbers
from streammetrics.show.report import Sliced
from streammetrics.testing import laws

RATES = (
    sm.Precision,
    sm.Recall,
    sm.Specificity,
    sm.FalsePositiveRate,
    sm.FalseNegativeRate,
    sm.NegativePredictiveValue,
    sm.F1,
    sm.Jaccard,
    sm.FalseDiscoveryRate,
    sm.FalseOmissionRate,
    sm.Prevalence,
    sm.SelectionRate,
    sm.LabelAccuracy,
)


def rows(seed, n=400):
    """Labels of 14 slices, of which some lack a class or predict none."""
    rng = np.random.default_rng(seed)
    by = rng.integers(0, 14, n)
    y, p = rng.integers(0, 2, n), rng.integers(0, 2, n)
    y[by < 4], p[(by > 2) & (by < 8)], p[by == 9] = 0, 0, 1
    return {"y_true": y, "y_pred": p, "k": by}


def alone(slices, name):
    """Read a metric slice by slice."""
    keys = slices.compute()["k"].tolist()
    return [slices[{"k": key}][name].compute() for key in keys]


def agree(slices):
    """Check every column of `compute` against the metrics of each slice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = slices.compute()
        for name in slices:
            expected = np.array(alone(slices, name), np.float64)
            assert table[name].tobytes() == expected.tobytes(), name
    assert table["n_rows"].tolist() == [slices[{"k": key}].n_rows for key in table["k"]]


@pytest.mark.parametrize("average", ["binary", "micro"])
@pytest.mark.parametrize("zero_division", [None, 0.0, math.nan])
def test_rates_of_labels(average, zero_division):
    options = {"average": average, "zero_division": zero_division}
    metrics = {each.__name__: each(**options) for each in RATES}
    metrics |= {"f3": sm.FBeta(beta=3.0, **options), "half": sm.FBeta(beta=0.5, **options)}
    agree(sm.Slices(sm.MetricSet(metrics), by="k").update(rows(1)))


def test_shares_of_all_rows_and_other_spellings():
    metrics = {
        "right": sm.Accuracy(),
        "wrong": sm.ZeroOneLoss(),
        "sum": sm.Accuracy(normalize=False),
        "off": sm.ZeroOneLoss(normalize=False),
        "negative": sm.Recall(pos_label=0),
        "given": sm.Specificity(labels=[1, 0]),
        "three": sm.Precision(labels=[0, 1, 2], average="micro"),
        "mcc": sm.MatthewsCorrcoef(zero_division=0),
    }
    agree(sm.Slices(sm.MetricSet(metrics), by="k").update(rows(2)))


@pytest.mark.parametrize("labels", [None, [1, 0], [0, 1]])
def test_rates_at_a_threshold(labels):
    cut = {"threshold": 0.5, "labels": labels}
    metrics = {each.__name__: each(**cut) for each in RATES} | {"right": sm.Accuracy(**cut)}
    if labels is None:
        metrics["zero"] = sm.Recall(threshold=0.5, pos_label=0)
    table = rows(3)
    table["y_score"] = table.pop("y_pred") * 0.75
    agree(sm.Slices(sm.MetricSet(metrics), by="k").update(table))


def test_words_and_weights():
    table = rows(4)
    words = np.array(["no", "yes"])
    table |= {name: words[table[name]] for name in ("y_true", "y_pred")}
    suite = sm.MetricSet({"f1": sm.F1(pos_label="yes"), "acc": sm.Accuracy()})
    agree(sm.Slices(suite, by="k").update(table))
    agree(sm.Slices(suite, by="k").update(**table, sample_weight=np.full(400, 0.5)))


def test_a_slice_with_three_classes_raises_as_alone():
    suite = sm.MetricSet({"f1": sm.F1()})
    slices = sm.Slices(suite, by="k")
    slices.update(y_true=[0, 1, 0, 1, 2], y_pred=[0, 1, 0, 2, 2], k=[1, 1, 2, 2, 2])
    with pytest.raises(InvalidBatchError, match="needs two classes"):
        slices.compute()


def test_another_two_classes_in_each_slice():
    """Three classes overall are none too many: no slice has more than two."""
    suite = sm.MetricSet({"f1": sm.F1()})
    slices = sm.Slices(suite, by="k")
    slices.update(y_true=[0, 1, 2, 1], y_pred=[0, 1, 1, 1], k=[1, 1, 2, 2])
    agree(slices)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_roots(weighted):
    rng = np.random.default_rng(5)
    table = {"y_true": rng.normal(size=400), "y_pred": rng.normal(size=400)}
    table |= {"k": rng.integers(0, 60, 400)}
    weight = {"sample_weight": rng.random(400)} if weighted else {}
    metrics = (sm.MAE(), sm.MSE(spread=False), sm.RMSE(), sm.MeanError(), sm.PinballLoss())
    metrics += (sm.WAPE(), sm.WAPE(spread=False), sm.MaxError())
    suite = sm.MetricSet({str(place): metric for place, metric in enumerate(metrics)})
    agree(sm.Slices(suite, by="k").update(**table, **weight))
    values = {"values": table["y_true"], "k": table["k"]}
    each = (sm.Mean(), sm.Sum(), sm.Minimum(), sm.Maximum())
    suite = sm.MetricSet({type(metric).__name__: metric for metric in each})
    agree(sm.Slices(suite, by="k").update(**values, **weight))


@pytest.mark.parametrize("metric", [sm.MAE, sm.RMSE, sm.MeanError, sm.WAPE, sm.MaxError])
@pytest.mark.parametrize("multioutput", ["raw_values", (0.5,)])
def test_outputs_that_are_not_averaged_uniformly(metric, multioutput):
    suite = sm.MetricSet({"m": metric(multioutput=multioutput)})
    slices = sm.Slices(suite, by="k").update(y_true=[1.0, 2, 3], y_pred=[1.0, 3, 5], k=[0, 1, 1])
    (found,) = [column for name, column in slices.compute().to_dict().items() if name[0] == "m"]
    assert found == [float(np.ravel(value)[0]) for value in alone(slices, "m")]


def test_areas_of_long_batches_by_coarse_and_fine_slices():
    """Histograms past level 0 are counted, merged and regrouped as those of each slice."""
    rng = np.random.default_rng(11)
    suite = sm.MetricSet({"area": sm.ROCAUC(max_bins=32), "brier": sm.BrierScore()})
    slices = sm.Slices(suite, by=[["k", "part"], ["k"]])
    whole = {k: suite.copy() for k in range(5)}
    for n in (20_000, 70, 30_000):
        y, k, part = rng.integers(0, 2, n), rng.integers(0, 5, n), rng.integers(0, 9, n)
        score = rng.choice([rng.random(n), rng.integers(0, 3, n) / 2])
        slices.update(y_true=y, y_score=score, k=k, part=part)
        for key, each in whole.items():
            each.update(y_true=y[k == key], y_score=score[k == key])
    table = slices.compute().to_dict()
    for place, key in enumerate(table["k"]):
        if table["part"][place] is None:
            assert table["area"][place] == whole[key]["area"].compute()
            assert slices[{"k": key}].to_bytes() == whole[key].to_bytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("zero_division", [None, 0.5])
@pytest.mark.parametrize("max_bins", [4, 1 << 20])
def test_losses_and_areas_of_scores(weighted, zero_division, max_bins):
    table = rows(6)  # some slices lack a class
    table["y_score"] = np.round(np.random.default_rng(6).random(400), 1)
    del table["y_pred"]
    weight = {"sample_weight": np.random.default_rng(7).random(400)} if weighted else {}
    area = {"zero_division": zero_division, "max_bins": max_bins}
    metrics = {"area": sm.ROCAUC(**area), "part": sm.ROCAUC(max_fpr=0.5, **area)}
    metrics |= {"brier": sm.BrierScore(), "whole": sm.BrierScore(scale_by_half=False)}
    slices = sm.Slices(sm.MetricSet({**metrics, "log": sm.LogLoss()}), by="k")
    half = {name: column[:200] for name, column in (table | weight).items()}
    rest = {name: column[200:] for name, column in (table | weight).items()}
    agree(slices.update(**half))
    agree(slices.update(**rest))
    agree(sm.from_bytes(slices.to_bytes()).update(**half).merge(slices))


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("average", ["binary", "micro", "macro"])
def test_slices_of_no_rows_are_read_as_a_table_without_lines(average):
    ratios = (sm.Precision, sm.Recall, sm.F1, sm.Specificity, sm.Jaccard)
    suite = sm.MetricSet({each.__name__: each(average=average) for each in ratios})
    slices = sm.Slices(suite, by=[[], ["c"], ["c", "d"]])
    for value in (slices.compute()["F1"], sm.from_bytes(slices.to_bytes()).compute()["F1"]):
        assert np.isnan(np.asarray(value, float)).all()
    assert slices.confidence()["Recall"] is not None


@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES), columns=False, every=3))
def test_states_travel_between_processes_after_long_batches(oracle):
    given = oracle.rows(np.random.default_rng(2), min(oracle.n, 60))
    table = {**given, "key": np.arange(len(next(iter(given.values())))) % 3}
    weight = {"sample_weight": "sample_weight"} if "sample_weight" in given else None
    slices = sm.Slices(sm.MetricSet({"metric": oracle.metric}, columns=weight), by=[[], ["key"]])
    case = laws.Case(slices, table)
    laws.travels(case)
    laws.long_batches(case)


def wide_rows(seed, n=1500):
    """Labels of slices that have from one to a dozen classes, and not the same ones."""
    rng = np.random.default_rng(seed)
    by = rng.integers(0, 12, n)
    y, p = (by % 3 + rng.integers(0, np.maximum(by, 1)) for _ in range(2))
    return {"y_true": y, "y_pred": np.where(by == 7, 9, p), "k": by}


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_readouts_of_other_classes_in_each_slice(weighted):
    """Sums over classes are in the order of the slice's own, as if no others were there."""
    averages = ("micro", "macro", "weighted")
    metrics = {
        f"{each.__name__} {average}": each(average=average)
        for each in (*RATES, sm.Informedness, sm.PositiveLikelihoodRatio)
        for average in averages
    }
    metrics |= {
        "some": sm.F1(labels=[2, 3, 40], average="macro"),
        "mcc": sm.MatthewsCorrcoef(),
        "kappa": sm.CohenKappa(weights="linear"),
        "inner": sm.CohenKappa(labels=[1, 2, 3]),
        "balanced": sm.BalancedAccuracy(),
        "adjusted": sm.BalancedAccuracy(adjusted=True),
        "gmean": sm.GMean(),
    }
    suite = sm.MetricSet(metrics, columns={"sample_weight": "w"} if weighted else None)
    table = wide_rows(8)
    if weighted:
        table["w"] = np.where(table["k"] == 3, 1e307, np.linspace(0.1, 3.0, 1500))
    agree(sm.Slices(suite, by="k").update(table))


def test_arrays_and_reports_of_each_slice_have_its_own_classes():
    metrics = {
        "recall": sm.Recall(average=None),
        "matrix": sm.ConfusionMatrix(normalize="true"),
        "report": sm.ClassificationReport(zero_division=0),
    }
    slices = sm.Slices(sm.MetricSet(metrics), by="k").update(wide_rows(9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = slices.compute()
        for place, key in enumerate(table["k"].tolist()):
            one = slices[{"k": key}]
            recalls = one["recall"].compute().to_dict()
            columns = {name: table[f"recall_{name}"][place] for name in recalls}
            np.testing.assert_equal(columns, recalls)
            absent = [n for n in range(14) if n not in recalls and f"recall_{n}" in table]
            assert all(np.isnan(table[f"recall_{name}"][place]) for name in absent)
            report = one["report"].compute()
            assert table["report_macro avg/recall"][place] == report["macro avg"]["recall"]


def test_limits_and_the_worst_are_those_of_each_slice():
    metrics = {
        "f1": sm.F1(), "acc": sm.Accuracy(), "micro": sm.Recall(average="micro"),
        "macro": sm.Recall(average="macro"), "mse": sm.MSE(), "loss": sm.LogLoss(),
    }  # fmt: skip
    table = rows(5)
    table |= {"y_score": np.random.default_rng(1).random(400)}
    suite = sm.MetricSet(metrics)
    slices = sm.Slices(suite, by="k").update(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        limits = slices.confidence(0.9)
        for place, key in enumerate(limits["k"].tolist()):
            for name in metrics:
                low, high = slices[{"k": key}][name].confidence(0.9)
                pair = (limits[f"{name}_low"][place], limits[f"{name}_high"][place])
                assert np.array(pair).tobytes() == np.array([low, high], float).tobytes(), name
        for name in metrics:
            worst = slices.worst(name, k=3)
            for place, key in enumerate(worst["k"].tolist()):
                mine = table["k"] == key
                rest = suite[name].copy()
                columns = {c: table[c][~mine] for c in rest.inputs}
                assert worst[f"{name}_rest"][place] == rest.update(**columns).compute()
                low, high = slices[{"k": key}][name].confidence()
                assert (worst[f"{name}_low"][place], worst[f"{name}_high"][place]) == (low, high)


class Skill(ContingencyMetric[float]):
    def read(self, table):
        READS.append(table.groups)
        most = table.actual.max(axis=1)
        return self.ratio(table.hits - most, table.total - most)


READS: list[int] = []


class Scalar(ContingencyMetric[float]):
    def read(self, table):
        return float(table.hits.sum())


def test_a_formula_of_a_user_reads_all_slices_at_once():
    agree(sm.Slices(sm.MetricSet({"skill": Skill()}), by="k").update(wide_rows(10)))
    slices = sm.Slices(sm.MetricSet({"skill": Skill(zero_division=0)}), by="k").update(rows(5))
    READS.clear()
    assert len(slices.compute()["k"]) == 14
    assert sum(READS) == 14
    assert len(READS) <= 2  # those of one class, and those of two


def test_a_formula_must_have_a_value_for_each_group():
    with pytest.raises(TypeError, match=r"Scalar.read\(\) must return an array with an entry"):
        Scalar().update([0, 1], [0, 1]).compute()


def test_lines_of_a_report_are_those_of_each_slice_read_alone(monkeypatch):
    rng, n = np.random.default_rng(0), 400
    metrics = {
        "accuracy": sm.Accuracy(threshold=0.5),
        "auc": sm.ROCAUC(max_bins=16, nan_policy="omit"),
        "loss": sm.LogLoss(),
        "classes": sm.Recall(threshold=0.5, average=None),
    }
    slices = sm.Slices(sm.MetricSet(metrics, columns={"y_score": "s"}), by=[[], ["k"], ["k", "m"]])
    scores = rng.random(n)
    slices.update(y_true=rng.integers(0, 2, n), s=scores, k=rng.integers(0, 9, n), m=scores > 0.5)
    sliced = Sliced.of(slices, 30, None, None)
    expected = []
    for kind in ("k", "k, m"):
        table = slices.compute().to_dict()
        for at in [at for at, by in enumerate(table["by"]) if by == kind]:
            which = {title: table[title][at] for title in kind.split(", ")}
            alone = slices[which]
            if alone.n_rows >= 30:
                expected += [
                    (name, row["value"], low["value"], high["value"], str(m.exact).lower())
                    for name, m in alone.items()
                    for (_, row), (_, low), (_, high) in zip(
                        *map(numbers, (m.compute(), *m.bounds())), strict=True
                    )
                ]
    monkeypatch.setattr(sm.Accuracy, "_judged", None)  # one by one is slow
    found = [(name, *line, exact) for name, _, *line, exact, _, _ in sliced.lines()]
    assert len(found) == len(expected) > 40
    for line, alone in zip(found, expected, strict=True):
        assert (line[0], line[-1]) == (alone[0], alone[-1])
        np.testing.assert_array_equal(line[1:-1], alone[1:-1])


def test_slices_whose_squared_weights_are_not_known_say_so_in_files():
    """The weights of one slice are out of reach of squares, of one are 1, of one are others."""
    rng = np.random.default_rng(0)
    n = 60
    city = np.repeat(["far", "one", "few"], n // 3)
    rows = {"y_true": rng.integers(0, 2, n), "y_score": rng.random(n), "city": city}
    weight = np.where(city == "far", 1e150, np.where(city == "one", 1.0, rng.random(n)))
    suite = sm.Slices({"auc": sm.ROCAUC(), "q": sm.AveragePrecision()}, by=["city"])
    weighted = suite.copy().update(**rows, sample_weight=weight)
    plain = suite.copy().update(**rows)
    opened = [sm.from_bytes(each.to_bytes()) for each in (weighted, plain)]
    assert opened[0].to_bytes() == weighted.to_bytes()
    for name in ("far", "one", "few"):
        own = {key: column[city == name] for key, column in rows.items() if key != "city"}
        alone = sm.ROCAUC().update(**own, sample_weight=weight[city == name])
        assert weighted[{"city": name}]["auc"].compute() == alone.compute()
    assert opened[0].merge(opened[1]).to_bytes() == weighted.merge(plain).to_bytes()
