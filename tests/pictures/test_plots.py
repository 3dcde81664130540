"""Pictures show what the results hold: lines, bands, labels, and why there is nothing to see."""

from __future__ import annotations

import io
import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import streammetrics as sm
from streammetrics.show.page import figures, findings

RNG = np.random.default_rng(7)
N = 3000
Y = RNG.integers(0, 2, N)
S = np.clip(RNG.normal(0.4 + 0.2 * Y, 0.15), 0.0, 1.0)
CLASSES = np.array(["ash", "beech", "<script>", "$oak"])
C = RNG.integers(0, 4, N)
P = RNG.dirichlet(np.ones(4), N)
P[np.arange(N), C] += 0.4
P /= P.sum(axis=1, keepdims=True)


def labels(ax):
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def texts(ax):
    return [ax.get_title("left"), ax.get_title("right"), *(t.get_text() for t in ax.texts)]


def svg(ax):
    out = io.BytesIO()
    ax.figure.savefig(out, format="svg")
    return out.getvalue().decode()


def test_roc_has_the_points_of_the_curve_and_tells_n():
    curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
    ax = curve.plot(color="black")
    line = ax.lines[0]
    assert line.get_xdata().tolist() == curve.fpr.tolist()
    assert line.get_ydata().tolist() == curve.tpr.tolist()
    assert line.get_color() == "black"
    assert labels(ax) == ["area 0.75", "chance"]
    assert ax.get_title("right") == "n = 4, 2 positive"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("false positive rate", "true positive rate")


def test_axes_that_are_given_are_drawn_on():
    _, (left, right) = plt.subplots(1, 2)
    assert sm.ROCCurve().update(Y, S).plot(right) is right
    assert right.lines
    assert not left.lines


def held(patch, x, y):
    """Tell which points a patch holds, its edge included."""
    path, points = patch.get_path(), np.column_stack([x, y])
    nearby = [points + np.array([dx, dy]) for dx in (-1e-6, 0.0, 1e-6) for dy in (-1e-6, 0.0, 1e-6)]
    edges = [path.contains_points(points, radius=radius) for radius in (-1e-6, 1e-6)]
    return np.any([*edges, *(path.contains_points(each) for each in nearby)], axis=0)


def test_certain_band_holds_the_exact_curve():
    exact = sm.ROCCurve().update(Y, S).compute()
    ax = sm.ROCCurve(max_bins=16).update(Y, S).plot(confidence=0.9)
    assert labels(ax)[:2] == ["90 % confidence", "certain bounds"]
    light, solid = ax.patches
    assert light.get_alpha() < solid.get_alpha()
    assert held(solid, exact.fpr, exact.tpr).all()


def test_certain_band_of_precision_holds_the_exact_curve():
    exact = sm.PrecisionRecallCurve().update(Y, S).compute()
    ax = sm.PrecisionRecallCurve(max_bins=16).update(Y, S).plot()
    (band,) = ax.patches
    assert held(band, exact.recall, exact.precision)[exact.recall > 0].all()


@pytest.mark.parametrize("kind", ["det", "gains", "lift"])
def test_other_pictures_of_a_roc(kind):
    ax = sm.ROCAUC().update(Y, S).plot(kind=kind)
    x, y = ax.lines[0].get_data()
    assert len(x) == len(y) > 10
    assert np.isfinite([x, y]).all()
    if kind == "gains":
        assert (x[-1], y[-1]) == (1.0, 1.0)
    if kind == "lift":
        assert y[-1] == pytest.approx(1.0)


def test_unknown_kind_is_told_with_what_there_is():
    with pytest.raises(TypeError, match=r"kind='x'.*'roc', 'det', 'gains', 'lift'"):
        sm.ROCCurve().update(Y, S).compute().plot(kind="x")


def test_thresholds_mark_the_best_ones():
    curve = sm.PrecisionRecallCurve().update(Y, S).compute()
    ax = curve.plot(kind="thresholds", cost=(1, 5))
    told = labels(ax)
    cuts = curve.thresholds
    f1 = [sm.F1(threshold=t).update(Y, S).compute() for t in cuts[::100]]
    best = next(float(text.split()[2]) for text in told if text.startswith("highest F1"))
    assert best >= max(f1) - 1e-4
    cost = next(text for text in told if text.startswith("lowest cost")).split()
    called = float(cost[-1]) <= S + 1e-4
    exact = (np.sum(called & (Y == 0)) + 5 * np.sum(~called & (Y == 1))) / N
    assert float(cost[2]) == pytest.approx(exact, abs=0.01)


