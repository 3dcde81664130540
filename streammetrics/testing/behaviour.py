"""Checks of a metric fed with rows: columns, laws, bounds, threads, extreme numbers."""

from __future__ import annotations

import inspect
import math
import threading
import warnings
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import WEIGHT, n_rows
from streammetrics.core.errors import EstimateWarning, StreamMetricsError, UndefinedMetricWarning
from streammetrics.core.results.values import plain
from streammetrics.core.statistic import Statistic
from streammetrics.testing.laws import laws, same_value, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.metric import Metric

_THREADS = 4
# Numbers that a metric has to accept or reject with an error, each among ordinary ones.
_HOSTILE = (
    5e-324, -5e-324, 2.0**-1022, -0.0, 0.0, 1.0, -1.0, 1e16, 1.7e308, -1.7e308, math.inf,
    -math.inf, math.nan,
)  # fmt: skip
_FAR = 1.7e308

Finding = tuple[str, str]  # subject, and advice


def of_rows(metric: Metric, rows: Mapping[str, object], seed: int) -> Iterator[Finding]:
    """Yield the findings for rows that the metric accepts."""
    yield from _of_update(metric, rows)
    yield from _of_fields(metric, rows)
    yield from _of_weights(metric, rows)
    yield from _of_given_columns(metric, rows)
    broken = list(_of_laws(metric, rows, seed, ""))
    yield from broken
    yield from _of_bounds(metric, rows)
    if not broken:  # otherwise the batches, not the threads, may cause a difference
        yield from _of_threads(metric, rows, seed)
    yield from _of_hostile(metric, rows, seed)


def _of_update(metric: Metric, rows: Mapping[str, object]) -> Iterator[Finding]:
    expected = metric.copy().feed(rows).to_bytes()
    asked = inspect.signature(metric.update).parameters
    lacking = [name for name in metric.inputs if name in rows and name not in asked]
    if lacking and not any(p.kind is p.VAR_KEYWORD for p in asked.values()):
        yield "update", f"it does not take {', '.join(lacking)}, which the statistics read"
        return
    fed = metric.copy()
    try:
        back = fed.update(**rows)
    except Exception as error:
        yield "update", f"rows by name are refused: {said(error)}"
        return
    if back is not fed:
        yield "update", "it does not return the metric: end with `return self.feed(...)`"
    if fed.to_bytes() != expected:
        yield "update", "what it feeds are not the columns that it is given"


def _of_fields(metric: Metric, rows: Mapping[str, object]) -> Iterator[Finding]:
    """Find state that a statistic keeps outside its fields, which is neither merged nor saved."""
    fed = metric.copy().feed(rows)._accumulator.flush().statistics
    for empty, statistic in zip(metric._accumulator.flush().statistics, fed, strict=True):
        cls = type(statistic)
        if cls.arrays is not Statistic.arrays:
            continue  # it serializes its state itself
        before = vars(empty)
        known = {*statistic.fields, *statistic.config}
        for name, value in vars(statistic).items():
            changed = name not in before or before[name] is not value
            if changed and name not in known and not isinstance(_of(cls, name), cached_property):
                yield (
                    "state",
                    f"{cls.__name__}.{name} is no field, so that it is neither merged nor saved: "
                    f"declare it in the class, as {name} = Sum(), Weight() or another field",
                )


def _of(cls: type, name: str) -> object:
    return inspect.getattr_static(cls, name, None)


def _of_weights(metric: Metric, rows: Mapping[str, object]) -> Iterator[Finding]:
    """Check weights, if the metric takes them: a weight counts as that many rows, 0 as none."""
    if WEIGHT not in inspect.signature(metric.update).parameters:
        return
    times = np.arange(n_rows(rows)) % 3
    weighted, repeated = metric.copy(), metric.copy()
    plainly = {name: np.asarray(column) for name, column in rows.items() if name != WEIGHT}
    try:
        weighted.update(**{**plainly, WEIGHT: times.astype(np.float64)})
        repeated.feed({name: np.repeat(c, times, axis=0) for name, c in plainly.items()})
        mine, theirs = (list(numbers_in(plain(_read(each)))) for each in (weighted, repeated))
    except Exception:  # laws() checks the rows without weights, and a metric may reject weights
        return
    if len(mine) != len(theirs) or not np.allclose(mine, theirs, rtol=1e-9, equal_nan=True):
        told = "a row of weight 2 does not count as two rows, or one of weight 0 as none"
        advice = "hand sample_weight to feed(), and weight to ExactSum.of and WeightedCount.of_rows"
        yield "weights", f"{told}: {advice}"


def _of_given_columns(metric: Metric, rows: Mapping[str, object]) -> Iterator[Finding]:
    """Feed a batch too long for the buffer: the statistics then receive the caller's own arrays."""
    many = np.arange(tuning.STAGED_ROWS + 1) % n_rows(rows)
    given = {name: np.asarray(column)[many] for name, column in rows.items()}
    before = {name: column.copy() for name, column in given.items()}
    try:
        metric.copy().feed(given).to_bytes()
    except Exception:  # rejections are found with fewer rows
        return
    written = [name for name, column in given.items() if not same_value(column, before[name])]
    if written:
        yield (
            "update",
            f"a statistic writes to {', '.join(written)}, which is its caller's: copy it",
        )


