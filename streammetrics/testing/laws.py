"""The law kit: the laws that every metric satisfies, checked on rows of your choice.

    >>> import numpy as np
    >>> import streammetrics as sm
    >>> from streammetrics.testing import check_laws
    >>> rng = np.random.default_rng(0)
    >>> rows = {"y_true": rng.integers(0, 2, 50), "y_pred": rng.integers(0, 2, 50)}
    >>> check_laws(sm.F1(), rows)

Use rows that are hard for the metric: ties, repeated rows, huge and tiny numbers, rows that cancel.
If a law does not hold, `AssertionError` names it.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.errors import (
    EstimateWarning,
    InvalidBatchError,
    StreamMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.mergeable import merge
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval
from streammetrics.core.stateful import from_bytes
from streammetrics.testing.groups import broken_groups
from streammetrics.testing.states import broken_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


__all__ = ["check_laws", "laws", "same_value", "split_rows"]

M = TypeVar("M", Metric, MetricSet)
Rows = dict[str, Any]


# Ways to copy an object, which may have been fed some of its rows.
_COPIES: dict[str, Callable[[Any], Any]] = {
    "pickling": lambda metric: pickle.loads(pickle.dumps(metric)),
    "pickling the state, as workers do": lambda metric: metric._over(
        pickle.loads(pickle.dumps(metric._alone()))
    ),
    "copy.deepcopy": copy.deepcopy,
    "copy": lambda metric: metric.copy(),
}


def check_laws(metric: M, rows: Mapping[str, object], *, seed: int = 0, trials: int = 4) -> None:
    """Check that a metric satisfies all laws on the given rows.

    Args:
        metric: The metric or metric set; its rows, if any, are ignored.
        rows: Columns by input name, including ``sample_weight`` if weights are to be checked.
        seed: Seed of the random splits, orders and merge trees.
        trials: How many of each to try.

    Raises:
        AssertionError: A law does not hold; the message names it.
    """
    for check in laws(metric, rows, seed=seed, trials=trials):
        check()


def laws(
    metric: M, rows: Mapping[str, object], *, seed: int = 0, trials: int = 4
) -> Iterator[Callable[[], None]]:
    """Yield the checks of `check_laws`; each raises `AssertionError` on its own."""
    rng = np.random.default_rng(seed)
    empty = metric.copy().reset()
    whole = _fed(empty, [dict(rows)])
    expected = whole.to_bytes()
    yield partial(_check_splits, empty, expected, rows, rng, trials)
    yield partial(_check_monoid, empty, whole, expected, rows, rng)
    yield partial(_check_travels, empty, expected, rows)
    yield partial(_check_long_batches, empty, rows)
    yield partial(_check_readings, whole, expected)
    yield partial(_check_states, whole)
    yield partial(_check_groups, empty, rows, rng)
    yield partial(_check_independence, empty, whole, expected, rows)
    yield partial(_check_refusals, empty, whole, expected, rows)


def split_rows(rows: Mapping[str, object], rng: np.random.Generator) -> list[Rows]:
    """Return the rows as consecutive batches of random lengths, some possibly empty."""
    n = _length(rows)
    cuts = np.sort(rng.integers(0, n + 1, size=int(rng.integers(1, 6))))
    return [_taken(rows, np.arange(a, b)) for a, b in pairwise([0, *cuts.tolist(), n])]


def same_value(a: object, b: object) -> bool:
    """Whether two results of `compute` or `bounds` are identical bit for bit, nan included."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same_value(a[key], b[key]) for key in a)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    left, right = np.asarray(a), np.asarray(b)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return (
        left.tolist() == right.tolist()
        if left.dtype == object
        else left.tobytes() == right.tobytes()
    )


def _check_splits(
    empty: M, expected: bytes, rows: Mapping[str, object], rng: np.random.Generator, trials: int
) -> None:
    n = _length(rows)
    for _ in range(trials):
        order = rng.permutation(n)
        batches = split_rows(_taken(rows, order), rng)
        _same(_fed(empty, batches), expected, "rows in another order and other batches")
        shards = [_fed(empty, [batch]) for batch in batches]
        before = [shard.to_bytes() for shard in shards]
        _same(_tree(shards, rng), expected, "shards merged in a random tree")
        after = [shard.to_bytes() for shard in shards]
        _true(before == after, "merge leaves its arguments untouched")