def test_curves_of_many_classes_name_the_lowest():
    y = RNG.integers(0, 9, N)
    p = RNG.dirichlet(np.ones(9), N)
    ax = sm.ROCCurve().update(y, p).plot()
    assert ax.get_legend().get_title().get_text() == "the lowest 3, 6 more in grey"
    ax = sm.ROCAUC(labels=CLASSES.tolist()).update(CLASSES[C], P).plot()
    assert [text.partition(":")[0] for text in labels(ax)[:4]] == [
        name.replace("$", r"\$") for name in CLASSES.tolist()
    ]


def test_calibration_has_the_rows_of_its_bins_beneath():
    metric = sm.CalibrationCurve(n_bins=5).update(Y, S)
    ax = metric.plot(confidence=0.95)
    (beneath,) = ax.child_axes
    assert sum(bar.get_height() for bar in beneath.patches) == N
    assert "95 % confidence" in labels(ax)
    rough = sm.CalibrationCurve(n_bins=5, max_bins=16).update(Y, S).plot()
    assert "certain bounds" in labels(rough)


def test_matrix_writes_counts_and_shares():
    ax = sm.ConfusionMatrix().update(["a", "b", "b"], ["a", "b", "a"]).plot()
    assert [t.get_text() for t in ax.texts] == ["1\n100 %", "0\n0 %", "1\n50 %", "1\n50 %"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a (1)", "b (2)"]
    assert ax.get_title("right") == "n = 3"


def test_matrix_of_thirty_classes_is_readable():
    names = np.array([f"class {k:02}" for k in range(30)])
    true = RNG.integers(0, 30, N)
    pred = np.where(RNG.random(N) < 0.7, true, RNG.integers(0, 30, N))
    ax = sm.ConfusionMatrix().update(names[true], names[pred]).plot()
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.get_yticklabels()]
    assert len(boxes) == 30
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    cell = ax.transData.transform((1, 0))[0] - ax.transData.transform((0, 0))[0]
    assert max(t.get_window_extent().width for t in ax.texts) < cell


def test_report_draws_classes_and_averages():
    ax = sm.ClassificationReport().update(C, P).plot()
    assert [t.get_text() for t in ax.get_yticklabels()][-2:] == ["macro avg", "weighted avg"]
    assert labels(ax)[:3] == ["precision", "recall", "F1"]


def test_numbers_of_classes_have_their_limits():
    ax = sm.Recall(average=None).update(C, P).plot(confidence=0.95)
    assert labels(ax) == ["95 % confidence"]
    assert len(ax.lines[0].get_xdata()) == 4


def test_queries_are_drawn_alone_and_against_another_run():
    query = np.repeat(np.arange(40), 5)
    relevance = RNG.integers(0, 2, 200)
    one = sm.NDCG(k=5).update(query, relevance, RNG.random(200) + relevance)
    other = sm.NDCG(k=5).update(query, relevance, RNG.random(200))
    ax = one.plot()
    assert ax.get_title("right") == "n = 40 queries"
    assert sum(bar.get_height() for bar in ax.patches) == 40
    mine, theirs = one.per_query(), other.per_query()
    told = labels(mine.plot(against=theirs))[1]
    better = sum(mine[key] > theirs[key] for key in mine)
    assert told.startswith(f"{better} better, ")


def test_error_quantiles_are_those_of_the_errors():
    t = RNG.normal(size=N)
    p = t + RNG.normal(size=N)
    ax = sm.MedianAbsoluteError().update(t, p).plot()
    told = float(labels(ax)[1].rpartition(" ")[2])
    assert told == pytest.approx(np.quantile(np.abs(t - p), 0.9), rel=0.01)
    assert ax.get_ylabel() == "absolute error, in units of the target"
    rough = sm.MedianAbsoluteError(max_bins=16).update(t, p).plot()
    assert "certain bounds" in labels(rough)
    residuals = sm.Quantile(q=0.5).update(t - p).plot()
    assert sum(bar.get_height() for bar in residuals.patches) == pytest.approx(99.9, abs=0.2)


def sliced(**options):
    suite = sm.MetricSet({"acc": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(**options)})
    slices = sm.Slices(suite, by=[[], ["tree"]])
    return slices.update(y_true=Y, y_score=S, tree=CLASSES[C])