def _of_laws(metric: Metric, rows: Mapping[str, object], seed: int, of: str) -> Iterator[Finding]:
    checks, failed = laws(metric, rows, seed=seed), set[str]()
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                warnings.simplefilter("ignore", EstimateWarning)
                check = next(checks, None)
                if check is None:
                    return
                check()
        except AssertionError as error:
            yield "laws", f"{str(error).removeprefix('law broken: ')}: this does not hold{of}"
        except Exception as error:
            if said(error) not in failed:
                failed.add(said(error))
                yield "laws", f"they cannot be checked{of}: {said(error)}"


def _of_bounds(metric: Metric, rows: Mapping[str, object]) -> Iterator[Finding]:
    fed = metric.copy().feed(rows)
    try:
        low, high = (list(numbers_in(plain(side))) for side in fed.bounds())
        exact = fed.exact
    except Exception as error:
        yield "bounds", f"they cannot be read: {said(error)}"
        return
    if any(a > b for a, b in zip(low, high, strict=False)):
        yield "bounds", "the lower one lies above the upper one"
    if exact and any(a < b for a, b in zip(low, high, strict=False)):
        yield "bounds", "they lie apart where `exact` says that the value is known: see is_exact()"


def _of_threads(metric: Metric, rows: Mapping[str, object], seed: int) -> Iterator[Finding]:
    shared, raised = metric.copy(), list[BaseException]()
    batches = split_rows(rows, np.random.default_rng(seed)) * _THREADS

    def work(place: int) -> None:
        try:
            for batch in batches[place::_THREADS]:
                shared.feed(batch)
                _read(shared)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = metric.copy()
    for batch in batches:
        alone.feed(batch)
    if raised:
        yield "threads", f"several at a time raise: {said(raised[0])}"
    elif shared.to_bytes() != alone.to_bytes():
        yield "threads", "several at a time lose rows: let update() rebind attributes, never write"


def _of_hostile(metric: Metric, rows: Mapping[str, Any], seed: int) -> Iterator[Finding]:
    """Feed extreme numbers: each is accepted or rejected with an error, and the laws still hold."""
    names = [name for name, column in rows.items() if np.asarray(column).dtype.kind == "f"]
    yield from _of_far_apart(metric, rows, names)
    for name in names:
        taken = []
        for number in _HOSTILE:
            hard = {**rows, name: _with(rows[name], 0, number)}
            fed = metric.copy().feed(rows)
            before = fed.to_bytes()
            try:
                fed.feed(hard)
            except StreamMetricsError:
                if fed.to_bytes() != before:
                    yield "all or nothing", f"refusing {name}={number!r} has changed the state"
            except Exception as error:
                told = f"{name}={number!r} raises {said(error)}"
                yield "hostile values", f"{told}: let the schema refuse what the metric cannot take"
            else:
                taken.append(number)
                yield from _of_reading(fed, f"{name}={number!r}")
        if any(number != number for number in taken):  # noqa: PLR0124 - the test for nan
            yield "hostile values", f"nan in {name} is taken: let the schema refuse it"
        hard = dict(rows)
        some = [number for number in taken if math.isfinite(number)][: len(rows[name]) // 2]
        for place, number in enumerate(some):
            trial = {**hard, name: _with(hard[name], place, number)}
            if _takes(metric, trial):  # together with the extreme numbers added before
                hard = trial
        found = list(_of_laws(metric, hard, seed, f" where {name} is hard"))
        yield from found[:1]


def _of_far_apart(
    metric: Metric, rows: Mapping[str, object], names: Sequence[str]
) -> Iterator[Finding]:
    """Feed two columns whose numbers fit float64 but whose difference overflows."""
    for name, other in permutations(names, 2):
        apart = {name: _with(rows[name], 0, _FAR), other: _with(rows[other], 0, -_FAR)}
        fed = metric.copy()
        try:
            fed.feed({**rows, **apart})
        except StreamMetricsError:
            continue
        yield from _of_reading(fed, f"{name}={_FAR} beside {other}={-_FAR}")


def _with(column: object, row: int, number: float) -> object:
    """Return a copy of a column with a number in one row; in its first entry if it is (n, d)."""
    hard = np.array(column)
    hard.reshape(len(hard), -1)[row, 0] = number
    return hard


def _takes(metric: Metric, rows: Mapping[str, object]) -> bool:
    try:
        metric.copy().feed(rows)
    except StreamMetricsError:
        return False
    return True


def _of_reading(metric: Metric, where: str) -> Iterator[Finding]:
    try:
        metric.to_bytes()
    except Exception as error:
        told = f"{where}: its statistic refuses what its schema has taken: {said(error)}"
        yield "hostile values", told
        return
    try:
        _read(metric)
    except Exception as error:
        yield "hostile values", f"compute() with {where} raises {said(error)}"


def _read(metric: Metric) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", EstimateWarning)
        return metric.compute()


def numbers_in(value: object) -> Iterator[Any]:
    """Yield the numbers of a nested plain value."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)
    elif isinstance(value, int | float):
        yield value


def said(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}"
