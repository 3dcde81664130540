"""The law kit: the laws that every metric satisfies, checked on rows of your choice.

    >>> import numpy as np
    >>> import streammetrics as sm
    >>> from streammetrics.testing import check_laws
    >>> rng = np.random.default_rng(0)
    >>> rows = {"y_true": rng.integers(0, 2, 50), "y_pred": rng.integers(0, 2, 50)}
    >>> check_laws(sm.F1(), rows)

Use rows that are hard for the metric: ties, repeated rows, huge and tiny numbers, rows that cancel.
If a law does not hold, `AssertionError` names it, and the smallest batch that breaks it.
"""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import WEIGHT, Batch
from streammetrics.core.errors import (
    EstimateWarning,
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    StreamMetricsError,
    UndefinedMetricWarning,
    an,
)
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.plan import described
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import merge
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval, plain
from streammetrics.core.state.arrays import same as same_arrays
from streammetrics.statistics.grouped import Grouped, Groups, grouped_plan
from streammetrics.statistics.keys import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Places


def broken_states(metric: Mergeable) -> Iterator[str]:
    """Yield the laws that do not hold for each statistic of a metric or a metric set."""
    for statistic in metric._accumulator.flush().statistics:
        name = type(statistic).__name__
        try:
            statistic.check()
        except StateFormatError as error:
            yield f"{an(name)} can be read again ({error})"
            continue
        twice = statistic.fork()
        twice.merge_all([statistic])
        if not _is_scaled(statistic, twice):
            yield f"scaling {an(name)} distributes over merge, and by 1 changes nothing"
        if not _is_taken_out(statistic, twice):
            yield f"what was merged into {an(name)} can be taken out again"