def test_slices_come_worst_first_with_all_rows_as_a_line():
    slices = sliced()
    ax = slices.plot("acc")
    table = slices.compute().to_dict()
    worst = sorted(zip(table["acc"][1:], table["tree"][1:], strict=True))
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names[0].startswith(f"tree={worst[0][1]}".replace("$", r"\$"))
    assert labels(ax)[1] == f"all rows {table['acc'][0]:.4g}"
    assert labels(ax)[0] == "95 % confidence"
    assert "certain bounds" in labels(sliced(max_bins=16).plot("auc"))
    with pytest.raises(TypeError, match="no such column"):
        slices.compute().plot(metric="acx")


def test_differences_are_drawn_metric_by_metric():
    suite = sm.MetricSet({"acc": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()})
    duel = sm.Comparison(suite, {"a": "one", "b": "two"})
    found = duel.update(y_true=Y, one=S, two=np.clip(S + 0.2 * RNG.normal(size=N), 0, 1)).compute()
    ax = found["auc"].plot()
    assert ax.lines[0].get_xdata().tolist() == [found["auc"][0].difference]
    assert labels(ax) == ["95 % confidence", "no difference"]
    assert len(found.plot().child_axes) == 2


def test_differences_of_other_rows_tell_how_many_each_model_has():
    old, new, late = (sm.ROCAUC().update(Y[:n], S[:n]) for n in (1200, 800, 800))
    found = sm.compare(old, new, names=("old", "$new"))
    assert found.n_rows == {"old": 1200, "$new": 800}
    assert texts(found.plot())[0].endswith("\nn = 1,200 of old, 800 of \\$new")
    assert texts(sm.compare(new, late).plot())[0].endswith("\nn = 800 each")
    states = {"old": old, "new": new, "late": late}
    about = {name: {} for name in states}
    every = findings(states, about, confidence=0.95).differences
    assert texts(every.plot())[0].endswith("\nn = 800 to 1,200 each")


def test_series_has_its_band_and_the_coverage_beneath():
    live = sm.Live(sm.MetricSet({"auc": sm.ROCAUC(max_bins=16)}))
    times = 1_700_000_000 + np.sort(RNG.integers(0, 3600, N))
    live.predict(id=np.arange(N), time=times, y_score=S)
    series = live.label(id=np.arange(N), time=times, y_true=Y).series("10min", every="5min")
    ax = series.plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), series["auc"])
    assert labels(ax) == ["certain bounds", "auc"]
    assert ax.child_axes[0].get_ylabel() == "labels\nknown (%)"
    assert series.to_dict()["time"][0].endswith("Z")