def _check_monoid(
    empty: M, whole: M, expected: bytes, rows: Mapping[str, Any], rng: np.random.Generator
) -> None:
    _same(whole.copy().merge(empty), expected, "identity: merging an empty state changes nothing")
    _same(empty.copy().merge(whole), expected, "identity: an empty state merged with another is it")
    _same(merge([empty, whole, empty]), expected, "identity: sm.merge with empty states")
    nothing = empty.to_bytes()
    blank: Any = from_bytes(nothing)
    _same(blank, nothing, "round trip of an empty state")
    _same(blank.merge(whole), expected, "identity: an empty state read from bytes")
    a, b, c = (_fed(empty, [part]) for part in _thirds(rows))
    _same(merge([merge([a, b]), c]), expected, "associativity: (a + b) + c")
    _same(merge([a, merge([b, c])]), expected, "associativity: a + (b + c)")
    _same(merge([c, b, a]), expected, "commutativity: c + b + a")
    twice = merge([whole, whole])
    _same(_fed(whole, [dict(rows)]), twice.to_bytes(), "update is merge of the lifted batch")
    order = rng.permutation(_length(rows))
    _same(_fed(whole, [_taken(rows, order)]), twice.to_bytes(), "update after other rows")


def _check_travels(empty: M, expected: bytes, rows: Mapping[str, object]) -> None:
    """Check that after every operation an object processes rows as a new one does."""

    def read(metric: M) -> M:
        _computed(metric), metric.bounds(), metric.exact, metric.nbytes, repr(metric)
        return metric

    def refused(metric: M) -> M:
        _refused(lambda: metric.feed({}))
        return metric

    operations: dict[str, Callable[[M], Any]] = {
        "a round trip through bytes": lambda metric: from_bytes(metric.to_bytes()),
        **_COPIES,
        "merging empty states": lambda metric: metric.merge(empty, from_bytes(empty.to_bytes())),
        "sm.merge after an empty state": lambda metric: merge([empty, metric]),
        "reset": lambda metric: _fed(metric, [dict(rows)]).reset().merge(metric),
        "reading": read,
        "a refused batch": refused,
    }
    first, *rest = _thirds(rows)
    for begun, left in ((empty, [dict(rows)]), (_fed(empty, [first]), rest)):
        for name, operation in operations.items():
            moved = operation(begun.copy())
            for batch in left:
                moved.feed(batch, getattr(moved, "columns", None))
            _same(moved, expected, f"after {name} rows are taken as a fresh object takes them")


def _check_long_batches(empty: M, rows: Mapping[str, object]) -> None:
    """Check copies made after batches too long for the buffer, and longer than a slice.

    Columns of Python objects take a second per batch, so for them only the first length is tried.
    """
    begun = empty.copy()
    plain = all(np.asarray(column).dtype != object for column in rows.values())
    try:
        for n in (tuning.STAGED_ROWS + 1, tuning.BATCH_ROWS + 1)[: 1 + plain]:
            begun.feed(_repeated(rows, n), getattr(begun, "columns", None))
    except InvalidBatchError:  # rows that cannot be repeated, or too many rows
        return
    expected = _fed(begun, [dict(rows)]).to_bytes()
    for name, operation in _COPIES.items():
        moved = _fed(operation(begun), [dict(rows)])
        _same(moved, expected, f"after long batches and {name} rows are taken as without it")


def _check_readings(whole: M, expected: bytes) -> None:
    value, bounds = _computed(whole), whole.bounds()
    _same(whole, expected, "reading changes nothing")
    back: Any = from_bytes(expected)
    _true(type(back) is type(whole), "round trip: from_bytes builds the same class")
    _same(back, expected, "round trip: from_bytes, then to_bytes")
    _true(same_value(_computed(back), value), "round trip: the value is the same to the bit")
    _true(same_value(back.bounds(), bounds), "round trip: the bounds are the same to the bit")
    _true(pickle.loads(pickle.dumps(whole)) == whole, "round trip: pickle")
    _true(back == whole and back.n_rows == whole.n_rows, "equal states are equal")
    _true(whole.nbytes >= 0, "nbytes is a number of bytes")
    pairs = bounds.values() if isinstance(bounds, dict) else [bounds]
    values = value.values() if isinstance(bounds, dict) else [value]
    for interval, one in zip(pairs, values, strict=True):
        _true(_holds(interval, one), f"bounds {interval} hold the value {one}")


