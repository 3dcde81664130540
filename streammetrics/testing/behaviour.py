"""Checks of a metric fed with rows: columns, weights, bounds, limits, threads, extreme numbers."""

from __future__ import annotations

import inspect
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from functools import cached_property, partial
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import COUNTS, WEIGHT
from streammetrics.core.errors import (
    EstimateWarning,
    IncompatibleMetricsError,
    InvalidBatchError,
    NoConfidenceError,
    StreamMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.feeding.plan import described, filled
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import merge
from streammetrics.core.results.values import Interval, plain
from streammetrics.core.state import arrays as state_arrays
from streammetrics.core.statistic import Statistic
from streammetrics.metrics.rowwise import SampleMetric
from streammetrics.testing.laws import (
    LAWS,
    PARTS,
    ROUNDING,
    BrokenLawError,
    BytesAndValue,
    Case,
    Rows,
    UnreadableValue,
    alike,
    computed,
    fed,
    holds,
    numbers_in,
    readable,
    repeated,
    same,
    same_value,
    seen,
    shown,
    smallest,
    split_rows,
    taken,
    true,
    weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Arrays

    Check = Callable[[Case[Metric]], object]

_THREADS = 4
# Numbers that a metric has to accept or reject with an error, each among ordinary ones.
_HOSTILE = (
    5e-324, -5e-324, 2.0**-1022, -0.0, 0.0, 1.0, -1.0, 1e16, 1.7e308, -1.7e308, math.inf,
    -math.inf, math.nan,
)  # fmt: skip
_FAR = 1.7e308
_DOUBLINGS = 70
_LOOKED_AT = (8, 9, 44, 45, _DOUBLINGS)  # doublings after which values are compared
_DOUBLED_ROWS = 16

_SLOW = 0.05  # seconds
# Parameters that limit memory; another max_... may be part of the formula.
_BUDGETS = {"max_bins", "max_pairs", "max_points", "max_rows"}

Finding = tuple[str, str]  # subject, and advice


def of_rows(
    metric: Metric, rows: Mapping[str, object], seed: int, oracle: Callable[..., object] | None
) -> Iterator[Finding]:
    """Yield the findings for rows that the metric accepts."""
    case: Case[Metric] = Case(metric, rows, seed=seed)
    found = list(_of_case(case, oracle))
    yield from found
    if not found:  # a new process takes longer than all the rest
        yield from _broken(case, [_elsewhere])


def _of_case(case: Case[Metric], oracle: Callable[..., object] | None) -> Iterator[Finding]:
    for check in (_update, _fields, _weights, _counts, _omitted, _containers):
        yield from _broken(case, [check])
    broken = list(_broken(case, LAWS))
    yield from broken
    checks = [_contradictions, _sampled, _budgets, _direction, _limits, _zeros, _doubled, _forged]
    if oracle is not None:
        checks.append(partial(_oracle, oracle=oracle))
    for check in checks:
        yield from _broken(case, [check])
    if not broken:  # otherwise the batches, not the threads, cause a difference
        yield from _broken(case, [_long, _threads, _apart_in_threads])
    yield from _of_hostile(case)


def _broken(case: Case[Metric], checks: Sequence[Check], of: str = "") -> Iterator[Finding]:
    """Yield the findings of checks; an error that several of them raise is yielded once."""
    failed = set[str]()
    for check in checks:
        try:
            with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
                warnings.simplefilter("ignore", EstimateWarning)
                check(case)
                continue
        except BrokenLawError as error:
            broken = error
        except Exception as error:
            if said(error) not in failed:
                failed.add(said(error))
                yield "laws", f"they cannot be checked{of}: {said(error)}"
            continue
        does_not = ": this does not hold" if broken.about == "laws" else ""
        yield broken.about, f"{broken}{does_not}{of} {smallest(case, check, broken)}"


# ---- columns ----


def _update(case: Case[Metric]) -> None:
    metric, rows = case.empty, case.rows
    asked = inspect.signature(metric.update).parameters
    lacking = [name for name in metric.inputs if name in rows and name not in asked]
    if lacking and not any(p.kind is p.VAR_KEYWORD for p in asked.values()):
        law = f"it does not take {', '.join(lacking)}, which the statistics read"
        raise BrokenLawError(law, about="update")
    fresh = metric.copy()
    before = {name: np.array(column) for name, column in rows.items()}
    _updated(fresh, rows, returns=True)
    written = [name for name in rows if not same_value(np.asarray(rows[name]), before[name])]
    told = f"it writes to {', '.join(written)}, which is its caller's: copy it"
    true(not written, told, about="update")
    true(
        fresh.to_bytes() == case.expected.blob,
        "what it feeds are not the columns that it is given",
        about="update",
    )
    _updated(fresh, taken(rows, np.arange(0)))
    same(fresh, case.expected, "an empty batch changes nothing")
    for spoilt in _spoilt(rows):
        try:
            fresh.update(**spoilt)
        except StreamMetricsError:
            same(fresh, case.expected, "a refused batch changes nothing")
        else:
            return  # whether nan may be taken is checked below


def _updated(metric: Metric, rows: Rows, *, returns: bool = False) -> None:
    try:
        back = metric.update(**rows)
    except Exception as error:
        some = len(next(iter(rows.values())))
        law = "rows by name are refused" if some else "an empty batch is refused"
        raise BrokenLawError(law, f": {said(error)}", about="update") from error
    if returns:
        advice = "it does not return the metric: end with `return self.feed(...)`"
        true(back is metric, advice, about="update")


def _spoilt(rows: Rows) -> Iterator[Rows]:
    """Yield the rows with a missing number in the last of them."""
    for name, column in rows.items():
        if np.asarray(column).dtype.kind == "f":
            yield {**rows, name: _with(column, -1, math.nan)}


def _fields(case: Case[Metric]) -> None:
    """Find state that a statistic keeps outside its fields, which is neither merged nor saved."""
    states = (each._accumulator.flush().statistics for each in (case.empty, case.whole))
    for empty, statistic in zip(*states, strict=True):
        cls = type(statistic)
        if cls.arrays is not Statistic.arrays:
            continue  # it serializes its state itself
        before = vars(empty)
        known = {*statistic.fields, *statistic.config}
        for name, value in vars(statistic).items():
            changed = name not in before or before[name] is not value
            own = inspect.getattr_static(cls, name, None)
            if changed and name not in known and not isinstance(own, cached_property):
                raise BrokenLawError(
                    f"{cls.__name__}.{name} is not a field, so it is neither merged nor saved: "
                    f"declare it in the class, as {name} = Sum(), Weight() or another field",
                    about="state",
                )


def _containers(case: Case[Metric]) -> None:
    """Check that only the numbers of a column count, and not how an array holds them."""
    forms: dict[str, Callable[[Array], object]] = {
        "strided": lambda column: np.repeat(column, 2, axis=0)[::2],
        "reversed in memory": lambda column: column[::-1].copy()[::-1],
        "in Fortran's order": np.asfortranarray,
        "read-only": _read_only,
        "lists": lambda column: column.tolist(),
    }
    for n in (case.n, tuning.STAGED_ROWS + 1):  # buffered, and the arrays themselves
        rows = repeated(case.rows, n)
        if n > case.n and any(column.dtype == object for column in rows.values()):
            return  # slow
        expected = _tried(case.empty, rows)
        if expected is None:
            return
        for form, made in forms.items():
            if n > case.n and form == "lists":
                continue
            held = {name: made(column) for name, column in rows.items()}
            law = f"columns that are {form} are the same columns"
            try:
                fresh = fed(case.empty, [held])
            except Exception as error:
                raise BrokenLawError(law, f" ({said(error)})") from error
            true(fresh.to_bytes() == expected, law)
    for dtype in (np.float32, np.float16):
        with np.errstate(over="ignore"):
            columns = {
                name: column.astype(dtype) if column.dtype.kind == "f" else column
                for name, column in repeated(case.rows, case.n).items()
            }
        back = {
            name: column.astype(case.rows[name].dtype) if column.dtype == dtype else column
            for name, column in columns.items()
        }
        if (expected := _tried(case.empty, back)) is not None:
            law = f"numbers in {np.dtype(dtype).name} are those numbers in float64"
            found = _tried(case.empty, columns)
            true(found is None or found == expected, law)


def _tried(metric: Metric, rows: Mapping[str, object]) -> bytes | None:
    """Return the bytes of rows; None if they are refused."""
    try:
        return fed(metric, [dict(rows)]).to_bytes()
    except StreamMetricsError:
        return None


def _read_only(column: Array) -> Array:
    column = column.copy()
    column.flags.writeable = False
    return column


def _omitted(case: Case[Metric]) -> None:
    """Check ``nan_policy="omit"``, if the metric has it: rows with nan are as if absent."""
    metric = case.empty
    if metric.config.get("nan_policy") != "raise":
        return
    twin = type(metric)(**{**metric.config, "nan_policy": "omit"})
    for name, column in case.rows.items():
        if np.asarray(column).dtype.kind != "f" or name == WEIGHT:
            continue
        more = taken(case.rows, np.r_[np.arange(case.n), 0])
        if COUNTS in more:
            more[COUNTS][-1] = 1
        spoilt = {**more, name: _with(more[name], -1, math.nan)}
        if _tried(metric, spoilt) is not None:  # nan has a meaning here
            continue
        law = f'with nan_policy="omit" a row with nan in {name} is left out'
        try:
            found = fed(twin, [spoilt])
        except Exception as error:
            raise BrokenLawError(law, f" ({said(error)})") from error
        true(found.n_omitted == 1, law, f" (n_omitted is {found.n_omitted})")
        true(same_value(computed(found), case.expected.value), law)


# ---- weights ----


def _weights(case: Case[Metric]) -> None:
    """Check weights, if the metric takes them: a weight counts as that many rows, 0 as none."""
    metric = case.empty
    if WEIGHT not in inspect.signature(metric.update).parameters:
        return
    plainly = {name: np.asarray(c) for name, c in case.rows.items() if name != WEIGHT}
    place = np.arange(case.n)
    ones, parts = np.ones(case.n), np.array(PARTS)[place % 4]
    weights(case)
    half = case.n // 2
    alike(
        metric,
        [taken(plainly, place[:half]), taken({**plainly, WEIGHT: ones}, place[half:])],
        [plainly],
        "rows of weight 1 do not count as rows without a weight",
    )
    if not _takes(metric, {**plainly, WEIGHT: parts}):
        return
    weighted = case.of({**plainly, WEIGHT: parts})
    if WEIGHT not in case.rows:
        for check in LAWS[:3]:
            check(weighted)
    halved = case.of({**plainly, WEIGHT: parts / 2})
    states = (each.whole._accumulator.flush().statistics for each in (weighted, halved))
    for statistic, half in zip(*states, strict=True):
        try:
            found = statistic.scaled(0.5)
        except InvalidBatchError:
            continue
        law = f"a scaled {type(statistic).__name__} is that of scaled weights"
        true(found.is_same(half), law)


def _counts(case: Case[Metric]) -> None:
    """Check counts, if the metric takes them: a row of count 2 is two rows."""
    metric = case.empty
    if COUNTS not in inspect.signature(metric.update).parameters or COUNTS in case.rows:
        return
    times = np.arange(case.n) % 3
    alike(
        metric,
        [{**case.rows, COUNTS: times}],
        [{name: np.repeat(np.asarray(c), times, axis=0) for name, c in case.rows.items()}],
        "a row of count 2 does not count as two rows: hand counts to feed()",
    )


# ---- values ----


def _contradictions(case: Case[Metric]) -> None:
    """Check that `bounds`, `exact` and `value_range` agree with each other and with the value."""
    metric, value = case.whole, case.expected.value
    if isinstance(value, UnreadableValue):
        return
    try:
        bounds, exact = metric.bounds(), metric.exact
        low, high = (list(numbers_in(plain(side))) for side in bounds)
    except Exception as error:
        raise BrokenLawError("they cannot be read", f": {said(error)}", about="bounds") from error
    told = f"interval() gives {shown(bounds)}: return sm.Interval(low, high)"
    true(isinstance(bounds, Interval), told, about="bounds")
    pairs = list(zip(low, high, strict=False))
    true(not any(a > b for a, b in pairs), "the lower one lies above the upper one", about="bounds")
    law = "they lie apart where `exact` says that the value is known: see is_exact()"
    true(not (exact and any(a < b for a, b in pairs)), law, about="bounds")
    if exact:
        law = "they are not the value, which `exact` says is known"
        true(same_value(bounds.low, value) or holds(bounds, value), law, about="bounds")
    if metric.value_range is not None:
        least, most = metric.value_range
        law = f"a number outside value_range = {metric.value_range}"
        numbers = [*numbers_in(plain(value)), *low, *high]
        outside = [n for n in numbers if not (n != n or least <= n <= most)]  # noqa: PLR0124 - nan
        true(not outside, law, f": {outside[:3]}", about="value_range")


def _sampled(case: Case[Metric]) -> None:
    """Check that the order of a sample has no meaning to its readout."""
    metric, value = case.whole, case.expected.value
    if not isinstance(metric, SampleMetric) or not metric.exact:
        return
    sample: Any = metric._read()[0]
    columns = sample.columns()
    for order in (np.arange(case.n)[::-1], case.rng().permutation(case.n)):
        with own_arithmetic():
            other = metric.of_sample(*[column[order] for column in columns])
        law = "of_sample gives another value for the rows in another order, which has no meaning"
        told = f" ({shown(value)}, {shown(other)})"
        alike = bool(np.allclose(value, other, ROUNDING, equal_nan=True))
        true(alike, law, told, about="value")


def _budgets(case: Case[Metric]) -> None:
    """Check that the bounds under a small budget hold the value that a large one has."""
    metric: Metric = case.whole

    def limited(name: str, size: int) -> Metric | None:
        if size == metric.config[name]:
            return metric
        try:
            return fed(type(metric)(**{**metric.config, name: size}), [case.rows])
        except (StreamMetricsError, ValueError):  # a budget that is not allowed
            return None

    for name, most in metric.config.items():
        if not name.startswith("max_") or type(most) is not int:
            continue
        large = limited(name, max(most, case.n))
        value = readable(large, computed) if large is not None and large.exact else None
        if value is None or isinstance(value, UnreadableValue):
            continue
        for size in sorted({2, 8, max(case.n // 2, 2), most}):
            few = limited(name, size)
            if few is None or (few.exact and name not in _BUDGETS):
                continue
            bounds = few.bounds()
            if len({len([*numbers_in(plain(each))]) for each in (value, *bounds)}) > 1:
                continue  # a curve has fewer points
            law = f"they do not hold the value of all rows where {name} is small"
            told = f" ({size}): {shown(bounds)}, {shown(value)}"
            if few.exact:
                told += ", and `exact` says that the value is known: see is_exact()"
            true(holds(bounds, value, ROUNDING * few.exact), law, told, about="bounds")


def _direction(case: Case[Metric]) -> None:
    """Check that predictions that are all right are no worse than those of the rows."""
    metric, value, rows = case.empty, case.expected.value, case.rows
    better = metric.higher_is_better
    if better is None or not {"y_true", "y_pred"} <= rows.keys() or not isinstance(value, float):
        return
    try:
        right = computed(fed(metric, [{**rows, "y_pred": rows["y_true"]}]))
    except StreamMetricsError:  # a prediction that is no target
        return
    worse = right < value if better else right > value
    law = f"predictions that are all right are worse, as higher_is_better is {better}"
    told = f" ({shown(right)}, and {shown(value)} of these rows)"
    true(not worse, law, told, about="higher_is_better")


def _limits(case: Case[Metric]) -> None:
    """Check that confidence limits hold the value, and that a higher level has wider ones."""
    metric, value = case.whole, case.expected.value
    try:
        narrow, wide = metric.confidence(0.5), metric.confidence(0.95)
    except (NoConfidenceError, StreamMetricsError):
        return
    except Exception as error:
        law = "the limits cannot be read"
        raise BrokenLawError(law, f": {said(error)}", about="confidence") from error
    if isinstance(value, dict | tuple) or np.shape(wide.low) != np.shape(value):
        return  # a value with several numbers of which one has limits
    law = "the limits do not hold the value: see `family`, which belongs to a formula"
    true(holds(wide, value, ROUNDING), law, f" ({shown(wide)}, {shown(value)})", about="confidence")
    law = "the limits of a higher level are narrower"
    held = all(holds(wide, side, ROUNDING) for side in narrow)
    true(held, law, f" ({shown(narrow)}, {shown(wide)})", about="confidence")
    if metric.value_range is not None:
        inside = all(holds(Interval(*metric.value_range), side, ROUNDING) for side in wide)
        law = f"limits outside value_range = {metric.value_range}"
        true(inside, law, f": {shown(wide)}", about="confidence")


def _zeros(case: Case[Metric]) -> None:
    """Check that 0.0 and -0.0 are one number, in any order."""
    for name, column in case.rows.items():
        if np.asarray(column).dtype.kind != "f" or name == WEIGHT:
            continue
        for places in (np.arange(min(case.n, 3)), np.arange(case.n)):
            zero, mixed = np.array(column), np.array(column)
            zero.reshape(case.n, -1)[places, 0] = 0.0
            mixed.reshape(case.n, -1)[places, 0] = np.where(places % 2, 0.0, -0.0)
            try:
                plainly = fed(case.empty, [{**case.rows, name: zero}])
                signed = {**case.rows, name: mixed}
                both = fed(case.empty, [signed])
                back = fed(case.empty, [taken(signed, np.arange(case.n)[::-1])])
                one, other = (list(numbers_in(plain(computed(x)))) for x in (plainly, both))
            except StreamMetricsError:
                continue
            alike = len(one) == len(other) and np.array_equal(one, other, equal_nan=True)
            law = f"-0.0 in {name} counts as 0.0"
            true(bool(alike), law, f" ({one[:3]}, {other[:3]})")
            true(back.to_bytes() == both.to_bytes(), f"0.0 and -0.0 in {name} in any order")


def _doubled(case: Case[Metric]) -> None:
    """Merge a state with itself 70 times: it grows as before, or is refused."""
    few = case if case.n <= _DOUBLED_ROWS else case.of(taken(case.rows, np.arange(_DOUBLED_ROWS)))
    state: Any = from_bytes(few.expected.blob)
    before, values = state.n_rows, list[list[float]]()
    law = "a state merged with itself 70 times is right, or refused"
    for done in range(1, _DOUBLINGS + 1):
        start = time.thread_time()
        try:
            state = merge([state, state])
        except IncompatibleMetricsError:
            return
        if time.thread_time() - start > _SLOW:  # it keeps every row
            return
        rows = state.n_rows
        true(rows in {before, before << done}, law, f" (it has {rows} rows after {done})")
        if done in _LOOKED_AT:
            again = from_bytes(state.to_bytes())
            true(again == state, law, f" (it is not read back after {done})")
            try:
                values.append([float(x) for x in numbers_in(plain(computed(state)))])
            except StreamMetricsError:  # more rows than it can read
                return
    for a, b, c, d, e in zip(*values, strict=True):
        if not (_grows_alike(a, b, c, 36, 0.1) and _grows_alike(c, d, e, 26, 1e-6)):
            told = ", ".join(map(repr, (a, b, c, d, e)))
            raise BrokenLawError(law, f" ({told} after {', '.join(map(str, _LOOKED_AT))})")


def _grows_alike(first: float, second: float, last: float, steps: int, slack: float) -> bool:
    """Whether a number grew by the same factor, or summand, in each of so many steps."""
    if math.isnan(first) or math.isnan(second) or math.isinf(last):
        return True
    slack = slack * max(abs(first), abs(last)) + 1e-12
    factor = second / first if first else 1.0
    with np.errstate(over="ignore"):
        grown = first * float(np.float64(factor) ** steps)
    return abs(last - grown) <= slack or abs(last - first - steps * (second - first)) <= slack


def _forged(case: Case[Metric]) -> None:
    """Read forged states: each is refused with `StateFormatError`, or is a state."""
    few = case if case.n <= _DOUBLED_ROWS else case.of(taken(case.rows, np.arange(_DOUBLED_ROWS)))
    for what, error in forged_states(few.whole):
        law = "a forged state is refused with StateFormatError, or can be read"
        raise BrokenLawError(law, f": {what} raises {said(error)}", about="forged state") from error


def _oracle(case: Case[Metric], oracle: Callable[..., object]) -> None:
    """Compare with the author's oracle, on all rows, halves and a weighted batch."""
    every = np.arange(case.n)
    batches = [case.rows, taken(case.rows, every[::2]), taken(case.rows, every[: case.n // 2])]
    weight = inspect.signature(oracle).parameters.get(WEIGHT)
    needed = weight is not None and weight.default is weight.empty
    if weight is not None and WEIGHT not in case.rows:
        batches.append({**case.rows, WEIGHT: (every % 4) / 2})
    for batch in batches:
        try:
            value = (
                case.expected.value if batch is case.rows else computed(fed(case.empty, [batch]))
            )
            ones = {WEIGHT: np.ones(len(next(iter(batch.values()))))} if needed else {}
            expected = oracle(**ones | batch)
        except Exception as error:
            if batch is case.rows:
                law = "it cannot be compared"
                raise BrokenLawError(law, f": {said(error)}", about="oracle") from error
            continue
        if batch is case.rows and not case.whole.exact:
            told = f": {shown(case.whole.bounds())} here, {shown(expected)} there"
            law = "the bounds do not hold its value"
            true(holds(case.whole.bounds(), expected, ROUNDING), law, told, about="oracle")
            return
        mine, theirs = ([float(x) for x in numbers_in(plain(each))] for each in (value, expected))
        alike = len(mine) == len(theirs) and np.allclose(
            mine, theirs, rtol=ROUNDING, atol=1e-12, equal_nan=True
        )
        true(
            alike,
            "the values differ",
            f": {shown(value)} here, {shown(expected)} there",
            about="oracle",
        )


# ---- sizes, threads and processes ----


def _long(case: Case[Metric]) -> None:
    """Check a batch longer than the slices in which batches are read."""
    if any(np.asarray(column).dtype == object for column in case.rows.values()):
        return  # a second per 10,000 rows
    n = tuning.BATCH_ROWS + 1
    long = _tried(case.empty, repeated(case.rows, n))
    if long is None:
        return
    half = repeated(case.rows, n)
    parts = [taken(half, slice(None, n // 3)), taken(half, slice(n // 3, None))]
    true(fed(case.empty, parts).to_bytes() == long, "a batch of a million rows is its parts")


def _threads(case: Case[Metric]) -> None:
    """Share an object among threads: no row is lost."""
    shared = case.empty.copy()
    batches = split_rows(case.rows, case.rng()) * _THREADS

    def work(place: int) -> None:
        for batch in batches[place::_THREADS]:
            shared.feed(batch)
            shared.compute()  # warnings are filtered outside, as filters are shared by threads

    raised = _together(work)
    law = "several at a time raise"
    true(not raised, law, f": {said(raised[0])}" if raised else "", about="threads")
    law = "several at a time lose rows: let update() rebind attributes, never write"
    true(shared.to_bytes() == fed(case.empty, batches).to_bytes(), law, about="threads")


def _apart_in_threads(case: Case[Metric]) -> None:
    """Feed separate objects in threads: each is what it is alone."""
    starts = [case.n * place // _THREADS for place in range(_THREADS)]
    parts = [taken(case.rows, np.arange(case.n)[start:]) for start in starts]
    alone = [seen(fed(case.empty, [part] * 2)) for part in parts]
    found: list[tuple[BytesAndValue, BytesAndValue]] = []

    def work(place: int) -> None:
        for _ in range(8):
            mine = fed(case.empty, [parts[place]] * 2)
            value = readable(mine, lambda metric: metric.compute())
            found.append((BytesAndValue(mine.to_bytes(), value), alone[place]))

    law = "objects of their own in several threads share nothing: keep no state on the class"
    raised = _together(work)
    true(not raised, law, f" ({said(raised[0])})" if raised else "", about="threads")
    equal = all(
        mine.blob == other.blob and same_value(mine.value, other.value) for mine, other in found
    )
    true(equal, law, about="threads")


def _together(work: Callable[[int], None]) -> list[BaseException]:
    """Run `work` in threads that switch often; return what they raise."""
    raised = list[BaseException]()
    start = threading.Barrier(_THREADS)

    def caught(place: int) -> None:
        try:
            start.wait()
            work(place)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=caught, args=(place,)) for place in range(_THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return raised


def _elsewhere(case: Case[Metric]) -> None:
    """Compare with a new process, where text has other hashes, and which reads all rows last."""
    sizes = [n for n in (1, 2, 3, 5, 8, 13, 21, 34) if n < case.n]
    batches = [taken(case.rows, np.arange(n)) for n in sizes]
    batches += [taken(case.rows, case.rng().integers(0, case.n, case.n)), case.rows]
    here = [seen_or_refused(case.empty, batch) for batch in batches]
    there = seen_elsewhere(case.empty, batches)
    for batch, mine, other in zip(batches, here, there, strict=False):
        if mine.blob != other.blob or not same_value(mine.value, other.value):
            law = "a new process with other hashes gives the same bytes and values"
            raise BrokenLawError(law, rows=batch)


# ---- extreme numbers ----


def _of_hostile(case: Case[Metric]) -> Iterator[Finding]:
    """Feed extreme numbers: each is accepted or rejected with an error, and the laws still hold."""
    metric, rows = case.empty, case.rows
    names = [name for name, column in rows.items() if np.asarray(column).dtype.kind == "f"]
    yield from _of_far_apart(metric, rows, names)
    for name in names:
        accepted = []
        for number in _HOSTILE:
            hard = {**rows, name: _with(rows[name], 0, number)}
            grown = case.whole.copy()
            try:
                grown.feed(hard)
            except StreamMetricsError:
                if grown.to_bytes() != case.expected.blob:
                    yield "all or nothing", f"refusing {name}={number!r} has changed the state"
            except Exception as error:
                told = f"{name}={number!r} raises {said(error)}"
                yield "hostile values", f"{told}: let the schema refuse what the metric cannot take"
            else:
                accepted.append(number)
                yield from _of_reading(grown, f"{name}={number!r}")
        if any(number != number for number in accepted):  # noqa: PLR0124 - the test for nan
            yield "hostile values", f"nan in {name} is taken: let the schema refuse it"
        hard = dict(rows)
        some = [number for number in accepted if math.isfinite(number)][: len(rows[name]) // 2]
        for place, number in enumerate(some):
            trial = {**hard, name: _with(hard[name], place, number)}
            if _takes(metric, trial):  # together with the extreme numbers added before
                hard = trial
        of = f" where {name} is hard"
        try:
            yield from islice(_broken(case.of(hard), LAWS, of), 1)
        except Exception as error:
            yield "laws", f"they cannot be checked{of}: {said(error)}"


def _of_far_apart(
    metric: Metric, rows: Mapping[str, object], names: Sequence[str]
) -> Iterator[Finding]:
    """Feed two columns whose numbers fit float64 but whose difference overflows."""
    for name, other in permutations(names, 2):
        apart = {name: _with(rows[name], 0, _FAR), other: _with(rows[other], 0, -_FAR)}
        grown = metric.copy()
        try:
            grown.feed({**rows, **apart})
        except StreamMetricsError:
            continue
        yield from _of_reading(grown, f"{name}={_FAR} beside {other}={-_FAR}")


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
        computed(metric)
    except Exception as error:
        yield "hostile values", f"compute() with {where} raises {said(error)}"


# ---- forged states ----


def forged_states(metric: Metric) -> Iterator[tuple[str, Exception]]:
    """Yield the forgeries that raise another error than a refusal, when they are read."""
    plan = metric._plan
    told, arrays = described(metric._accumulator.flush())
    rows = tuple(map(tuple, told))
    for what, forged in _forgeries(arrays):
        try:
            state = filled(plan, rows, forged)
            if not state_arrays.same(described(state)[1], forged):
                continue  # from_bytes refuses what is written otherwise
            twin = metric._over(Accumulator(plan, state))
            with warnings.catch_warnings(action="ignore"):
                twin.compute(), twin.bounds(), twin.exact
                twin.copy().merge(metric)
        except StreamMetricsError:
            continue
        except Exception as error:
            yield what, error


def _forgeries(arrays: Arrays) -> Iterator[tuple[str, dict[str, Array]]]:
    for name, array in arrays.items():
        short = name.partition("/")[2]
        yield f"a state without {short}", {k: a for k, a in arrays.items() if k != name}
        for what, other in _changed(array):
            yield f"{short} {what}", {**arrays, name: other}
    yield "an array of no field", {**arrays, "0/what is this": np.zeros(1)}


def _changed(array: Array) -> Iterator[tuple[str, Array]]:
    """Yield an array changed in one way each."""
    kind = array.dtype.kind
    yield "in one more dimension", array[None]
    if array.ndim and len(array):
        yield "without rows", array[:0]
        yield "without its last item", array[:-1]
        yield "twice", np.concatenate([array, array])
        yield "in reverse", array[::-1].copy()
    yield "of another type", array.astype(np.float32 if kind == "f" else np.float64)
    if not array.size:
        return
    first = array.copy()
    for number in {"f": (np.nan, np.inf, -1.0, 0.0)}.get(kind, (-1, 0, 1 << 62)):
        if kind in "if" and (kind == "f" or abs(number) <= np.iinfo(array.dtype).max):
            first.reshape(-1)[0] = number
            yield f"with {number} in it", first.copy()


# ---- a new process ----


_CODE = "from streammetrics.testing.behaviour import answer; answer()"
_SECONDS = 120


def seen_elsewhere(metric: Metric, batches: Sequence[Rows]) -> list[BytesAndValue]:
    """Return what a new process makes of each batch; nothing if it cannot import the metric.

    It cannot import what a script, a notebook or a function defines.
    """
    if type(metric).__module__ == "__main__":
        return []
    own = os.environ.get("PYTHONHASHSEED")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONHASHSEED": "2" if own == "1" else "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CODE],
        input=pickle.dumps((metric.copy(), batches)),
        capture_output=True,
        env=environment,
        timeout=_SECONDS,
        check=False,
    )
    return pickle.loads(done.stdout) if done.returncode == 0 else []


def answer() -> None:
    """Answer `seen_elsewhere`: read a metric and batches, write what each makes."""
    metric, batches = pickle.load(sys.stdin.buffer)
    pickle.dump([seen_or_refused(metric, batch) for batch in batches], sys.stdout.buffer)


def seen_or_refused(metric: Metric, batch: Rows) -> BytesAndValue:
    """Return what a batch makes of a metric: its bytes and value, or an error's text."""
    try:
        return seen(fed(metric, [batch]))
    except StreamMetricsError as error:
        return BytesAndValue(b"", str(error))


def said(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}"