EMPTY = {
    "no rows": (sm.ROCCurve(), "no rows were seen"),
    "one class": (sm.ROCCurve().update([1, 1], [0.2, 0.3]), "there are no negatives"),
    "no positives": (sm.PrecisionRecallCurve().update([0], [0.2]), "there are no positives"),
    "precision": (sm.PrecisionRecallCurve(), "no rows were seen"),
    "calibration": (sm.CalibrationCurve(), "no rows were seen"),
    "matrix": (sm.ConfusionMatrix(), "no rows were seen"),
    "report": (sm.ClassificationReport(), "no rows were seen"),
    "classes": (sm.Recall(average=None), "no value is defined"),
    "queries": (sm.NDCG(k=3), "there are no queries"),
    "quantiles": (sm.MedianAbsoluteError(), "no rows were seen"),
    "values": (sm.Quantile(q=0.5), "no rows were seen"),
    "errors of one class": (sm.DETCurve().update([1, 1], [0.2, 0.3]), "there are no negatives"),
    "gains": (sm.CumulativeGains(), "no rows were seen"),
    "gains of one class": (sm.CumulativeGains().update([0], [0.2]), "there are no positives"),
    "lift": (sm.LiftCurve(), "no rows were seen"),
    "slices": (sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by="k"), "no slice has a value"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_frame_says_why(name):
    metric, why = EMPTY[name]
    ax = metric.plot()
    assert why in "\n".join(texts(ax))


def test_number_has_no_picture():
    with pytest.raises(TypeError, match="Accuracy has no picture: its value is one number"):
        sm.Accuracy().update([0, 1], [0, 1]).plot()


def test_million_cells_draw_at_once_and_small():
    scores = RNG.random(1_000_000)
    y = RNG.random(1_000_000) < scores
    curve = sm.ROCCurve(max_bins=1 << 21).update(y.astype(int), scores).compute()
    assert len(curve.fpr) > 990_000
    ax = curve.plot()
    text = svg(ax)
    assert len(text) <= 20_000
    x, y = ax.lines[0].get_data()
    above = np.abs(np.interp(curve.fpr, x, y) - curve.tpr)
    beside = np.abs(np.interp(curve.tpr, y, x) - curve.fpr)
    assert np.minimum(above, beside).max() < 0.002  # a pixel


def test_letters_are_text_in_own_figures_and_as_set_in_others():
    curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    assert "n = 4, 2 positive</text>" in svg(curve.plot())
    assert "<text" not in svg(curve.plot(plt.figure().subplots()))
    assert mpl.rcParams["svg.fonttype"] == "path"


def test_names_are_text_in_svg():
    text = svg(sm.ConfusionMatrix().update(CLASSES[C], CLASSES[C]).plot())
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("name", ["DETCurve", "CumulativeGains", "LiftCurve"])
def test_curves_of_their_own_are_drawn(name):
    ax = getattr(sm, name)().update(Y, S).plot()
    assert len(ax.lines[0].get_xdata()) > 10
    assert "nothing to draw" in "".join(t.get_text() for t in getattr(sm, name)().plot().texts)


@pytest.mark.parametrize("kind", ["ROCAUC", "AveragePrecision", "DETCurve", "CumulativeGains"])
def test_areas_and_curves_have_their_confidence(kind):
    ax = getattr(sm, kind)().update(Y, S).plot(confidence=0.9)
    assert "90 % confidence" in labels(ax)
    (band,) = ax.patches
    inside = band.get_path()
    x, y = (values[len(values) // 2] for values in ax.lines[0].get_data())
    assert inside.contains_point((x, y))
    if kind == "ROCAUC":
        curve = sm.ROCCurve().update(Y, S).plot(confidence=0.9)
        np.testing.assert_array_equal(inside.vertices, curve.patches[0].get_path().vertices)


def test_observed_rows_have_no_picture_of_labels_to_come():
    live = sm.Live(sm.MetricSet({"mean": sm.Mean()}))
    live.observe(time=1_700_000_000 + np.arange(600), values=np.arange(600.0))
    ax = live.series("1min", every="1min").plot()
    assert not ax.child_axes
    assert ax.get_xlabel() == "end of the window (UTC)"


def test_slices_are_ranked_as_worst_ranks_them():
    slices = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by="k")
    keys = ["few"] * 2 + ["many"] * 200 + ["good"] * 50
    right = [0, 1] + [1, 0] * 100 + [1] * 50  # half of both are wrong, of which few are unlucky
    slices.update(y_true=[1] * 252, y_pred=right, k=keys)
    names = [text.get_text().split()[0] for text in slices.plot("acc").get_yticklabels()]
    worst = [f"k={key}" for key in slices.worst("acc")["k"]]
    assert [*worst, "k=good"] == names == ["k=many", "k=few", "k=good"]  # which is not among them
    with pytest.raises(TypeError, match="say metric='acc'"):
        slices.compute().plot("acc")


def test_long_names_keep_their_ends():
    names = [f"a name that is so long that it has to be cut, number {n}" for n in (1, 2)]
    slices = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by="k")
    ax = slices.update(y_true=[1, 1], y_pred=[1, 0], k=names).plot()
    assert len({text.get_text() for text in ax.get_yticklabels()}) == 2


def test_several_classes_tell_all_rows_and_of_none_how_many_are_positive():
    ax = sm.ROCCurve().update([0, 1, 2, 2], np.eye(3)[[0, 1, 2, 1]]).plot()
    assert ax.get_title("right") == "n = 4"


def test_limits_that_are_not_to_be_had_are_refused():
    for kind in ("gains", "lift"):
        with pytest.raises(TypeError, match=r"CumulativeGains\(\).plot\(confidence=0.95\)"):
            sm.ROCCurve().update(Y, S).plot(kind=kind, confidence=0.95)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_comparison_without_rows_says_so():
    duel = sm.Comparison(
        sm.MetricSet({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}), {"a": "a", "b": "b"}
    )
    (text,) = duel.compute().plot().texts
    assert text.get_text() == "nothing to draw:\nno rows were seen"


def test_parts_of_a_score_are_drawn_one_by_one():
    parts = sm.BrierDecomposition().update(Y, S)
    ax = parts.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == list(parts.compute())
    assert ax.lines[0].get_xdata().tolist() == list(parts.compute().values())


def test_short_classes_stand_upright():
    ax = sm.ConfusionMatrix().update([0, 1], [0, 1]).plot()
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {0.0}


SCORED = {
    ("ROCCurve", "det"): ("DETCurve", "det"),
    ("DETCurve", "det"): ("DETCurve", "det"),
    ("ROCCurve", "gains"): ("CumulativeGains", "gains"),
    ("CumulativeGains", "gains"): ("CumulativeGains", "gains"),
    ("ROCCurve", "lift"): ("LiftCurve", "lift"),
    ("LiftCurve", "lift"): ("LiftCurve", "lift"),
}


@pytest.mark.parametrize(("name", "kind"), SCORED)
def test_certain_bands_of_other_scales_hold_the_exact_curve(name, kind):
    other, _ = SCORED[name, kind]
    x, y = getattr(sm, other)().update(Y, S).plot().lines[0].get_data()
    ax = getattr(sm, name)(max_bins=16).update(Y, S).plot(kind=kind)
    assert labels(ax)[0] == "certain bounds"
    (band,) = ax.patches
    path = band.get_path()
    # Chords of a line that bends lie within it by less than a pixel.
    inside = path.contains_points(np.column_stack([x, y]), radius=0.01)
    inside |= path.contains_points(np.column_stack([x, y]), radius=-0.01)
    assert inside[2:-2].all()


def test_certain_band_of_quantiles_holds_the_exact_ones():
    t = RNG.normal(size=N)
    metric = sm.Quantile(q=0.5, max_bins=32).update(t)
    ax = metric.plot(kind="quantiles")
    (band,) = ax.patches
    share = 100 * (np.arange(N) + 0.5) / N
    assert held(band, share, np.sort(t)).all()


@pytest.mark.parametrize(
    "kind", ["ROCAUC", "PrecisionRecallCurve", "DETCurve", "CumulativeGains", "CalibrationCurve"]
)
def test_several_classes_have_their_bands(kind):
    ax = getattr(sm, kind)(max_bins=32).update(C, P).plot(confidence=0.9)
    assert {"90 % confidence", "certain bounds"} < set(labels(ax))
    if kind == "CalibrationCurve":
        assert len(ax.collections) == 4
    else:
        assert len(ax.patches) == 8


@pytest.mark.parametrize("kind", ["DETCurve", "CumulativeGains", "LiftCurve"])
def test_every_class_has_its_curve(kind):
    ax = getattr(sm, kind)(labels=CLASSES.tolist()).update(CLASSES[C], P).plot()
    told = set(labels(ax)) - {"chance"}
    assert told == {name.replace("$", r"\$") for name in CLASSES}
    assert ax.get_title("right") == f"n = {N:,}"


def test_every_output_has_its_quantiles():
    t = RNG.normal(size=(N, 2))
    metric = sm.MedianAbsoluteError(multioutput="raw_values", max_bins=64)
    ax = metric.update(t, t + 1 + RNG.normal(size=(N, 2))).plot()
    assert labels(ax) == ["certain bounds", "output 0", "output 1"]
    with pytest.raises(TypeError, match="of several outputs draw one"):
        metric.plot(kind="histogram")


def test_number_read_from_a_curve_is_told_with_its_limits():
    metric = sm.ROCAUC(max_bins=64).update(Y, S)
    low, high = metric.bounds()
    sure = metric.confidence(0.95)
    (told,) = (text for text in labels(metric.plot(confidence=0.95)) if text.startswith("ROC"))
    assert told == (
        f"ROCAUC {metric.compute():.4g}\ncertainly {low:.4g} to {high:.4g}\n"
        f"95 %: {sure.low:.4g} to {sure.high:.4g}"
    )


def test_precision_is_drawn_in_the_steps_that_average_precision_is_the_area_below():
    metric = sm.PrecisionRecallCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    x, y = metric.plot().lines[0].get_data()
    assert -np.trapezoid(y, x) == pytest.approx(5 / 6)


def test_names_are_told_as_they_are_in_legends_titles_and_ticks():
    names = np.array(["_a", "$b_1$", "c\nd"])
    p = P[:, :3] / P[:, :3].sum(axis=1, keepdims=True)
    told = labels(sm.ROCAUC(labels=names.tolist()).update(names[C % 3], p).plot())
    assert [text.partition(":")[0] for text in told[:3]] == [" _a", r"\$b_1\$", "c d"]
    suite = sm.MetricSet({"$m_1$": sm.Accuracy(threshold=0.5)})
    duel = sm.Comparison(suite, {"$x$": "one", "$y$": "two"})
    ax = duel.update(y_true=Y, one=S, two=1 - S).compute().plot()
    assert ax.get_title("left") == "\\$m_1\\$: differences of models\nn = 3,000"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["\\$x\\$ − \\$y\\$\n\\$x\\$ better"]


def test_bins_read_as_ranges():
    slices = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=[[sm.Bins("age", [25, 40])]])
    ax = slices.update(values=[1.0, 2.0, 3.0], age=[20, 30, 50]).plot()
    names = {t.get_text().partition("  ")[0] for t in ax.get_yticklabels()}
    assert names == {"age < 25", "age in [25, 40)", "age >= 40"}


