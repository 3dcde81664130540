"""Estimates the memory and the disk that a configuration will take, by rows a minute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import InvalidBatchError, StreamMetricsError
from streammetrics.core.loading import from_bytes
from streammetrics.live.events import SECOND, shown_duration
from streammetrics.live.live import Live
from streammetrics.live.spans import metrics_of
from streammetrics.live.validation import kinds_of, truth_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.types import Array, Options
    from streammetrics.live.config import Config
    from streammetrics.live.service.config import Settings
    from streammetrics.live.validation import Declared
    from streammetrics.slices.keyed import By

_MINUTE = 60 * SECOND
_MOST = 1 << 20  # rows of a pane that are tried at most: the default of `max_bins` is as large
_WAITING = 4096  # waiting rows that are tried
_MANY = 1 << 30  # bytes from which advice follows
_WIDE = 4096  # bins that are many for a pane
_DELAY = 3600  # seconds in which the labels of the rows that are tried come
_SLICE = "(slice)"  # a column that no metric reads
_CLASSES = 10  # that are made up where any are valid


class NoExampleError(StreamMetricsError):
    """No rows can be made up for the columns of a configuration."""


class Size(NamedTuple):
    """Bytes in memory and in a file."""

    memory: float
    file: float

    def plus(self, other: Size, times: float = 1.0) -> Size:
        """Return the sum of this and a multiple of the other."""
        return Size(self.memory + times * other.memory, self.file + times * other.file)


def sized(found: Settings, rate: float, slices: int) -> Iterator[str]:
    """Yield a line on memory and disk once the service has run for as long as its tiers reach.

    Args:
        found: The configuration.
        rate: Rows with their labels a minute, whose scores all differ.
        slices: The number of slices of each kind, equally large.
    """
    with found.live(store=False) as live:
        config, finer = live._config, live._shared.current.panes._finer
    horizon = config.horizon if truth_of(found.suite) else 0
    kinds = len(found.options["by"])
    told, total = [], Size(0, 0)
    try:
        for length, n, waiting in _panes(config, finer, horizon):
            rows, pane = rate * length / _MINUTE, Size(0, 0)
            for count in [slices] * kinds or [1]:
                pane = pane.plus(_pane(found, rows / count, count))
            total = total.plus(pane, n).plus(pane._replace(file=0), waiting)
            every = n + waiting
            size = _shown(every * pane.memory)
            told.append(f"{every:,} panes of {shown_duration(length)} {size}")
        if horizon:
            most = min(rate * horizon / _MINUTE, config.max_pending)
            row = _waiting_row(found)
            total = total.plus(row, most)
            told.append(f"{most:,.0f} rows that wait {_shown(row.memory * most)}")
    except (InvalidBatchError, NoExampleError):
        yield "memory: there is no estimate for rows of these columns; Live.nbytes measures it"
        return
    names = [
        name
        for name, metric in metrics_of(found.suite).items()
        if metric.config.get("max_bins", 0) > _WIDE
    ]
    advice = ""
    if names and total.memory > _MANY:
        advice = f"; max_bins=1024 bounds the panes of {', '.join(names)}"
    if horizon and rate * horizon / _MINUTE > config.max_pending:
        advice += "; more rows wait than max_pending, so the oldest leave early"
    each = f" with {slices:,} slices of each kind" if kinds else ""
    yield f"memory: about {_shown(total.memory)}{each}: {', '.join(told)}{advice}"
    yield f"store: about {_shown(total.file)}"


def _panes(
    config: Config, finer: Sequence[int | None], horizon: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the length of panes, how many a tier has, and how many there are of rows that wait.

    A tier has no panes of rows that wait, or that the finer tier which divides it keeps.
    """
    waiting = horizon // config.unit
    for tier, place in zip(config.tiers, finer, strict=True):
        other = None if place is None else config.tiers[place]
        kept = max(horizon, 0 if other is None else other.length * other.count)
        n = max(-((kept - tier.length * tier.count) // tier.length), 0)
        yield tier.length, n, waiting if tier.length == config.unit else 0
    if all(tier.length != config.unit for tier in config.tiers):  # where days have zones
        yield config.unit, 0, waiting


def _pane(found: Settings, n: float, count: int) -> Size:
    """Return the size of a pane of `count` slices of n rows; of one without slices if it is 1."""
    if count == 1:
        return _tried(found, min(math.ceil(n), _MOST), 0)
    tried = min(count, max(int(_MOST / max(n, 1.0)), 2))
    rows = min(n, _MOST / tried)
    size, one = (_tried(found, math.ceil(rows * some), some) for some in (tried, 1))
    each = (count - tried) / (tried - 1)  # the other slices are as large as those beside the first
    return size.plus(size.plus(one, -1), each)


def _tried(found: Settings, rows: int, slices: int) -> Size:
    """Return the size of a pane of some rows, whose labels came later, if there are any."""
    live, declared = _empty(found, by=[[_SLICE]] if slices else ())
    none, truth = _size(live), truth_of(found.suite)
    columns = _rows(declared, rows)
    if slices:
        columns[_SLICE] = np.array([f"slice {k}" for k in range(slices)])[np.arange(rows) % slices]
    if truth:
        labels = {truth: columns.pop(truth)}
        rng = np.random.default_rng(1)
        live.predict(id=range(rows), time=np.zeros(rows), **columns)
        live.label(id=range(rows), time=rng.uniform(0, _DELAY, rows), **labels)
        last = {name: column[:1] for name, column in columns.items()}
        live.predict(id=[-1], time=[6 * _DELAY], **last)  # the others leave for their pane
    else:
        live.observe(time=np.zeros(rows), **columns)
    return _size(live).plus(none, -1)


def _waiting_row(found: Settings) -> Size:
    """Return the size of a row that waits, with its label."""
    live, declared = _empty(found, by=())
    columns, truth = _rows(declared, _WAITING), truth_of(found.suite)
    labels = {truth: columns.pop(truth)}
    ids = [f"{n:032x}" for n in range(_WAITING)]
    live.predict(id=ids, time=np.zeros(_WAITING), **columns)
    live.label(id=ids, time=np.ones(_WAITING), **labels)
    live.flush()
    file = len(live.to_bytes()) / _WAITING
    return Size(live._shared.current.join.table.nbytes / _WAITING, file)


def _empty(found: Settings, by: By) -> tuple[Live, Declared]:
    """Return a live state of the metrics that keeps a day, with other slices."""
    known = {*kinds_of(found.suite), *found.suite.columns.values(), found.options["proxy"]}
    types = {n: what for n, what in (found.options["types"] or {}).items() if n in known}
    live = Live(
        found.suite,
        tiers=[("1d", "2d")],
        label_ttl="1h",
        label_lateness="1h",
        labels=found.options["labels"],
        types=types,
        target_range=found.options["target_range"],
        proxy=found.options["proxy"],
        inputs=found.options["inputs"],
        by=by,
    )
    return live, live._config.declared


def _size(live: Live) -> Size:
    """Return the size of a live state whose panes are as small as those in which nothing comes."""
    blob = live.to_bytes()
    return Size(from_bytes(blob).nbytes, len(blob))


def _rows(declared: Declared, n: int) -> Options:
    """Return n rows as they are declared.

    Raises:
        NoExampleError: There are nested columns, texts, or ids of queries.
    """
    fields = [field for schema in declared._suite._plan.schemas for field in schema.fields]
    is_nested = any(field.nested or field.preparation for field in fields)
    if is_nested or "id" in declared.kinds.values():
        raise NoExampleError("rows of several values")
    rng = np.random.default_rng(0)
    names = [name for name in declared.kinds if name != _SLICE]
    found = {name: _column(declared, name, rng, n) for name in names}
    if declared._has_weights:
        found[declared.weights] = np.ones(n)
    for one in declared.inputs.every:
        known = one.categories or tuple(f"a{k}" for k in range(_CLASSES))
        numbers = one.kind == "number"
        made = rng.uniform(*(one.range or (0.0, 1.0)), n) if numbers else rng.choice(known, n)
        found.setdefault(one.name, made)
    return found


def _column(declared: Declared, name: str, rng: np.random.Generator, n: int) -> Array:
    what = declared._type(name)
    if declared.kinds[name] == "number":
        low, high = declared.target_range or (0.0, 1.0)
        found: Array = rng.uniform(low, high, n if what == 1 else (n, int(what)))
        return found if what == 1 else found / found.sum(axis=1, keepdims=True)
    if isinstance(what, int):
        return rng.integers(0, 2, (n, what))
    classes: Sequence[object] | None = None
    if name in declared._class_columns:
        classes = declared.labels
    if classes is None:
        classes = [f"a{k}" if what == "text" else k for k in range(_CLASSES)]
    return rng.choice(np.array(classes), n)


def _shown(n: float) -> str:
    return f"{n / 1e9:,.1f} GB" if n >= 1e9 else f"{n / 1e6:,.1f} MB"