def _check_states(whole: M) -> None:
    for law in broken_states(whole):
        _true(holds=False, law=law)


def _check_groups(empty: M, rows: Mapping[str, object], rng: np.random.Generator) -> None:
    for law in broken_groups(empty, rows, rng):
        _true(holds=False, law=law)


def _check_independence(empty: M, whole: M, expected: bytes, rows: Mapping[str, object]) -> None:
    copy = whole.copy()
    _same(copy, expected, "a copy is equal")
    copy.merge(whole)
    _same(whole, expected, "a copy is independent")
    _same(copy.reset(), empty.to_bytes(), "reset forgets everything")
    _same(whole, expected, "resetting a copy leaves the original")
    mine = {name: np.array(column) for name, column in rows.items()}
    given = {name: column.copy() for name, column in mine.items()}
    fed = _fed(empty, [mine])
    _true(
        all(same_value(mine[name], given[name]) for name in mine), "update leaves its columns alone"
    )
    for column in mine.values():
        for place in range(1, len(column)):  # assigned one by one, because an item may be an array
            column[place] = column[0]
    _same(fed, expected, "writing to a column after update changes nothing")


def _check_refusals(empty: M, whole: M, expected: bytes, rows: Mapping[str, object]) -> None:
    metric = whole.copy()
    nothing = _taken(rows, np.arange(0))
    _same(_fed(metric, [nothing]), expected, "an empty batch changes nothing")
    if len(rows) > 1:
        first = next(iter(rows))
        uneven = {**rows, first: np.asarray(rows[first])[:-1]}
        _true(_refused(lambda: metric.feed(uneven)), "columns of unequal length raise")
        _same(metric, expected, "a refused batch changes nothing")
    other = MetricSet({"metric": empty}) if isinstance(empty, Metric) else MetricSet({})
    refused = _refused(lambda: metric.merge(whole, other))  # type: ignore[arg-type]  # wrong on purpose
    _true(refused, "merging another type raises")
    _same(metric, expected, "a refused merge changes nothing")


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except StreamMetricsError:
        return True
    return False


def _fed(metric: M, batches: Sequence[Rows]) -> M:
    fed = metric.copy()
    for batch in batches:
        fed.feed(batch, getattr(fed, "columns", None))
    try:
        fed.n_rows  # noqa: B018 - reading passes buffered rows to the statistics
    except InvalidBatchError as error:
        law = f"a statistic takes every row that its schema accepts ({error})"
        raise AssertionError(f"law broken: {law}") from error
    return fed


def _tree(shards: list[M], rng: np.random.Generator) -> M:
    shards = [shard.copy() for shard in shards]
    while len(shards) > 1:
        shard = shards.pop(int(rng.integers(len(shards))))
        shards[int(rng.integers(len(shards)))].merge(shard)
    return shards[0]


def _computed(metric: Metric | MetricSet) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", EstimateWarning)
        return metric.compute()


def _holds(interval: Interval, value: object) -> bool:
    low, high = interval
    if isinstance(value, dict):
        return all(_holds(Interval(low[key], high[key]), value[key]) for key in value)
    if isinstance(value, tuple):
        return all(_holds(Interval(a, b), one) for a, b, one in zip(low, high, value, strict=True))
    lows, highs, values = (np.asarray(x, dtype=np.float64) for x in (low, high, value))
    undefined = np.isnan(values)
    return bool((undefined | ((lows <= values) & (values <= highs))).all())


def _length(rows: Mapping[str, Any]) -> int:
    return len(next(iter(rows.values())))


def _repeated(rows: Mapping[str, Any], n: int) -> Rows:
    return _taken(rows, np.arange(n if _length(rows) else 0) % max(_length(rows), 1))


def _taken(rows: Mapping[str, Any], index: Any) -> Rows:
    return {name: np.asarray(column)[index] for name, column in rows.items()}


def _thirds(rows: Mapping[str, object]) -> list[Rows]:
    return [_taken(rows, index) for index in np.array_split(np.arange(_length(rows)), 3)]


def _same(metric: Metric | MetricSet, expected: bytes, law: str) -> None:
    _true(metric.to_bytes() == expected, law)


def _true(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"law broken: {law}")
