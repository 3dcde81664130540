"""The file format of a `Live`, and of its state in a store: panes, and rows one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    an,
)
from streammetrics.core.feeding.many import StateTable, are_facts
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.registry import registered_name
from streammetrics.core.state.arrays import json_array, json_of, nested, part, take_array
from streammetrics.core.state.container import packed, unpacked
from streammetrics.live.config import Config
from streammetrics.live.events import LATEST, SECOND, column_arrays, column_of
from streammetrics.live.index import LABELLED, LabelRows, Predictions
from streammetrics.live.join import kept_rows
from streammetrics.live.panes import NEVER, Document, Panes, digest, runs
from streammetrics.live.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.mergeable import Description
    from streammetrics.core.types import Array, Arrays
    from streammetrics.core.types import Document as Told
    from streammetrics.live.join import Join, RowBlock
    from streammetrics.live.possible.unlabelled import UnlabelledPanes


class Base(NamedTuple):
    """A state in a store: all but the panes, and the documents of these, which are read later.

    Attributes:
        head: The bytes of all but the panes.
        documents: The bytes of documents by their names; empty for those that the store has.
        size: The bytes of both, with those that the store has.
    """

    head: bytes
    documents: dict[str, bytes]
    size: int


def base_of(cls: type, pipeline: Pipeline, known: Collection[str]) -> Base:
    """Return the state of a settled pipeline for a store that has some documents."""
    documents: dict[str, bytes] = {}
    sizes: dict[str, int] = {}

    def write(panes: Panes) -> dict[str, Array]:
        names = []
        for row in panes.rows:
            for name, size, blob in row.documents(known):
                names.append(name)
                sizes[name] = size
                documents[name] = documents.get(name) or blob
        told = {"documents": json_array(names), "facts": json_array([*panes.facts])}
        return _numbers(panes) | told

    head = packed(*described(cls, pipeline, write))
    return Base(head, documents, len(head) + sum(sizes.values()))


def pipeline_in(base: Base) -> Pipeline:
    """Return the pipeline of a state in a store; its panes are read when they are needed.

    Raises:
        StateFormatError: The bytes are not those that were written.
    """
    for name, blob in base.documents.items():
        if digest(blob) != name:
            raise StateFormatError("the checksum of panes does not match")

    def take(arrays: Arrays, panes: Panes) -> None:
        names, facts = (json_of(take_array(arrays, n, "uint8")) for n in ("documents", "facts"))
        every = _tiers(arrays, panes)
        found = [[*runs(numbers)] for numbers in every]
        if not isinstance(names, list) or len(names) != sum(map(len, found)):
            raise StateFormatError("the panes of the state do not fit its documents")
        if not isinstance(facts, list) or len(facts) != len(panes.facts):
            raise StateFormatError("the panes of the state do not fit its metrics")
        if not all(map(are_facts, facts)) or not base.documents.keys() >= set(names):
            raise StateFormatError("the state lacks facts or documents of its panes")
        rest, panes.facts = iter(names), tuple(facts)
        for row, groups in zip(panes.rows, found, strict=True):
            pairs = [(group, next(rest)) for group in groups]
            row.put_unread(Document(panes.plan, base.documents[n], n, g) for g, n in pairs)

    file = unpacked(base.head)
    return read(file.meta, file.arrays, take)


def bytes_of(cls: type, pipeline: Pipeline) -> bytes:
    """Return the `to_bytes()` of a live state of class `cls` with a settled pipeline."""
    return packed(*described(cls, pipeline))


def pipeline_of(blob: bytes) -> Pipeline:
    """Return the pipeline of the live state serialized in `blob`."""
    live = from_bytes(blob)
    shared = getattr(live, "_shared", None)
    if shared is None:
        raise IncompatibleMetricsError(f"cannot merge {an(type(live).__name__)} into a Live")
    pipeline: Pipeline = shared.current
    return pipeline


def described(
    cls: type, pipeline: Pipeline, write: Callable[[Panes], dict[str, Array]] | None = None
) -> Description:
    """Return the metadata and arrays of a settled pipeline, and an empty opening.

    Args:
        cls: The class of the live state.
        pipeline: The pipeline.
        write: Returns panes as arrays; by default all of their states.
    """
    write = write or _panes
    rows, row_arrays = _rows(pipeline.join)
    newest = pipeline.newest.settled()
    told = {
        "class": registered_name(cls),
        "config": pipeline.config.described(),
        "newest": pipeline.panes.newest,
        "rows": rows,
        "newest rows": [[list(column) for column in part.form] for part in newest],
    }
    if any(pipeline.floors):
        told["floors"] = [*pipeline.floors]
    observed: dict[str, Array] = {}
    if len(pipeline.identified.table) or pipeline.identified.evicted_until >= 0:
        told["observations"], observed = _rows(pipeline.identified)
    arrays = {
        "suite": np.frombuffer(pipeline.suite.to_bytes(), np.uint8),
        **nested("panes", write(pipeline.panes)),
        **nested("counted", write(pipeline.counted)),
        **nested("left", _left(pipeline.left, write)),
        **(nested("judged", write(pipeline.judged)) if pipeline.judged.plan.schemas else {}),
        **(nested("inputs", write(pipeline.watched)) if pipeline.inputs else {}),
        **nested("references", pipeline.inputs.arrays()),
        **nested("rows", row_arrays),
        **nested("observations", observed),
        **nested("newest", _newest(newest)),
    }
    return told, arrays, ""


def read(
    meta: Mapping[str, object], arrays: Arrays, take: Callable[[Arrays, Panes], None] | None = None
) -> Pipeline:
    """Return the pipeline described by metadata and arrays, fully validated.

    Args:
        meta: The metadata.
        arrays: The arrays.
        take: Reads panes that `described` has written with the counterpart of this function.
    """
    take = take or _read_panes
    suite = from_bytes(take_array(arrays, "suite", "uint8").tobytes())
    if not isinstance(suite, Mergeable) or suite.n_rows:
        raise StateFormatError("a Live holds a metric, or a set, without rows")
    config = Config.read(meta.get("config"), suite, part(arrays, "references"))
    pipeline = _pipeline(suite, config)
    newest = _time(meta.get("newest"))
    if "floors" in meta:
        pipeline.evict(_floors(meta["floors"], newest, pipeline))
    kept = {"panes": pipeline.panes, "counted": pipeline.counted}
    if pipeline.judged.plan.schemas:
        kept["judged"] = pipeline.judged
    if pipeline.inputs:
        kept["inputs"] = pipeline.watched
    for name, panes in kept.items():
        panes.newest = newest
        take(part(arrays, name), panes)
    pipeline.left.advance(newest)
    if left := part(arrays, "left"):
        _read_left(left, pipeline.left, take)
    try:  # rows from a file are validated like a caller's
        _read_rows(meta.get("rows"), part(arrays, "rows"), pipeline.join, pipeline)
        pipeline.identified.newest = pipeline.join.newest
        if "observations" in meta:
            rows = part(arrays, "observations")
            _read_rows(meta["observations"], rows, pipeline.identified, pipeline)
            if pipeline.identified.newest != pipeline.join.newest:
                raise StateFormatError("the newest times of the waiting rows differ")
        _read_newest(meta.get("newest rows"), part(arrays, "newest"), pipeline)
        pipeline.learn()
    except InvalidBatchError as error:
        raise StateFormatError(f"rows that are kept cannot be taken: {error}") from error
    pipeline.restart()
    return pipeline


def _floors(told: object, newest: int, pipeline: Pipeline) -> tuple[int, ...]:
    """Return the floors of a state; no tier lacks its newest pane."""
    newests = [tier.number(max(newest, 0)) for tier in pipeline.config.tiers]
    if (
        not isinstance(told, tuple)
        or len(told) != len(newests)
        or not all(
            type(floor) is int and 0 <= floor <= n for floor, n in zip(told, newests, strict=True)
        )
        or not any(told)
    ):
        raise StateFormatError("the state has no valid panes from which on it keeps its rows")
    return told


def _pipeline(suite: Mergeable, config: Config) -> Pipeline:
    try:
        return Pipeline(suite, config)
    except ValueError as error:
        raise StateFormatError(f"the state has unknown parameters: {error}") from error


# --- panes ---------------------------------------------------------------------------------------


def _numbers(panes: Panes) -> dict[str, Array]:
    """Return the numbers of the panes, and how many there are in each tier."""
    numbers = [np.array(list(row.states), np.int64) for row in panes.rows]
    counts = np.array([len(mine) for mine in numbers], np.int64)
    return {"numbers": np.concatenate(numbers), "tiers": counts}


def _panes(panes: Panes) -> dict[str, Array]:
    every = (row.settled(number) for row in panes.rows for number in list(row.states))
    table = StateTable.of(panes.plan, [state for state in every if state is not None])
    return {**_numbers(panes), **nested("states", table.arrays())}


def _tiers(arrays: Arrays, panes: Panes) -> list[list[int]]:
    """Return the numbers of the panes of each tier."""
    numbers, counts = take_array(arrays, "numbers", "int64"), take_array(arrays, "tiers", "int64")
    if len(counts) != len(panes.tiers) or counts.min() < 0 or counts.sum() != len(numbers):
        raise StateFormatError("the panes of the state do not fit its tiers")
    found = np.split(numbers, np.cumsum(counts)[:-1])
    for tier, mine in zip(panes.tiers, found, strict=True):
        if len(mine) and not (
            panes.newest >= 0
            and (np.diff(mine) > 0).all()
            and tier.oldest(panes.newest) <= mine[0]
            and mine[-1] <= tier.number(panes.newest)
        ):
            raise StateFormatError("the numbers of the panes are not those that are kept")
    return [mine.tolist() for mine in found]


def _read_panes(arrays: Arrays, panes: Panes) -> None:
    every = _tiers(arrays, panes)
    table = StateTable.restored(panes.plan, part(arrays, "states"), sum(map(len, every)))
    states = map(table.at, range(table.size))
    for row, numbers in zip(panes.rows, every, strict=True):
        row.put(dict(zip(numbers, states, strict=False)))
    try:
        panes.agree()
    except InvalidBatchError as error:
        raise StateFormatError(f"the panes saw different kinds of rows: {error}") from error


def _left(left: UnlabelledPanes, write: Callable[[Panes], dict[str, Array]]) -> dict[str, Array]:
    """Return the arrays of the rows that left without a label, if there are any."""
    if not any(row.states for panes in left.columns.values() for row in panes.rows):
        return {}
    arrays: dict[str, Array] = {}
    for place, (_, panes) in enumerate(sorted(left.columns.items())):
        arrays |= nested(str(place), write(panes))
    return arrays


def _read_left(
    arrays: Arrays, left: UnlabelledPanes, take: Callable[[Arrays, Panes], None]
) -> None:
    if {name.partition("/")[0] for name in arrays} != set(map(str, range(len(left.columns)))):
        raise StateFormatError("the state lacks its rows that stayed unlabelled")
    for place, (_, panes) in enumerate(sorted(left.columns.items())):
        take(part(arrays, str(place)), panes)


def _time(value: object) -> int:
    if type(value) is not int or not NEVER <= value < LATEST * SECOND:
        raise StateFormatError("the state has no valid newest time")
    return value


# --- waiting rows --------------------------------------------------------------------------------


def _rows(join: Join) -> tuple[Told, dict[str, Array]]:
    table, others = join.table, join.other_labels()
    keys, times = table.keys[: len(table)], table.times.values
    order = np.lexsort((keys[:, 1], keys[:, 0], times))
    rows, flags = table.at(order), table.flags.values[order].astype(np.uint8)
    names = list(join.names) if len(table) else []
    told: Told = {"newest": join.newest, "displaced": join.evicted_until, "names": names}
    if join.limit < join.oldest:  # the base of a store, in which rows wait for other workers
        told["limit"] = join.limit
    arrays: dict[str, Array] = {"keys": rows.keys, "times": rows.times, "flags": flags}
    for place, column in enumerate(rows.columns if names else ()):
        arrays |= nested(f"column/{place}", column_arrays(column))
    labelled = order[flags & LABELLED > 0]
    if labelled.size:
        arrays |= nested("labels", _labels(table.labels_at(labelled)))
    if others is not None:
        arrays |= nested("alone", {"keys": others.keys, **_labels(others)})
    return told, arrays


def _labels(labels: LabelRows) -> dict[str, Array]:
    held = {"times": labels.times, "versions": labels.versions}
    return {**held, **nested("values", column_arrays(labels.values))}


def _read_rows(told: object, arrays: Arrays, join: Join, pipeline: Pipeline) -> None:
    form = ["newest", "displaced", "names"]
    if not isinstance(told, dict) or list(told) not in (form, [*form, "limit"]):
        raise StateFormatError("the state does not say which rows wait")
    limit = _time(told.get("limit", NEVER))
    names = told["names"]
    is_named = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not is_named or len(set(names)) < len(names):
        raise StateFormatError("the columns of the rows that wait have no names")
    keys, times = _taken_keys(arrays), take_array(arrays, "times", "int64")
    flags = take_array(arrays, "flags", "uint8")
    columns = [column_of(part(arrays, f"column/{place}")) for place in range(len(names))]
    join.newest, join.evicted_until = _time(told["newest"]), _time(told["displaced"])
    if {len(keys), len(flags), *map(len, columns)} != {len(times)}:
        raise StateFormatError("the columns of the rows that wait differ in length")
    if limit != NEVER:
        join.limit = limit
    if len(times):
        _check_rows(times, flags, join)
        every = dict(zip(names, columns, strict=True))
        pipeline.keys.check(pipeline.inputs.rest(every), without=join.label)
        pipeline.inputs.check(every)
        join.name(names)
        join.table.append(Predictions(keys, times, tuple(columns)))
        if (join.table.find(keys) != np.arange(len(keys))).any():
            raise StateFormatError("the waiting rows of the state are not valid")
        labelled = np.flatnonzero(flags & LABELLED > 0)
        if labelled.size and not join.label:
            raise StateFormatError("observations of the state have labels beside their own")
        if labelled.size:
            labels = _read_labels(part(arrays, "labels"), keys[labelled])
            join.table.label(labelled, labels)
        join.table.flags.values[:] = flags
    alone = part(arrays, "alone")
    if alone and join.label:
        join.put_alone(_read_labels(alone, _taken_keys(alone)))


def _check_rows(times: Array, flags: Array, join: Join) -> None:
    timely = join.floor <= times.min() and times.max() <= join.newest
    if flags.max() >= 64 or not timely or len(flags) > join.config.max_pending:
        raise StateFormatError("the waiting rows of the state are not valid")


def _taken_keys(arrays: Arrays) -> NDArray[np.uint64]:
    keys = take_array(arrays, "keys", "uint64", 2)
    if keys.shape[1] != 2:
        raise StateFormatError("the ids of the waiting rows have the wrong shape")
    return keys


def _read_labels(arrays: Arrays, keys: NDArray[np.uint64]) -> LabelRows:
    times = take_array(arrays, "times", "int64")
    versions = take_array(arrays, "versions", "int64")
    values = column_of(part(arrays, "values"))
    if not len(keys) == len(times) == len(versions) == len(values):
        raise StateFormatError("the labels of the rows that wait differ in length")
    if values.nulls is not None:
        raise StateFormatError("the labels of the rows that wait are missing")
    return LabelRows(keys, times, versions, values)


# --- individually kept rows ----------------------------------------------------------------------


def _newest(parts: Sequence[RowBlock]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for place, rows in enumerate(parts):
        arrays |= nested(str(place), {"times": rows.times, "keys": rows.keys})
        for number, column in enumerate(rows.columns):
            arrays |= nested(f"{place}/{number}", column_arrays(column))
    return arrays


def _read_newest(told: object, arrays: Arrays, pipeline: Pipeline) -> None:
    if not isinstance(told, tuple) or not all(map(_is_form, told)):
        raise StateFormatError("the state does not say which rows it keeps one by one")
    for place, form in enumerate(told):
        mine = part(arrays, str(place))
        times, keys = take_array(mine, "times", "int64"), _taken_keys(mine)
        columns = {
            name: column_of(part(mine, str(number))) for number, (name, _) in enumerate(form)
        }
        if {len(keys), *map(len, columns.values())} != {len(times)}:
            raise StateFormatError("the columns of the rows that are kept differ in length")
        pipeline.keys.check(columns, without=pipeline.config.declared.proxy)
        pipeline.newest.add(kept_rows(times, keys, columns))
    held = pipeline.newest.settled()
    if [rows.form for rows in held] != list(told):
        raise StateFormatError("the types of rows that are kept are not those of their columns")


def _is_form(told: object) -> bool:
    return isinstance(told, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
        for pair in told
    )