def test_window_that_stands_alone_is_seen():
    live = sm.Live(sm.MetricSet({"mean": sm.Mean()}))
    live.observe(time=[1_700_000_000], values=[2.0])
    ax = live.series("1min", every="1min").plot()
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    assert [mark.get_ydata().tolist() for mark in marks] == [[2.0]]
    assert np.diff(ax.get_xlim()) < 1  # a day


def test_values_of_many_classes_say_how_many_are_drawn():
    many = RNG.integers(0, 60, N)
    ax = sm.Recall(average=None).update(many, many[::-1]).plot()
    assert ax.get_title("right") == "the lowest 40 of 60, n = 3,000"
    assert sm.ConfusionMatrix(normalize="true").update(Y, Y).plot().get_title("right") == (
        "n = 3,000, shares"
    )


def test_bands_are_denser_on_dark_axes():
    metric = sm.ROCCurve(max_bins=16).update(Y, S)
    light = [band.get_alpha() for band in metric.plot(confidence=0.9).patches]
    with plt.style.context("dark_background"):
        dark = [band.get_alpha() for band in metric.plot(confidence=0.9).patches]
    assert light[0] < dark[0] < light[1] < dark[1]


def test_calibration_of_weighted_rows_tells_rows_and_what_bins_weigh():
    weight = RNG.random(N)
    metric = sm.CalibrationCurve().update(Y, S, sample_weight=weight)
    rows = metric.compute().rows
    assert rows.sum() == pytest.approx(weight.sum())
    assert rows == pytest.approx(np.histogram(S, 5, range=(0, 1), weights=weight)[0])
    ax = metric.plot()
    assert f"n = {N:,}" in texts(ax)
    assert ax.child_axes[0].get_ylabel() == "weight"
    assert sm.CalibrationCurve().update(Y, S).compute().rows.sum() == N