def _is_scaled(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether scaling satisfies its laws; True if the statistic cannot be scaled."""
    try:
        half = statistic.scaled(0.375)
    except InvalidBatchError:
        return True
    half.check()
    both = half.fork()
    both.merge_all([half])
    return both.is_same(twice.scaled(0.375)) and statistic.scaled(1.0).is_same(statistic)


def _is_taken_out(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether a doubled state minus itself is itself; True if it cannot be subtracted."""
    try:
        return twice.minus(statistic).is_same(statistic)
    except IncompatibleMetricsError:
        return True


_GROUPS = 5


def broken_groups(empty: Mergeable, rows: Rows, rng: np.random.Generator) -> Iterator[str]:
    """Yield the laws that do not hold for the states of rows split into random groups.

    Sets with a unit and slices keep groups themselves, and are not split again.
    """
    plan, renamed = empty._plan, getattr(empty, "columns", None)
    if any(isinstance(statistic, Grouped) for statistic in plan.start.statistics):
        return
    n = len(next(iter(rows.values())))
    codes = rng.integers(0, _GROUPS - 1, n)  # the last group stays empty
    columns = {name: np.asarray(column) for name, column in rows.items()}
    states: list[State] = []
    for group in range(_GROUPS):
        alone = Accumulator(plan)
        if (codes == group).any():
            mine = {name: column[codes == group] for name, column in columns.items()}
            alone.update(Batch(mine, renamed))
        states.append(alone.flush())
    table = StateTable.of(plan, states)
    if not all(_is_same(table.at(group), state) for group, state in enumerate(states)):
        yield "a state among others is what it is alone"
    back = StateTable.restored(plan, table.arrays(), _GROUPS)
    if not same_arrays(back.arrays(), table.arrays()):
        yield "arrays over groups that are read are written again"
    if not _is_same(back.total(), plan.merged(plan.start, states)):
        yield "groups that are united are their states merged"
    order = rng.permutation(_GROUPS)[: _GROUPS - 2]
    some = StateTable.of(plan, [states[group] for group in order])
    if not same_arrays(back.take(order).arrays(), some.arrays()):
        yield "groups that are taken are those of their states"
    yield from _broken_keys(empty, {**columns, KEY: codes}, renamed, states)


def _broken_keys(empty: Mergeable, rows: Rows, renamed: Any, states: list[State]) -> Iterator[str]:
    """Yield the laws that do not hold for rows fed together with their group codes."""
    plan = empty._plan
    keyed = Accumulator(grouped_plan(plan))
    half = len(rows[KEY]) // 2
    for part in (slice(None, half), slice(half, None)):
        if len(rows[KEY][part]):
            keyed.update(Batch({name: column[part] for name, column in rows.items()}, renamed))
    groups = Groups.of(plan, keyed.flush())
    keys = groups.keys.tolist()
    if not all(
        _is_same(groups.state(np.array([place])), states[key]) for place, key in enumerate(keys)
    ):
        yield "rows with the codes of their groups make what the rows of each group make"
    if isinstance(empty, Metric) and not _are_read_alike(empty, groups, [states[k] for k in keys]):
        yield "groups that are read at once have the values of each alone"
    places = np.arange(len(keys)) % 2
    for coarse in range(min(2, len(keys))):
        mine = [states[key] for key, place in zip(keys, places, strict=True) if place == coarse]
        found = groups.regrouped(places, np.arange(min(2, len(keys)))).state(np.array([coarse]))
        if not _is_same(found, plan.merged(plan.start, mine)):
            yield "a coarser group is the states of its groups merged"


def _are_read_alike(metric: Metric, groups: Groups, states: Sequence[State]) -> bool:
    forms = groups.forms(metric)
    with own_arithmetic():
        try:
            judged = [metric._judged(*state.statistics) for state in states]
        except StreamMetricsError:  # the value of a group is undefined
            return True
        found = None if forms is None or not states else metric._of_groups(*forms)
    if found is None or not isinstance(found.values, np.ndarray):
        return True
    values = np.array([value for value, _ in judged], np.float64)
    doubts = [bool(doubt) for _, doubt in judged]
    return found.values.tobytes() == values.tobytes() and found.doubtful.tolist() == doubts


def _is_same(one: State, other: State) -> bool:
    (told, arrays), (others, more) = described(one), described(other)
    return told == others and same_arrays(arrays, more)


M = TypeVar("M", Metric, MetricSet)
S = TypeVar("S")
Rows = dict[str, Any]

_TRIES = 40  # most smaller batches to try
_SHOWN = 300  # characters of a batch to show
_FEW = 12  # single rows to try

# Ways to copy an object, which may have been fed some of its rows.
_COPIES: dict[str, Callable[[Any], Any]] = {
    "pickling": lambda metric: pickle.loads(pickle.dumps(metric)),
    "pickling the state, as workers do": lambda metric: metric._over(
        pickle.loads(pickle.dumps(metric._alone()))
    ),
    "copy.deepcopy": copy.deepcopy,
    "copy": lambda metric: metric.copy(),
}
# Lengths of buffers and slices at which a batch of some hundred rows passes all of them.
_SHORT = {
    "STAGED_ROWS": 16,
    "BATCH_ROWS": 48,
    "BUFFERED_ROWS": 32,
    "JOINED_ROWS": 8,
    "PENDING_RANKINGS": 24,
    "RANKED_ROWS": 32,
}
_TUNING = threading.Lock()
PARTS = (1.0, 2.5, 0.75, 1.5)  # weights of rows
ROUNDING = 1e-9


class BrokenLawError(AssertionError):
    """A law that does not hold, details, the subject, and the smallest batch if it is known."""

    def __init__(
        self, law: str, detail: str = "", about: str = "laws", rows: Rows | None = None
    ) -> None:
        super().__init__(law + detail)
        self.law, self.about, self.rows = law, about, rows


class BytesAndValue(NamedTuple):
    """What two equal objects have in common: their bytes, and their values or a refusal."""

    blob: bytes
    value: Any


class UnreadableValue(str):
    """The message of an error in place of a value that cannot be read."""

    __slots__ = ()


class Case(Generic[M]):
    """A metric and rows, for the laws; and what all rows in one batch give."""

    def __init__(
        self, metric: M, rows: Mapping[str, object], *, seed: int = 0, trials: int = 4
    ) -> None:
        self.rows: Rows = dict(rows)
        self.seed, self.trials = seed, trials
        self.n = _length(self.rows)
        if not self.n:
            raise ValueError("there are no rows to check with: pass 20 to 1000")
        self.empty: M = metric.copy().reset()
        self.whole: M = fed(self.empty, [self.rows])
        self.expected = seen(self.whole)

    def rng(self) -> np.random.Generator:
        """Return new random numbers, the same ones for every law."""
        return np.random.default_rng(self.seed)

    def of(self, rows: Mapping[str, object]) -> Case[M]:
        """Return the same case with other rows."""
        return Case(self.empty, rows, seed=self.seed, trials=self.trials)

    def same(self, metric: M, law: str) -> None:
        """Check that an object has the bytes and the values of all rows in one batch."""
        same(metric, self.expected, law)


def check_laws(metric: M, rows: Mapping[str, object], *, seed: int = 0, trials: int = 4) -> None:
    """Check that a metric satisfies all laws on the given rows, in bytes and in values.

    Args:
        metric: The metric or metric set; its rows, if any, are ignored.
        rows: Columns by input name. With ``sample_weight``, a row must count as that many rows.
        seed: Seed of the random splits, orders and merge trees.
        trials: How many of each to try.

    Raises:
        AssertionError: A law does not hold; the message names it, and the smallest batch found
            for which it does not hold.
        TypeError: `metric` is a class, or neither a metric nor a metric set.
    """
    if not isinstance(metric, Metric | MetricSet):
        kind = (
            f"the class {metric.__name__}"
            if isinstance(metric, type)
            else an(type(metric).__name__)
        )
        raise TypeError(f"expected a metric or a metric set, not {kind}")
    case = Case(metric, rows, seed=seed, trials=trials)
    for law in (*LAWS, weights) if _weight_of(metric) in rows else LAWS:
        try:
            law(case)
        except BrokenLawError as broken:
            raise AssertionError(f"law broken: {broken} {smallest(case, law, broken)}") from broken


def smallest(case: Case[M], law: Callable[[Case[M]], object], broken: BrokenLawError) -> str:
    """Return the smallest batch found that breaks a law in the same way, as text."""
    rows = broken.rows or taken(case.rows, _smallest(case, law, broken))
    batch = ", ".join(f"{name}={np.asarray(column).tolist()!r}" for name, column in rows.items())
    n = _length(rows)
    return f"(smallest batch, {n} row{'s' * (n > 1)} of {case.n}: {brief(batch, _SHOWN)})"


def _smallest(case: Case[M], law: Callable[[Case[M]], object], broken: BrokenLawError) -> Places:
    """Leave out half of the rows, then a quarter and so on, while the law is still broken."""
    kept, size, tries = np.arange(case.n), case.n // 2, 0
    while size and tries < _TRIES:
        start = 0
        while start < len(kept) > 1 and tries < _TRIES:
            fewer = np.delete(kept, slice(start, start + size))
            tries += 1
            if len(fewer) and _breaks(case, law, taken(case.rows, fewer), broken.law):
                kept = fewer
            else:
                start += size
        size = min(size // 2, len(kept) - 1)
    return kept


def _breaks(case: Case[M], law: Callable[[Case[M]], object], rows: Rows, name: str) -> bool:
    try:
        law(case.of(rows))
    except BrokenLawError as broken:
        return broken.law == name
    except Exception:  # fewer rows may be undefined or refused
        return False
    return False


def split_rows(rows: Mapping[str, object], rng: np.random.Generator) -> list[Rows]:
    """Return the rows as consecutive batches of random lengths, some possibly empty."""
    n = _length(rows)
    cuts = np.sort(rng.integers(0, n + 1, size=int(rng.integers(1, 6))))
    return [taken(rows, np.arange(a, b)) for a, b in pairwise([0, *cuts.tolist(), n])]


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


# ---- the laws ----


def splits(case: Case[M]) -> None:
    """Check that order, batches, shards and merge trees do not matter."""
    rng = case.rng()
    for _ in range(case.trials):
        order = rng.permutation(case.n)
        batches = split_rows(taken(case.rows, order), rng)
        case.same(fed(case.empty, batches), "rows in another order and other batches")
        shards = [fed(case.empty, [batch]) for batch in batches]
        before = [shard.to_bytes() for shard in shards]
        case.same(_tree(shards, rng), "shards merged in a random tree")
        after = [shard.to_bytes() for shard in shards]
        true(before == after, "merge leaves its arguments untouched")


def single_rows(case: Case[M]) -> None:
    """Check that batches and shards of a single row do not matter."""
    few = range(min(case.n, _FEW))
    each: list[Rows] = [taken(case.rows, np.arange(row, row + 1)) for row in few]
    rest = taken(case.rows, np.arange(min(case.n, _FEW), case.n))
    case.same(fed(case.empty, [*each, rest]), "rows one at a time are the batch of them")
    shards = [fed(case.empty, [batch]) for batch in [*each, rest]]
    case.same(merge(shards[::-1]), "states of single rows, merged, are that of the batch")


def monoid(case: Case[M]) -> None:
    """Check identity, associativity, commutativity, and that `update` is a merge."""
    empty, whole = case.empty, case.whole
    case.same(whole.copy().merge(empty), "identity: merging an empty state changes nothing")
    case.same(empty.copy().merge(whole), "identity: an empty state merged with another is it")
    case.same(merge([empty, whole, empty]), "identity: sm.merge with empty states")
    nothing = empty.to_bytes()
    blank = from_bytes(nothing, kind=type(empty))
    true(blank.to_bytes() == nothing, "round trip of an empty state")
    case.same(blank.merge(whole), "identity: an empty state read from bytes")
    a, b, c = (fed(empty, [part]) for part in _thirds(case.rows))
    case.same(merge([merge([a, b]), c]), "associativity: (a + b) + c")
    case.same(merge([a, merge([b, c])]), "associativity: a + (b + c)")
    case.same(merge([c, b, a]), "commutativity: c + b + a")
    twice = seen(merge([whole, whole]))
    same(fed(whole, [case.rows]), twice, "update is merge of the lifted batch")
    order = case.rng().permutation(case.n)
    same(fed(whole, [taken(case.rows, order)]), twice, "update after other rows")


def travels(case: Case[M]) -> None:
    """Check that after every operation an object processes rows as a new one does."""
    empty = case.empty

    def read(metric: M) -> M:
        with suppress(StreamMetricsError):  # a value that cannot be read
            computed(metric), metric.bounds(), metric.exact, metric.nbytes, repr(metric)
        return metric

    def refused(metric: M) -> M:
        _refused(lambda: metric.feed({}))
        return metric

    operations: dict[str, Callable[[M], M]] = {
        "a round trip through bytes": lambda metric: from_bytes(
            metric.to_bytes(), kind=type(metric)
        ),
        **_COPIES,
        "merging empty states": lambda metric: metric.merge(
            empty, from_bytes(empty.to_bytes(), kind=type(empty))
        ),
        "sm.merge after an empty state": lambda metric: merge([empty, metric]),
        "reset": lambda metric: fed(metric, [case.rows]).reset().merge(metric),
        "reading": read,
        "a refused batch": refused,
    }
    first, *rest = _thirds(case.rows)
    for begun, left in ((empty, [case.rows]), (fed(empty, [first]), rest)):
        for name, operation in operations.items():
            moved = fed(operation(begun.copy()), left)
            case.same(moved, f"after {name} rows are taken as a fresh object takes them")


def long_batches(case: Case[M]) -> None:
    """Check batches longer than each buffer, and longer than a slice, which is short here.

    Columns of Python objects take a second per 10,000 rows, so only short buffers are tried.
    """
    if all(np.asarray(column).dtype != object for column in case.rows.values()):
        _long_batch(case, tuning.STAGED_ROWS + 1)
    with short_buffers():
        _long_batch(case, 3 * tuning.BATCH_ROWS + 1)


def _long_batch(case: Case[M], n: int) -> None:
    long = repeated(case.rows, n)
    before = {name: column.copy() for name, column in long.items()}
    begun = case.empty.copy()
    try:
        begun.feed(long, getattr(begun, "columns", None))
        parts = fed(case.empty, [_rest(case, n)])
        for power in _powers(case.whole, n // case.n):
            parts.merge(power)
    except (InvalidBatchError, IncompatibleMetricsError):  # rows that cannot be repeated
        return
    written = [name for name in long if not same_value(long[name], before[name])]
    true(
        not written,
        f"a statistic writes to {', '.join(written)}, which is its caller's: copy it",
        about="update",
    )
    _overwrite(long)
    expected = seen(parts)
    same(begun, expected, "a long batch, whose columns are written to afterwards, is its parts")
    expected = seen(fed(parts, [case.rows]))
    for name, operation in _COPIES.items():
        moved = fed(operation(begun), [case.rows])
        same(moved, expected, f"after long batches and {name} rows are taken as without it")


def readings(case: Case[M]) -> None:
    """Check reading, round trips, and that bounds hold the value."""
    whole, expected = case.whole, case.expected
    readable = not isinstance(expected.value, UnreadableValue)
    bounds = whole.bounds() if readable else None
    case.same(whole, "reading changes nothing")
    back: Any = from_bytes(expected.blob)
    true(type(back) is type(whole), "round trip: from_bytes builds the same class")
    case.same(back, "round trip: from_bytes, then to_bytes")
    true(pickle.loads(pickle.dumps(whole)) == whole, "round trip: pickle")
    true(back == whole and back.n_rows == whole.n_rows, "equal states are equal")
    true(whole.nbytes >= 0, "nbytes is a number of bytes")
    if bounds is None:
        return
    true(same_value(back.bounds(), bounds), "round trip: the bounds are the same to the bit")
    values = expected.value if isinstance(bounds, dict) else {"": expected.value}
    for name, interval in (bounds if isinstance(bounds, dict) else {"": bounds}).items():
        if isinstance(interval, Interval):  # and not a column of a table, as of slices
            told = f": {shown(interval)}, {shown(values[name])}"
            true(holds(interval, values[name]), "bounds hold the value", told)


def states(case: Case[M]) -> None:
    """Check the laws of single statistics."""
    for law in broken_states(case.whole):
        raise BrokenLawError(law)


def groups(case: Case[M]) -> None:
    """Check the laws of states over groups."""
    for law in broken_groups(case.empty, case.rows, case.rng()):
        raise BrokenLawError(law)


def independence(case: Case[M]) -> None:
    """Check that copies are independent, and that columns are neither changed nor kept."""
    whole = case.whole
    twin = whole.copy()
    case.same(twin, "a copy is equal")
    twin.merge(whole)
    case.same(whole, "a copy is independent")
    true(twin.reset().to_bytes() == case.empty.to_bytes(), "reset forgets everything")
    case.same(whole, "resetting a copy leaves the original")
    mine = {name: np.array(column) for name, column in case.rows.items()}
    given = {name: column.copy() for name, column in mine.items()}
    fresh = fed(case.empty, [mine])
    unchanged = all(same_value(mine[name], given[name]) for name in mine)
    true(unchanged, "update leaves its columns alone")
    _overwrite(mine)
    case.same(fresh, "writing to a column after update changes nothing")


def refusals(case: Case[M]) -> None:
    """Check that a refused call changes nothing."""
    empty, whole, rows = case.empty, case.whole, case.rows
    metric = whole.copy()
    nothing = taken(rows, np.arange(0))
    case.same(fed(metric, [nothing]), "an empty batch changes nothing")
    if len(rows) > 1:
        first = next(iter(rows))
        uneven = {**rows, first: np.asarray(rows[first])[:-1]}
        true(
            _refused(lambda: metric.feed(uneven, getattr(metric, "columns", None))),
            "columns of unequal length raise",
        )
        case.same(metric, "a refused batch changes nothing")
    other = MetricSet({"metric": empty}) if isinstance(empty, Metric) else MetricSet({})
    refused = _refused(lambda: metric.merge(whole, other))  # type: ignore[arg-type]  # wrong on purpose
    true(refused, "merging another type raises")
    case.same(metric, "a refused merge changes nothing")


def weights(case: Case[M]) -> None:
    """Check that a weight counts as that many rows, and 0 as none."""
    metric, name = case.empty, _weight_of(case.empty)
    plainly = {column: np.asarray(c) for column, c in case.rows.items() if column != name}
    place = np.arange(case.n)
    times, parts = place % 3, np.array(PARTS)[place % 4]
    advice = "hand sample_weight to feed(), and weight to ExactSum.of and WeightedCount.of_rows"
    alike(
        metric,
        [{**plainly, name: times.astype(np.float64)}],
        [{column: np.repeat(c, times, axis=0) for column, c in plainly.items()}],
        f"a row of weight 2 does not count as two rows, or one of weight 0 as none: {advice}",
    )
    alike(
        metric,
        [{**plainly, name: parts}],
        [{**plainly, name: parts / 4}, {**plainly, name: 3 * parts / 4}],
        "a row of weight 1 does not count as two of 0.25 and 0.75: multiply by the weight",
    )


def _weight_of(metric: Metric | MetricSet) -> str:
    """Return the name of the column with the weights."""
    return str((getattr(metric, "columns", None) or {}).get(WEIGHT, WEIGHT))


LAWS: tuple[Callable[[Case[Any]], None], ...] = (
    splits,
    single_rows,
    monoid,
    travels,
    long_batches,
    readings,
    states,
    groups,
    independence,
    refusals,
)


# ---- what the laws share ----


def alike(
    metric: Metric | MetricSet, batches: Sequence[Rows], others: Sequence[Rows], law: str
) -> None:
    """Check that two lists of batches give the same numbers, up to rounding."""
    try:
        one, other = (metric.copy(), metric.copy())
        for batch in batches:
            one.update(**batch)
        for batch in others:
            other.update(**batch)
        mine, theirs = (list(numbers_in(plain(computed(each)))) for each in (one, other))
    except Exception:  # the laws check rows without weights, and a metric may reject weights
        return
    if len(mine) != len(theirs) or not np.allclose(mine, theirs, rtol=ROUNDING, equal_nan=True):
        raise BrokenLawError(law, f" ({mine[:3]} and {theirs[:3]})", about="weights")


def numbers_in(value: object) -> Iterator[float]:
    """Yield the numbers of a nested plain value."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)
    elif isinstance(value, int | float):
        yield value


def fed(metric: M, batches: Sequence[Rows]) -> M:
    """Return a copy that was fed the batches."""
    grown = metric.copy()
    for batch in batches:
        grown.feed(batch, getattr(grown, "columns", None))
    try:
        grown.n_rows  # noqa: B018 - reading passes buffered rows to the statistics
    except InvalidBatchError as error:
        law = "a statistic takes every row that its schema accepts"
        raise BrokenLawError(law, f" ({error})") from error
    return grown


def seen(metric: Metric | MetricSet) -> BytesAndValue:
    """Return the bytes and the values of an object."""
    return BytesAndValue(metric.to_bytes(), _answer(metric))


def same(metric: Metric | MetricSet, expected: BytesAndValue, law: str) -> None:
    """Check that an object has these bytes and values."""
    true(metric.to_bytes() == expected.blob, law)
    value = _answer(metric)
    if not same_value(value, expected.value):
        told = f"{shown(expected.value)} and {shown(value)}"
        raise BrokenLawError(law, f" (equal bytes have the values {told})")


def true(holds: bool, law: str, detail: str = "", about: str = "laws") -> None:
    """Raise `BrokenLawError` unless a law holds."""
    if not holds:
        raise BrokenLawError(law, detail, about)


def computed(metric: Metric | MetricSet) -> Any:
    """Return the value, without warnings of what is undefined."""
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        warnings.simplefilter("ignore", EstimateWarning)
        return metric.compute()


def _answer(metric: Metric | MetricSet) -> object:
    return readable(metric, computed)


def readable(metric: S, read: Callable[[S], object]) -> object:
    """Return what `read` gives, or the message of the error that it raises."""
    try:
        return read(metric)
    except StreamMetricsError as error:
        return UnreadableValue(error)


def holds(interval: Interval, value: object, slack: float = 0.0) -> bool:
    """Whether each number of a value lies in its interval; an undefined one counts as inside."""
    low, high = interval
    if isinstance(value, dict):
        return all(holds(Interval(low[key], high[key]), value[key], slack) for key in value)
    if isinstance(value, tuple):
        each = zip(low, high, value, strict=True)
        return all(holds(Interval(a, b), one, slack) for a, b, one in each)
    lows, highs, values = (np.asarray(x, dtype=np.float64) for x in (low, high, value))
    more = slack * np.where(np.isfinite(values), np.abs(values), 0.0)
    undefined = np.isnan(values) | np.isnan(lows) | np.isnan(highs)
    return bool((undefined | ((lows <= values + more) & (values - more <= highs))).all())


def shown(value: object) -> str:
    """Return a value as short text."""
    return brief(repr(value), 80)


def brief(text: str, most: int) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= most else f"{text[:most]}..."


@contextmanager
def short_buffers() -> Iterator[None]:
    """Make buffers and slices short, which changes no result."""
    with _TUNING:
        before = {name: getattr(tuning, name) for name in _SHORT}
        try:
            for name, length in _SHORT.items():
                setattr(tuning, name, length)
            yield
        finally:
            for name, length in before.items():
                setattr(tuning, name, length)


def repeated(rows: Mapping[str, object], n: int) -> Rows:
    """Return the rows over and over, `n` of them."""
    return taken(rows, np.arange(n) % max(_length(rows), 1))


def taken(rows: Mapping[str, object], index: Places | slice) -> Rows:
    """Return some of the rows."""
    return {name: np.asarray(column)[index] for name, column in rows.items()}


def _rest(case: Case[M], n: int) -> Rows:
    return taken(case.rows, np.arange(n % case.n))


def _powers(metric: M, times: int) -> list[M]:
    """Return states that together hold the rows of a metric so many times."""
    parts = []
    while times:
        if times & 1:
            parts.append(metric)
        times >>= 1
        metric = merge([metric, metric])
    return parts


def _overwrite(columns: Rows) -> None:
    for column in columns.values():
        if column.dtype != object:
            column[1:] = column[:1]
            continue
        for place in range(1, len(column)):  # one by one, because an item may be an array
            column[place] = column[0]


def _tree(shards: list[M], rng: np.random.Generator) -> M:
    shards = [shard.copy() for shard in shards]
    while len(shards) > 1:
        shard = shards.pop(int(rng.integers(len(shards))))
        shards[int(rng.integers(len(shards)))].merge(shard)
    return shards[0]


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except StreamMetricsError:
        return True
    return False


def _length(rows: Mapping[str, Any]) -> int:
    return len(next(iter(rows.values())))


def _thirds(rows: Mapping[str, object]) -> list[Rows]:
    return [taken(rows, index) for index in np.array_split(np.arange(_length(rows)), 3)]
