"""What is forged: one of every kind that has bytes, the rows that it takes, and its readings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from oracles.table import ORACLES

import streammetrics as sm

if TYPE_CHECKING:
    from collections.abc import Callable

TIERS = (("1min", "10min"), ("5min", "1h"), ("1d", "3d", "Europe/Berlin"))


class Seedling:
    """Something that has bytes, rows that it takes, and its bytes with and without them."""

    def __init__(self, empty: Any, rows: dict[str, Any], filled: Any) -> None:
        self.empty, self.rows, self.filled = empty, rows, filled
        self.blobs = [empty.to_bytes(), filled.to_bytes(), filled.to_bytes()]

    def calls(self, back: Any) -> list[Callable[[], Any]]:
        """Return all that can be done with what came back."""
        calls = [
            lambda: back.n_rows, lambda: back.nbytes, lambda: repr(back),
            lambda: back == back.copy(), lambda: back.copy().merge(back.copy()),
            lambda: back.copy().merge(self.filled), lambda: self.filled.copy().merge(back),
            lambda: sm.merge([back, back, self.empty]).to_bytes(),
        ]  # fmt: skip
        if isinstance(back, sm.Live):
            return [*calls, *_of_live(back)]
        calls += [back.compute, lambda: sm.merge([back, back, self.empty]).compute()]
        if isinstance(back, sm.Ledger):
            return [
                *calls, lambda: back.attempts, lambda: back.copy().seal(back.ids),
                lambda: back.copy().add("x", sm.Mean()),
            ]  # fmt: skip
        calls += [back.bounds, lambda: back.exact, lambda: _confident(back)]
        if self.rows:
            calls.append(lambda: _fed(back.copy(), self.rows).compute())
            calls.append(lambda: _fed(back.copy().reset(), self.rows).compute())
        return calls


def drawn(grown: list[Seedling], rng: np.random.Generator) -> Seedling:
    """Return one of them: mostly a metric, of which there are many, else what holds some."""
    metrics = [each for each in grown if isinstance(each.empty, sm.Metric)]
    held = [each for each in grown if not isinstance(each.empty, sm.Metric)]
    some = metrics if rng.random() < 0.7 else held
    return some[int(rng.integers(len(some)))]


def _fed(back: Any, rows: Any) -> Any:
    """Feed rows, unless parameters that were changed leave no argument for one of the columns."""
    try:
        return back.update(**rows)
    except TypeError as error:
        if "() takes no " not in str(error):
            raise
        return back


def _confident(back: Any) -> None:
    """Read how sure the value is, where something says so of its metric."""
    try:
        back.confidence()
    except TypeError as error:
        if "confidence" not in str(error):
            raise


def seedlings() -> list[Seedling]:
    """Return one of every oracle, some sets by every kind of key, services, and ledgers."""
    metrics = [(each.metric, each.rows(np.random.default_rng(0), 24)) for each in ORACLES]
    fed = [*metrics, *_sets()]
    made = [Seedling(empty, rows, empty.copy().update(**rows)) for empty, rows in fed]
    return [*made, *_services(), *_ledgers()]


def _sets() -> list[tuple[Any, dict[str, Any]]]:
    rng = np.random.default_rng(0)
    scores = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.BrierScore()}
    numbers = {"mae": sm.MAE(), "r2": sm.R2(), "worst": sm.MaxError(), "tau": sm.KendallTau()}
    labels = np.arange(24) % 2
    rows = {"y_true": labels, "y_score": np.arange(24) / 30}
    by = {
        "c": np.array(["a", "b", "c"])[np.arange(24) % 3], "n": np.arange(24) % 5,
        "x": rng.normal(size=24), "u": np.arange(24) // 2,
    }  # fmt: skip
    some = {**rows, **{name: by[name] for name in "cnx"}}
    kinds: Any = [[], "c", ["c", "n"], sm.Bins("x", [-1.0, 0.0, 1.0])]
    pair = {"y_true": labels, "a": rng.random(24), "b": rng.random(24)}
    three = {name: rng.normal(size=24) for name in ("y_true", "a", "b")}
    mean = {"y_true": three["y_true"], "y_pred": three["a"], "c": by["c"], "u": by["u"]}
    judged = {**rows, "a": labels[::-1], "p": rng.uniform(0.1, 1.0, 24)}
    one = sm.MetricSet(scores)
    compared = {name: numbers[name] for name in ("mae", "r2")}
    return [
        (one, rows),
        (sm.Comparison(scores, {"a": "a", "b": "b"}), pair),
        (sm.Comparison(compared, {"a": "a", "b": "b"}), three),
        (sm.Estimated(scores, proxy="a", propensity="p"), judged),
        (sm.Slices(one, by=kinds), some),
        (sm.Slices(one, by=kinds, max_slices=2, overflow="other"), some),
        (sm.Slices(sm.MetricSet(numbers), by=["c"], unit="u"), mean),
        (sm.MetricSet(scores, unit="u"), {**rows, "u": by["u"]}),
    ]


def _services() -> list[Seedling]:
    """Return services that have seen rows, that wait for labels, and that have keys."""
    start, n = 1_700_000_040, np.arange(60)
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()})
    plain = sm.Live(suite, tiers=TIERS, keep_rows=7)
    seen = plain.copy().observe(time=start + 11 * n, y_true=n % 2, y_score=n / 64)
    late = sm.Live(suite, tiers=TIERS, label_ttl="5min", label_lateness="5min", keep_rows=5)
    some, ids = n[::3], [f"r{each}" for each in n]
    waits = late.copy().predict(id=ids, time=start + 11 * n, y_score=n / 64)
    waits.label(id=[ids[k] for k in some], time=start + 11 * some + 20, y_true=some % 2)
    waits.label(id=["none", "r3"], time=[start + 600] * 2, y_true=[1, 1], version=[2, 2])
    keyed = sm.Live(suite, tiers=TIERS, by=[[], "c"], max_slices=2, default_label=0)
    keys = np.array(["a", "b", "c"])[n % 3]
    sliced = keyed.copy().observe(time=start + n, y_true=n % 2, y_score=n / 64, c=keys)
    sliced.predict(id=n, time=start + 30 * n, y_score=n / 64, c=keys)
    return [Seedling(plain, {}, seen), Seedling(late, {}, waits), Seedling(keyed, {}, sliced)]


def _of_live(back: Any) -> list[Callable[[], Any]]:
    """Return all that can be read of a service, over windows that its tiers have, or others."""
    rules = [sm.Below("auc", 0.8, window="5min"), sm.Silence("10min")]
    new = {"time": 1_700_000_500, "y_score": 0.5}
    calls = [
        lambda: back.coverage("5min"), lambda: back.possible("5min"),
        lambda: back.decayed("5min"), lambda: back.last(3).compute(),
        lambda: back.series("5min", every="5min"), lambda: back.window("5min").compute(),
        lambda: back.window("1h").bounds(), lambda: back.window("5min", by="c").compute(),
        lambda: back.alerts(rules), lambda: back.copy().observe(**new, y_true=1).to_bytes(),
        lambda: back.copy().predict(**new, id="r1").label(id="r1", time=1_700_000_501, y_true=1),
        lambda: back.copy().reset().to_bytes(),
    ]  # fmt: skip
    return [lambda call=call: _of_no_window(call) for call in calls]


def _of_no_window(call: Callable[[], Any]) -> None:
    """Call what refuses a window, slices or rows that the parameters of a service do not have."""
    try:
        call()
    except ValueError as error:
        if isinstance(error, sm.StreamMetricsError):
            raise
        words = ("tier", "keep_rows", "slice", "rule", "window", "no metric")
        if not any(word in str(error) for word in words):
            raise


def _ledgers() -> list[Seedling]:
    made = []
    for count in (4, 260):
        ledger = sm.Ledger()
        for index in range(count):
            name = index if index % 2 else f"s{index}"
            ledger.add(name, sm.Mean().update([index / 3]), index % 3)
        ledger.seal(ledger.ids[:2])
        made.append(Seedling(sm.Ledger(sm.Mean()), {}, ledger))
    return made