@pytest.mark.parametrize(
    "values", [[0.1 + 0.2, 0.3], [1e16, 1e16 + 2], [0.0, 5e-324], [1e-310, 2e-310], [1.0, 1.0]]
)
def test_values_between_which_are_few_floats_have_a_histogram(values):
    ax = sm.Quantile(q=0.5).update(values).plot()
    bars = [bar.get_height() for bar in ax.patches]
    assert sum(bars) == pytest.approx(100)
    assert min(bar.get_width() for bar in ax.patches) > 0


@pytest.mark.parametrize("scores", [np.full(N, 0.5), Y.astype(float)], ids=["constant", "perfect"])
@pytest.mark.parametrize("curve", [sm.DETCurve, sm.ROCCurve])
def test_error_rates_beyond_their_scale_are_told(curve, scores):
    told = texts(curve().update(Y, scores).plot(kind="det"))[-1]
    assert "rates are 0 or 1" in told


@pytest.mark.parametrize("kind", ["histogram", "quantiles"])
def test_values_that_no_axis_holds_are_told(kind):
    ax = sm.Quantile(q=0.5).update([1e308, -1e308, 0.0]).plot(kind=kind)
    assert "beyond what Matplotlib can draw" in texts(ax)[-1]
    assert svg(sm.Quantile(q=0.5).update([1e300, -1e300, 0.0]).plot(kind=kind))


