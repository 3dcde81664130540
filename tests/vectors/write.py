"""Write the test vectors of docs/format.md: python tests/vectors/write.py.

A vector is a small state, NAME.state. `vectors.json` has for each its value, the statistics that
its arrays belong to, and the merges that readers can check. tests/test_vectors.py compares them
with what this script would write.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from oracles.table import ORACLES  # noqa: E402 - found through the line above
from processors import per_platform  # noqa: E402

import streammetrics as sm  # noqa: E402

ROWS = 6  # of a vector of the oracle table
MORE = {"MatchTable": 40}  # of which fewer rows have no value
PER_PLATFORM = {*per_platform(), "Comparison"}  # whose p-values are


def main() -> None:
    """Write all vectors, and delete those that are no longer made."""
    states, told = vectors()
    for path in HERE.glob("*.state"):
        if path.stem not in states:
            path.unlink()
    for name, blob in states.items():
        (HERE / f"{name}.state").write_bytes(blob)
    (HERE / "vectors.json").write_text(told)


def vectors() -> tuple[dict[str, bytes], str]:
    """Return the states by name, and the text of `vectors.json`."""
    made = {**kinds(), **containers()}
    merges = {}
    for whole, metric, parts in split():
        names = [f"{whole}-{number}" for number in range(1, 1 + len(parts))]
        filled = [metric.copy().update(**rows) for rows in parts]
        made |= dict(zip(names, filled, strict=True))
        made[whole] = sm.merge(filled)
        merges[whole] = names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        values = {
            name: {"value": shared(what), "statistics": statistics(what)}
            for name, what in sorted(made.items())
        }
    text = json.dumps({"vectors": values, "merges": merges}, indent=1, allow_nan=False)
    return {name: what.to_bytes() for name, what in made.items()}, f"{text}\n"


def statistics(what: Any) -> list[str]:
    """Return the names of the statistics of a metric or a set, in the order of its arrays."""
    if isinstance(what, sm.Ledger | sm.Live):
        return []
    return [type(statistic).__name__ for statistic in what._plan.start.statistics]


def kinds() -> dict[str, Any]:
    """Return a metric for each statistic of the oracle table, if possible of it alone and exact."""
    found: dict[str, Any] = {}
    met: set[str] = set()
    for oracle in sorted(ORACLES, key=lambda o: (is_rounded(o.metric), len(statistics(o.metric)))):
        more = [name for name in statistics(oracle.metric) if name not in met]
        if more:
            rows = oracle.rows(np.random.default_rng(0), MORE.get(more[0], ROWS))
            found[more[0]] = oracle.metric.copy().update(**rows)
            met.update(more)
    return found


def is_rounded(what: Any) -> bool:
    """Whether the last bits of a value depend on the platform, so that it is rounded."""
    return type(what).__name__ in PER_PLATFORM


def containers() -> dict[str, Any]:
    """Return sets, slices, a comparison, estimates, a ledger and a live state."""
    rows = {"y_true": [0, 1, 1, 0, 1], "y_score": [0.25, 0.5, 0.75, 0.5, 0.125]}
    metrics = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()}
    user, city = [1, 2, 1, 3, 3], ["Rome", "Oslo", "Oslo", "Rome", "Oslo"]
    models = sm.Comparison({**metrics, "brier": sm.BrierScore()}, {"a": "a", "b": "b"})
    estimated = sm.Estimated({**metrics, "brier": sm.BrierScore()}, proxy="judge", propensity="p")
    ledger = sm.Ledger()
    for shard, values in ((1, [1.0, 2.0]), ("b", [4.0]), ("c", [8.0, 0.5])):
        ledger.add(shard, sm.Mean().update(values))
    return {
        "MetricSet": sm.MetricSet(metrics).update(rows),
        "UnitSet": sm.MetricSet(metrics, unit="user").update({**rows, "user": user}),
        "Slices": sm.Slices(metrics, by=["city"]).update({**rows, "city": city}),
        "Comparison": models.update(y_true=rows["y_true"], a=rows["y_score"], b=[0.5] * 5),
        "Estimated": estimated.update(**rows, judge=[0, 1, 0, 0, 1], p=[0.5, 0.25, 1.0, 0.5, 0.5]),
        "Ledger": ledger.seal(["c"]),
        "Live": live(),
    }


def live() -> sm.Live:
    """Return a live state with panes, rows that wait, left or are kept, and a lone label."""
    metrics = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "brier": sm.BrierScore()}
    start, wait = 1_700_000_000, {"label_ttl": "10min", "label_lateness": "10min"}
    made = sm.Live(sm.MetricSet(metrics), tiers=(("1min", "2h"), ("1h", "2d")), keep_rows=3, **wait)
    made.predict(id="left", time=start, y_score=0.25)
    made.observe(time=start + 60, y_true=1, y_score=0.75)
    made.observe(time=start + 7000, y_true=0, y_score=0.5)
    made.observe(id=7, time=start + 7000, y_true=1, y_score=0.125)
    made.predict(id="a", time=start + 7000, y_score=0.875)
    made.label(id="a", time=start + 7001, y_true=1)
    made.predict(id="an id of more than 15 bytes", time=start + 7002, y_score=0.5)
    return made.label(id="of no prediction", time=start + 7003, y_true=0)


def shared(what: Any) -> Any:
    """Return the value as JSON has it, with those digits that are the same on every platform."""
    found = plain(value(what))
    if not is_rounded(what):
        return found
    return json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.12g}"))


def value(what: Any) -> Any:
    """Return the value of a state, of a `Live` that of its longest tier."""
    return (what.window("2d") if isinstance(what, sm.Live) else what).compute()


def split() -> list[tuple[str, Any, list[dict[str, Any]]]]:
    """Return metrics that docs/format.md tells how to merge, each with rows of several parts."""
    labels = {"y_true": ["a", "b", "b", "a"], "y_pred": ["b", "b", "a", "a"]}
    more = {"y_true": ["b", "c"], "y_pred": ["b", "b"]}
    scores = {"y_true": [0, 1, 1, 0, 1], "y_score": [0.25, 0.5, 0.75, 0.5, 0.125]}
    others = {"y_true": [1, 0, 0], "y_score": [0.75, 0.875, 0.0]}
    weights = {"sample_weight": [0.5, 2.0, 1.0]}
    classes = {
        "y_true": [0, 1, 2],
        "y_score": [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.75, 0.0, 0.25]],
    }
    errors = {"y_true": [1.5, -2.0, 1e300], "y_pred": [1.0, 0.1, 1e300]}
    far = {"y_true": [1e-200, 3.0], "y_pred": [2e-200, 0.7]}
    values, rest = [1e16, 1.0, 0.1, 0.1], [-1e16, 3.5, 0.1]
    plain, past = {"values": values}, {"values": rest, **weights}
    return [
        ("f1", sm.F1(average="macro"), [labels, more]),
        ("f1-binary", sm.F1(), [{"y_true": [0, 1, 1], "y_pred": [1, 1, 0]}] * 2),
        ("f1-threshold", sm.F1(threshold=0.5), [scores, {**others, **weights}]),
        ("roc-auc", sm.ROCAUC(), [scores, others]),
        ("roc-auc-weighted", sm.ROCAUC(), [scores, {**others, **weights}]),
        ("roc-auc-far", sm.ROCAUC(), [scores, {**others, "sample_weight": [1e150, 1.0, 0.5]}]),
        ("roc-auc-micro", sm.ROCAUC(average="micro"), [classes, {**classes, **weights}]),
        ("roc-auc-long", sm.ROCAUC(), [long(0), long(1)]),
        ("roc-auc-past", sm.ROCAUC(max_bins=4), [scores, others, spread(9)]),
        ("mse", sm.MSE(), [errors, far]),
        ("mse-wide", sm.MSE(multioutput="raw_values"), [wide(1), wide(2)]),
        ("mean", sm.Mean(), [plain, past]),
        ("mean-empty", sm.Mean(spread=False), [{"values": []}, {"values": [2.0, 3.0]}]),
        ("quantile", sm.Quantile(q=0.3), [plain, {"values": rest}]),
        ("quantile-weighted", sm.Quantile(q=0.3), [plain, past]),
        ("quantile-past", sm.Quantile(q=0.5, max_bins=4), [plain, {"values": rest}]),
    ]


def long(first: int) -> dict[str, Any]:
    """Return scores of more bits than float64 has."""
    return {"y_true": [0, 1, 1], "y_score": [2**60 + first, 2**60 + 1, 7]}


def spread(n: int) -> dict[str, Any]:
    """Return scores of which there are too many for four cells."""
    return {"y_true": [k % 2 for k in range(n)], "y_score": [1 - 2.0**-k for k in range(n)]}


def wide(scale: int) -> dict[str, Any]:
    """Return targets of two outputs."""
    return {"y_true": [[1.0, 2.0], [3.0, 4.5]], "y_pred": [[0.5 * scale, 2.0], [3.25, 4.0]]}


def plain(value: Any) -> Any:
    """Return a value as JSON has it; numbers that are not finite as text."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


if __name__ == "__main__":
    main()
