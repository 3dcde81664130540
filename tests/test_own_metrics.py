"""Metrics of authors: bases of a few lines, prepared objects, and what is refused."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Annotated, Any, Callable  # noqa: UP035 - what authors write

import numpy as np
import own_metrics
import pytest
from own_metrics import (
    Agreement,
    CostRatio,
    Discounted,
    GeometricMean,
    LongTexts,
    MeanLogRatio,
    MeanWords,
    MedianGap,
    Message,
)
from thinning import some

import streammetrics as sm
from streammetrics.authoring import (
    Between,
    ExactSum,
    Floats,
    HashSketch,
    KeyCounts,
    Labels,
    Largest,
    Metric,
    Numbers,
    Outside,
    Positives,
    RowMean,
    Schema,
    Statistic,
    Sum,
    check_metric,
    label_hashes,
    prepare,
)
from streammetrics.core import tuning
from streammetrics.core.columns.column import Column
from streammetrics.core.registry import register
from streammetrics.metrics.specs import SpecError, import_own

RNG = np.random.default_rng(31)
N = 400
Y, P = RNG.exponential(size=(2, N)) + 1e-3
W = RNG.integers(0, 4, N) / 2
TEXTS = ["to be or not", "to", "be", "or not to be that is"] * 8


@pytest.mark.parametrize("metric", some(own_metrics.ALL), ids=lambda metric: metric.__name__)
def test_own_metrics_are_complete(metric, monkeypatch):
    # Long batches are checked with metrics of the package: texts and samples take longer.
    monkeypatch.setattr(tuning, "BATCH_ROWS", 1 << 16)
    rows = {"text": np.array(TEXTS)} if issubclass(metric, MeanWords) else None
    check_metric(metric, rows)


def test_a_mean_of_rows_is_an_exact_sum():
    metric = MeanLogRatio().update(Y, P, sample_weight=W)
    terms = zip(np.log(P / Y).tolist(), W.tolist(), strict=True)
    exact = sum((Fraction(x) * Fraction(w) for x, w in terms), Fraction(0))
    assert metric.compute() == float(exact / sum(map(Fraction, W.tolist())))
    assert metric.exact
    assert sm.from_bytes(metric.to_bytes()) == pickle.loads(pickle.dumps(metric)) == metric
    halves = [MeanLogRatio().update(Y[i::2], P[i::2], sample_weight=W[i::2]) for i in (1, 0)]
    assert sm.merge(halves) == metric


def test_a_mean_of_rows_has_the_limits_of_the_same_metric_of_the_package():
    class MAE(RowMean):
        higher_is_better = False
        value_range = (0.0, np.inf)

        def row(self, y_true: Floats, y_pred: Floats):
            return np.abs(y_true - y_pred)

    for weight in (None, W):
        own = MAE().update(Y, P, sample_weight=weight)
        theirs = sm.MAE().update(Y, P, sample_weight=weight)
        assert own.compute() == theirs.compute()
        assert own.confidence() == theirs.confidence()
        near = Agreement(within=0.1).update(Y / 10, P / 10, sample_weight=weight)
        assert near.bounds() == (near.compute(), near.compute())
    assert Agreement().update(Y / 10, P / 10).confidence(anytime=True).low > 0


def test_rows_may_be_counted_beforehand():
    times = RNG.integers(0, 5, 20)
    y, p = Y[:20] / 10, P[:20] / 10
    for cls in (MeanLogRatio, CostRatio, MedianGap):
        counted = cls().update(y, p, counts=times)
        assert counted == cls().update(np.repeat(y, times), np.repeat(p, times))
    texts = np.array(["to be", "or"])
    assert MeanWords().update(texts, counts=[3, 1]).compute() == 1.75


def test_a_function_of_means_has_limits_by_the_delta_method():
    for weight in (None, W):
        own = CostRatio().update(np.abs(Y - P), Y, sample_weight=weight)
        wape = sm.WAPE().update(Y, P, sample_weight=weight)
        assert own.compute() == pytest.approx(wape.compute(), rel=1e-15)
        assert [*own.confidence()] == pytest.approx([*wape.confidence()], rel=1e-9)
        mean = sm.Mean().update(np.log(Y), sample_weight=weight)
        grown = GeometricMean().update(Y, sample_weight=weight)
        assert grown.compute() == float(np.exp(mean.compute()))
        half = np.ptp([*mean.confidence()]) / 2 * grown.compute()
        assert np.ptp([*grown.confidence()]) / 2 == pytest.approx(half, rel=1e-8)


def test_the_delta_method_covers():
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        cost, size = rng.exponential(size=(2, 80)) + 0.5
        low, high = CostRatio().update(cost + size, size).confidence(0.9)
        held += low <= 2.0 <= high
    assert 165 <= held <= 193


def test_a_query_has_the_mean_gain_of_tied_results():
    rows = {
        "query": RNG.integers(0, 9, N),
        "relevance": RNG.integers(-1, 4, N),
        "score": RNG.integers(0, 9, N),
    }
    for k in (None, 5):
        values = []
        for query in range(9):
            mine = rows["query"] == query
            gain, score = np.maximum(rows["relevance"][mine], 0), rows["score"][mine]
            order = np.argsort(-score, kind="stable")
            mean = np.array([gain[score == each].mean() for each in score[order]])
            values.append((mean / np.sqrt(np.arange(1, mean.size + 1)))[:k].sum())
        metric = Discounted(k=k).update(**rows)
        assert [*metric.per_query().values()] == pytest.approx(values, rel=1e-14)
        assert metric.compute() == pytest.approx(np.mean(values), rel=1e-14)
        low, high = metric.confidence()
        assert low < metric.compute() < high


def test_a_sample_is_exact_up_to_its_limit():
    y, p = Y / Y.max(), P / P.max()
    metric = MedianGap().update(y, p).update(y[:9], p[:9])
    gaps = np.abs(y - p)
    assert metric.compute() == np.median(np.append(gaps, gaps[:9]))
    assert metric.exact
    few = MedianGap(max_rows=100).update(y, p)
    with pytest.warns(sm.EstimateWarning, match="max_rows=100"):
        assert few.compute() == pytest.approx(np.median(gaps), rel=0.5)
    assert few.bounds() == (0.0, 2.0)
    with pytest.raises(TypeError, match="sample_weight"):
        few.update(y, p, sample_weight=y)


def test_own_metrics_have_slices_sets_and_windows():
    suite = sm.MetricSet(
        {"ratio": MeanLogRatio(), "cost": CostRatio()},
        columns={"cost": "y_pred", "size": "y_true"},
    )
    key = RNG.integers(0, 5, N)
    table = {"y_true": Y, "y_pred": P, "key": key}
    slices = sm.Slices(suite, by="key").update(table)
    for each in range(5):
        mine = key == each
        alone = suite.copy().reset().update(y_true=Y[mine], y_pred=P[mine])
        assert slices[{"key": each}].compute() == alone.compute()
    live = sm.Live(suite, tiers=[("1min", "1h")])
    times = np.datetime64("2026-01-01T00:00") + np.arange(N).astype("timedelta64[s]")
    live.predict(id=np.arange(N), time=times, y_pred=P)
    live.label(id=np.arange(N), time=times, y_true=Y)
    assert live.window("10min").compute() == suite.copy().reset().update(table).compute()


def test_a_formula_of_numbers_alone_is_read_group_by_group():
    class Rooted(GeometricMean):
        def of_mean(self, mean):
            return float(mean) if mean > 0 else 0.0

    suite = sm.MetricSet({"root": Rooted()})
    slices = sm.Slices(suite, by="key").update({"values": Y, "key": np.arange(N) % 3})
    assert slices.compute().to_dict()["root"][0] == Rooted().update(Y[::3]).compute()


def test_objects_are_prepared_once():
    suite = sm.MetricSet({"mean": MeanWords(), "long": LongTexts(), "right": sm.Accuracy()})
    rows = {"y_true": [0, 1], "y_pred": [0, 0], "text": [Message("to be"), Message("or not to be")]}
    for form in (rows, {**rows, "text": np.array(rows["text"], object)}):
        own_metrics.CALLS.clear()
        suite.reset().update(form)
        assert own_metrics.CALLS == [2]
        assert suite.compute() == {"mean": 3.0, "long": 0.5, "right": 0.5}
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    texts = {**rows, "text": ["to be", "or not to be"]}
    for table in (pandas.DataFrame(texts), arrow.table(texts), pandas.DataFrame(rows)):
        assert suite.reset().update(table).compute()["mean"] == 3.0
    many = [*rows["text"]] * 40_000
    own_metrics.CALLS.clear()
    assert MeanWords().update(many).compute() == 3.0
    assert sum(own_metrics.CALLS) == len(many)


def test_prepared_objects_have_slices_and_units():
    table = {"text": [Message(text) for text in TEXTS], "key": ["a", "b"] * 16}
    slices = sm.Slices(sm.MetricSet({"mean": MeanWords()}), by="key").update(table)
    assert [slices[{"key": key}].compute() for key in ("a", "b")] == [{"mean": 2.5}, {"mean": 3.5}]
    suite = sm.MetricSet({"mean": MeanWords()}, unit="key").update(table)
    assert suite.compute() == {"mean": 3.0}
    live = sm.Live(sm.MetricSet({"mean": MeanWords()}), tiers=[("1min", "1h")])
    times = np.datetime64("2026-01-01T00:00") + np.arange(32).astype("timedelta64[s]")
    live.observe(time=times, text=TEXTS)
    assert live.window("1h", end=times[-1]).compute() == {"mean": 3.0}


def prepared(of: Any, number: Any) -> RowMean:
    def made(self, item):
        return [number(each) for each in item]

    made.__annotations__ = {"item": of}
    return type("Own", (RowMean,), {"made": prepare(made), "row": lambda self, number: number})()


def watched(metric: Metric, items: list[Any]) -> float:
    live = sm.Live(metric, tiers=[("1min", "1h")])
    times = np.datetime64("2026-01-01T00:00") + np.arange(len(items)).astype("timedelta64[s]")
    live.observe(time=times, item=items)
    for time, item in zip(times, items, strict=True):
        live.observe(time=time, item=item)
    return live.window("1h", end=times[-1]).compute()


@pytest.mark.parametrize(
    ("of", "number", "items", "value"),
    [
        (list[str], len, ["a", "bcd"], 2.0),
        (list[str], lambda text: json.loads(text)["n"], ['{"n": 1}', '{"n": 3}'], 2.0),
        (list[int], lambda number: number + 1, [1, 2], 2.5),
        (list[float], lambda number: number + 1, [0.5, 2], 2.25),
        (list[bool], float, [True, False], 0.5),
    ],
)
def test_a_service_prepares_what_events_hold(of, number, items, value):
    assert watched(prepared(of, number), items) == value


def test_a_service_says_which_objects_events_cannot_hold():
    def length(message):
        return len(message.text)

    with pytest.raises(ValueError, match=r"Own.made takes item as a Message, and .*: list\[str\]"):
        watched(prepared(list[Message], length), [Message("a")])
    live = sm.Live(prepared(list[Any], length), tiers=[("1min", "1h")])
    now = np.datetime64("2026-01-01T00:00")
    with pytest.raises(sm.InvalidBatchError, match="item has a Message in row 0, and events hold"):
        live.observe(time=now, item=Message("a"))
    with pytest.raises(sm.InvalidBatchError, match="Own.made raised AttributeError: 'str' object"):
        live.observe(time=now, item="a")
    assert live.n_rows == 0
    with pytest.raises(sm.InvalidBatchError, match="Own.made raised AttributeError") as error:
        prepared(list[Any], length).update(["a"])
    assert isinstance(error.value.__cause__, AttributeError)


@pytest.mark.parametrize("dtype", ["str", "string", "object"])
def test_nulls_of_a_frame_are_prepared_as_none(dtype):
    pandas = pytest.importorskip("pandas")
    metric = prepared(list, lambda text: 5 if text is None else len(text))
    frame = pandas.DataFrame({"item": pandas.Series(["a", None, "abc"], dtype=dtype)})
    assert metric.update(frame["item"]).compute() == 3.0
    assert sm.MetricSet({"m": metric.copy().reset()}).update(frame).compute() == {"m": 3.0}


def test_what_a_preparation_returns_is_checked():
    class Lost(RowMean):
        @prepare
        def halved(self, text):
            return text[::2]

        def row(self, length: Floats):
            return length

    class Other(Lost):
        @prepare
        def halved(self, text):
            return {"size": text}

    with pytest.raises(sm.InvalidBatchError, match=r"Lost.halved made 1 rows of 2"):
        Lost().update([1.0, 2.0])
    with pytest.raises(TypeError, match=r"Other.halved returned a dictionary of size; .* length"):
        Other().update([1.0, 2.0])

    class Missing(Lost):
        @prepare
        def halved(self, text):
            return [float("nan") for _ in text]

    with pytest.raises(sm.InvalidBatchError, match="length is missing"):
        Missing().update([1.0, 2.0])
    assert Missing(nan_policy="omit").update([1.0, 2.0]).n_omitted == 2


def test_rows_that_a_formula_cannot_take_are_refused_with_the_batch():
    metric = MeanLogRatio().update(Y, P)
    before = metric.to_bytes()
    ends = [[1.0, 1e-300], [1.0, 1e300]]
    with pytest.raises(sm.InvalidBatchError, match=r"not finite in 1 row, first in row 1 \(inf\)"):
        metric.update(*ends)
    with pytest.raises(sm.InvalidBatchError, match="y_pred is not above 0"):
        metric.update([1.0], [0.0])
    with pytest.raises(TypeError, match="y_pred"):
        metric.update([1.0])
    with pytest.raises(TypeError, match="other"):
        metric.update([1.0], [1.0], other=[1.0])
    assert metric.to_bytes() == before

    class TooFar(RowMean):
        value_range = (0.0, 1.0)

        def row(self, values: Floats):
            return values

    with pytest.raises(sm.InvalidBatchError, match=r"outside of its value_range \(0, 1\)"):
        TooFar().update([0.5, 2.0])

    class Total(RowMean):
        def row(self, values: Floats):
            return values.sum()

    with pytest.raises(TypeError, match="return one number for each row"):
        Total().update([0.5, 2.0])

    class Writes(RowMean):
        def row(self, values: Floats):
            values *= 2
            return values

    with pytest.raises(ValueError, match="read-only"):
        Writes().update([0.5, 2.0])


def refused(bases: tuple[type, ...], **body: Any) -> str:
    with pytest.raises(TypeError, match="Own") as error:
        type("Own", bases, body)
    return str(error.value)


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        (dict, "tuple of pairs"),
        ("dict[str, float]", "tuple of pairs"),
        (list[float], "tuple[float, ...]"),
        (Annotated[set, Between(0, 1)], "sorted tuple"),
        (Callable[[float], float], "a name"),
        (np.ndarray, "a tuple"),
    ],
)
def test_types_that_no_parameter_can_have_are_refused(annotation, advice):
    for base in (Metric, Statistic):
        message = refused((base,), __annotations__={"table": annotation})
        assert message.startswith("Own.table cannot be of type")
        assert advice in message


def test_reserved_names_are_refused():
    for name in ("merge", "value_range", "n_rows"):
        assert f"{name!r} is reserved" in refused((Metric,), __annotations__={name: float})
    assert "would hide Statistic.arrays" in refused((Statistic,), arrays=Sum())
    for base in (Metric, Statistic):
        assert "defines __init__" in refused((base,), __init__=lambda self: None)


def test_columns_that_a_formula_cannot_have_are_refused():
    class Own:
        def spread(self, *columns):
            return columns[0]

        def default(self, values=1.0):
            return values

        def text(self, values: str):
            return values

        def gap(self, values: Annotated[Floats, Outside(0, 1)]):
            return values

    assert "name each column" in refused((RowMean,), row=Own.spread)
    assert "without a default" in refused((RowMean,), row=Own.default)
    assert "@prepare" in refused((RowMean,), row=Own.text)
    assert "Between(low, high)" in refused((RowMean,), row=Own.gap)

    class Open(RowMean):
        def row(self, values: Positives, other):
            return values

    assert Open().inputs == ("values", "other")


class Peaks(Statistic):
    """The sum of values, and how many are above 1."""

    total = Sum()

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def update(self, values, *, weight):
        self.total += ExactSum.of(values, weight)


class LaterPeaks(Peaks):
    above = Sum()
    state_defaults = {"above": None}  # noqa: RUF012 - as authors write it

    def update(self, values, *, weight):
        super().update(values, weight=weight)
        self.above += ExactSum.of((values > 1).astype(np.float64), weight)


class Grown(Metric[float]):
    """The sum of values."""

    def statistics(self):
        return (Peaks(),)

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values, "sample_weight": sample_weight})

    def readout(self, sums):
        return sums.total.to_float()


def renewed(**body: Any) -> type:
    """Return the next version of the metric, of the same name."""
    return type("Grown", (Metric,), {**vars(Grown), "_parameters": {}, **body})


def test_a_state_of_before_a_parameter_or_a_field_is_read():
    old = Grown().update([1.0, 2.0, 4.0])
    metric, members = old.to_bytes(), sm.MetricSet({"one": Grown(), "mean": sm.Mean()})
    members.update(values=[1.0, 2.0, 4.0])
    both = members.to_bytes()
    try:
        newer = renewed(
            __annotations__={"scale": float},
            state_defaults={"scale": 2.0},
            statistics=lambda self: (LaterPeaks(),),
            readout=lambda self, sums: (
                self.scale * sums.total.to_float() + 100 * sums.above.to_float()
            ),
        )
        read = sm.from_bytes(metric)
        assert type(read) is newer
        assert read.scale == 2.0
        assert read.compute() == 14.0
        assert sm.from_bytes(both).compute()["one"] == 14.0
        read.update([2.0])
        again = sm.from_bytes(read.to_bytes())
        assert again == read
        assert again.compute() == 118.0
        newest = newer(scale=2.0).to_bytes()
        assert read.merge(newer(scale=2.0).update([8.0])).compute() == 234.0
        renewed(__annotations__={"scale": float}, scale=1.0)
        advice = r"lacks the parameter 'scale' of Grown; .* state_defaults = {'scale': ...} to Gro"
        for blob in (metric, both):
            with pytest.raises(sm.StateFormatError, match=advice):
                sm.from_bytes(blob)
        renewed(statistics=lambda self: (LaterPeaks(),), state_defaults={})
        LaterPeaks.state_defaults = {}
        advice = r"the field 'above': .* add state_defaults = {'above': None} to LaterPeaks"
        for blob in (metric, both):
            with pytest.raises(sm.StateFormatError, match=advice):
                sm.from_bytes(blob)
        renewed()
        with pytest.raises(sm.StateFormatError, match="Grown has no parameter 'scale', as the sta"):
            sm.from_bytes(newest)
    finally:
        LaterPeaks.state_defaults = {"above": None}
        register(Grown)


def test_grouped_states_of_before_a_field_are_read():
    members = sm.MetricSet({"one": Grown(), "mean": sm.Mean()})
    rows = {"values": [1.0, 2.0, 4.0], "u": [0, 0, 1]}
    units = sm.MetricSet(dict(members), unit="u").update(rows).to_bytes()
    slices = sm.Slices(members, by="u").update(rows).to_bytes()
    try:
        renewed(
            statistics=lambda self: (LaterPeaks(),),
            readout=lambda self, sums: sums.total.to_float() + 100 * sums.above.to_float(),
        )
        for blob in (units, slices):
            read = sm.from_bytes(blob)
            again = sm.from_bytes(read.to_bytes())
            assert again == read
            again.update(values=[8.0], u=[1])
            one = again.compute()["one"] if blob is units else again[{"u": 1}].compute()["one"]
            assert one == (115.0 if blob is units else 112.0)
        LaterPeaks.state_defaults = {}
        advice = r"the field 'above': .* add state_defaults = {'above': None} to LaterPeaks"
        for blob in (units, slices):
            with pytest.raises(sm.StateFormatError, match=advice):
                sm.from_bytes(blob)
    finally:
        LaterPeaks.state_defaults = {"above": None}
        register(Grown)


class Visits(Statistic):
    """Visits of pages: how many each has, the longest ones, and how many users there were."""

    pages = KeyCounts()
    longest = Largest(3)
    users = HashSketch(16)

    @property
    def schema(self):
        names = ("page", "user")
        return Schema((*(Labels(name, fact=name) for name in names), Numbers("seconds")))

    def update(self, page, user, seconds, *, weight):
        cls = type(self)
        self.pages = cls.pages.added(self.pages, page, weight)
        self.longest = cls.longest.added(self.longest, user, seconds)
        self.users = cls.users.plus(self.users, label_hashes(user, 0))


class Users(Metric[float]):
    """The number of users by page and second, all of them at once.

    Example:
        >>> Users().update([1, 1], [1, 2], [0.5, 0.5]).compute()
        2.0
    """

    def statistics(self):
        return (Visits(),)

    def update(self, page, user, seconds, *, sample_weight=None):
        return self.feed(
            {"page": page, "user": user, "seconds": seconds, "sample_weight": sample_weight}
        )

    def readout(self, visits):
        return Visits.users.distinct(visits.users) if visits.pages.labels.size else float("nan")


@pytest.mark.parametrize("text", some([True, False]))
def test_ready_fields_are_monoids(text):
    page, user = RNG.integers(0, 5, 60), RNG.integers(0, 12, 60)
    rows = {
        "page": page.astype(str) if text else page,
        "user": user.astype(str) if text else user,
        "seconds": RNG.integers(-3, 9, 60) / 2,
    }
    check_metric(Users, rows)
    assert Users().update(**rows).compute() == np.unique(user).size


def test_ready_fields_are_what_they_say():
    visits = Visits()
    keys, ids = np.array(["b", "a", "b"]), np.array([5, 7, 7])
    pages = Visits.pages.added(visits.pages, keys)
    pages = Visits.pages.added(pages, keys[:1], np.array([0.5]))
    assert Visits.pages.counts(pages) == {"a": 1.0, "b": 2.5}
    longest = Visits.longest.added(visits.longest, ids, np.array([1.0, 2.0, 3.0]))
    longest = Visits.longest.added(longest, np.arange(4), np.array([3.0, 0.0, -1.0, 2.0]))
    assert longest.ids.tolist() == [0, 7, 3]
    assert longest.values.tolist() == [3.0, 3.0, 2.0]
    with pytest.raises(sm.IncompatibleMetricsError, match="text cannot join integers"):
        Visits.longest.added(longest, keys, np.ones(3))
    hashes = label_hashes(np.arange(10_000), 0)
    users = HashSketch(400)
    assert users.distinct(users.plus(users.empty(visits), hashes)) == pytest.approx(1e4, rel=0.2)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("longest/values", np.array([1.0, 2.0])),
        ("longest/values", np.array([np.nan, 1.0])),
        ("longest/ids", np.array([7, 7])),
        ("longest/ids", np.array([7, 8, 9])),
        ("users", np.array([9, 3], np.uint64)),
        ("users", np.arange(17, dtype=np.uint64)),
        ("pages/labels", np.array([3, 1])),
    ],
)
def test_forged_arrays_of_ready_fields_are_refused_by_the_name_of_the_field(name, array):
    statistic = Visits()
    page, user = (Column(np.array(values)) for values in ([1, 3], [7, 8]))
    statistic.update(page, user, np.array([2.0, 1.0]), weight=None)
    arrays = statistic.arrays()
    Visits().restored(arrays).check()
    field = name.partition("/")[0]
    with pytest.raises(sm.StateFormatError, match=f"the field '{field}'"):
        Visits().restored({**arrays, name: array})


def test_a_sample_is_not_repeated_beyond_memory():
    metric = MedianGap().update([0.25, 0.5, 1.0], [0.5, 0.5, 0.5])
    for _ in range(40):
        metric = sm.merge([metric, metric])
    assert metric.n_rows == 3 << 40
    with pytest.raises(sm.StreamMetricsError, match="seen 3,298,534,883,328 times"):
        metric.compute()


def test_a_module_that_exits_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "module_that_exits.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SpecError, match="cannot import module_that_exits: SystemExit: 3"):
        import_own("module_that_exits")