def test_predictions_are_drawn_as_points_and_residuals():
    metric = sm.PredictionError().update([1.0, 3.0, 1.0, np.inf], [2.0, 3.0, 2.0, 0.0])
    ax = metric.plot()
    assert ax.collections[0].get_offsets().tolist() == [[2.0, 1.0], [3.0, 3.0]]
    assert ax.get_title("right") == "n = 4"
    assert labels(ax) == ["perfect prediction", "mean by prediction"]
    ax = metric.plot(kind="residuals")
    assert ax.collections[0].get_offsets().tolist() == [[2.0, -1.0], [3.0, 0.0]]
    with pytest.raises(TypeError, match="pictures of predictions are 'actual', 'residuals'"):
        metric.plot(kind="residual")
    assert "nothing to draw:\nno rows were seen" in texts(sm.PredictionError().plot())


def test_many_predictions_are_counted_on_a_grid_whatever_the_shards():
    x = RNG.normal(size=N)
    y = x + RNG.normal(size=N)
    whole = sm.PredictionError().update(y, x).plot().collections[0].get_array()
    parts = [sm.PredictionError().update(y[at::3], x[at::3]) for at in range(3)]
    shown = sm.merge(parts[::-1]).plot().collections[0].get_array()
    assert np.ma.allequal(whole, shown)
    assert 0.99 * N < whole.sum() <= N
    ax = sm.PredictionError().update(y, np.full(N, 1e17)).plot()  # a constant has a grid as well
    assert ax.collections[0].get_array().sum() > 0.99 * N
    rough = sm.PredictionError(max_pairs=64).update(y, x)
    assert "cells of several values stand at their middle" in labels(rough.plot())
    low, high = rough.bounds()
    assert (low.y_true <= high.y_true).all()
    assert low.n_rows.sum() == N


def test_rank_correlations_are_drawn_as_their_pairs():
    ax = sm.SpearmanRho().update([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]).plot(kind="residuals")
    assert "SpearmanRho 0.8" in labels(ax)


def test_a_set_draws_each_picture_once():
    metrics = {
        "auc": sm.ROCAUC(),
        "ks": sm.KolmogorovSmirnov(),
        "cm": sm.ConfusionMatrix(threshold=0.5),
    }
    suite = sm.MetricSet({**metrics, "acc": sm.Accuracy(threshold=0.5)}).update(y_true=Y, y_score=S)
    axes = suite.plot(confidence=0.9)
    assert list(axes) == ["auc", "cm"]
    assert len(axes["auc"].figure.axes) == 2
    assert "90 % confidence" in labels(axes["auc"])
    assert axes["cm"].get_title("left") == "Confusion matrix"
    assert list(suite.plot("ks")) == ["ks"]
    with pytest.raises(ValueError, match="no metric 'k'; did you mean 'ks'"):
        suite.plot("k")
    with pytest.raises(TypeError, match="Accuracy has no picture"):
        suite.plot("acc")
    with pytest.raises(TypeError, match="none of the metrics has a plot: mae"):
        sm.MetricSet({"mae": sm.MAE()}).plot()


def test_models_are_drawn_on_the_same_axes():
    metrics = {"auc": sm.ROCAUC(), "ece": sm.CalibrationError(), "loss": sm.LogLoss()}
    duel = sm.Comparison({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}, ["a", "b"])
    duel.update(y_true=Y, a=S, b=np.clip(S + 0.1 * RNG.normal(size=N), 0.0, 1.0))
    axes = duel.plot()
    assert list(axes) == ["auc"]
    curve = duel["b"]["auc"]
    assert labels(axes["auc"])[1] == f"b: area {curve.compute():.4g}"
    assert axes["auc"].get_title("left") == "ROC of 2 models"
    with pytest.raises(TypeError, match="loss has no curve"):
        duel.plot("loss")
    with pytest.raises(TypeError, match=r"comparison\['a'\].plot\(confidence=0.9\)"):
        duel.plot(confidence=0.9)
    page = findings({"x": duel}, {"x": {}}, confidence=0.95)
    titles = [figure.title for figure in figures(page)]
    assert titles[:2] == ["Differences of models", "ROC of all models"]
    alone = {name: sm.MetricSet(metrics).update(y_true=Y, y_score=S) for name in "xy"}
    page = findings(alone, {"x": {}, "y": {}}, confidence=0.95)
    assert "ece of all models" in [figure.title for figure in figures(page)]
