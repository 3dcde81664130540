"""Bytes to metric and back: a safetensors container, checked before anything is built."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from streammetrics.core.accumulator import Feed
from streammetrics.core.errors import StateFormatError, StreamMetricsError
from streammetrics.core.metric import Metric, registered_name
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.statistic import nested, part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.metric import Mergeable

FORMAT = 1  # raised when the layout changes; readers open every older one

_BLANK = "0" * 64
_CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')


def to_bytes(what: Mergeable) -> bytes:
    """Return the state of a metric or a set: equal configurations and rows give equal bytes."""
    accumulator = what.alone()
    feeds, statistics, _ = accumulator.flush()
    arrays: dict[str, NDArray[Any]] = {}
    for index, statistic in enumerate(statistics):
        arrays |= nested(str(index), statistic.arrays())
    arrays = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    meta = {"format": FORMAT, "checksum": _BLANK, **_description(what)}
    meta["feeds"] = [
        [dict(sorted(facts.items())), n_rows, n_omitted] for facts, n_rows, n_omitted in feeds
    ]
    text = json.dumps(_encoded(meta), separators=(",", ":"))
    blob = bytearray(safetensors.numpy.save(arrays, {"streammetrics": text}))
    start = _checksum_at(blob)
    blob[start : start + 64] = hashlib.sha256(blob).hexdigest().encode()
    return bytes(blob)


def from_bytes(blob: bytes) -> Metric | MetricSet:
    """Rebuild the metric or the set whose `to_bytes` gave `blob`.

    Nothing is unpickled or imported: only classes that are already defined are built, so a file
    with a user's own metric needs the module that defines it to be imported first.

    Raises:
        StateFormatError: The bytes are truncated, altered, of a later format or not a state.

    Example:
        >>> import streammetrics as sm
        >>> blob = sm.Mean().update([1.0, 2.0]).to_bytes()
        >>> sm.from_bytes(blob).compute()
        1.5
    """
    try:
        meta, arrays = _read(bytes(blob))
        what = _built(meta)
        what = what.over(_filled(what.alone(), meta, arrays))
    except StateFormatError:
        raise
    except (
        StreamMetricsError, SafetensorError, ValueError, TypeError, KeyError, IndexError,
        AttributeError, OverflowError, RecursionError, MemoryError,
    ) as error:  # fmt: skip
        raise StateFormatError(f"not a state of streammetrics: {error}") from error
    return what


def _filled(
    accumulator: Accumulator, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Accumulator:
    """Return the accumulator with the state of the file; every array of it must be used."""
    statistics = tuple(
        type(statistic).from_arrays(statistic.config, part(arrays, str(index)))
        for index, statistic in enumerate(accumulator.flush().statistics)
    )
    feeds = tuple(Feed(dict(facts), int(n), int(omitted)) for facts, n, omitted in meta["feeds"])
    if len(feeds) != len(accumulator.schemas) or any(min(feed[1:]) < 0 for feed in feeds):
        raise StateFormatError("the counts of rows do not fit the metric")
    if len(arrays) != sum(len(statistic.arrays()) for statistic in statistics):
        raise StateFormatError("there are arrays that belong to no statistic")
    accumulator.put(feeds, statistics)
    return accumulator


def _description(what: Mergeable) -> dict[str, Any]:
    if isinstance(what, Metric):
        return {"class": registered_name(type(what)), "parameters": what.config}
    if isinstance(what, MetricSet):
        members = [
            {
                "name": name,
                "class": registered_name(type(what[name])),
                "parameters": what[name].config,
            }
            for name in what
        ]
        return {"class": "MetricSet", "columns": what.columns, "metrics": members}
    raise TypeError(f"a {type(what).__name__} has no state format")


def _built(meta: Mapping[str, Any]) -> Metric | MetricSet:
    if meta["class"] == "MetricSet":
        metrics = {m["name"]: _metric(m["class"], m["parameters"]) for m in meta["metrics"]}
        return MetricSet(metrics, columns=meta["columns"])
    return _metric(meta["class"], meta["parameters"])


def _metric(name: str, parameters: Mapping[str, Any]) -> Metric:
    cls = Metric.registry.get(name)
    if cls is None:
        raise StateFormatError(
            f"the state is of a {name}, which is not defined here: import its module first, "
            "or read it with the version of streammetrics that wrote it"
        )
    return cls(**parameters)


def _read(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if len(blob) < 8 or struct.unpack("<Q", blob[:8])[0] > len(blob) - 8:
        raise StateFormatError(f"not a state of streammetrics, or cut short ({len(blob)} bytes)")
    start = _checksum_at(blob)
    claimed = blob[start : start + 64].decode()
    if hashlib.sha256(blob[:start] + _BLANK.encode() + blob[start + 64 :]).hexdigest() != claimed:
        raise StateFormatError("the checksum does not match: the state was altered or cut short")
    header = json.loads(blob[8 : 8 + struct.unpack("<Q", blob[:8])[0]])
    meta = _decoded(json.loads(header["__metadata__"]["streammetrics"]))
    if not isinstance(meta, dict) or not isinstance(meta.get("format"), int):
        raise StateFormatError("the state does not say which format it has")
    if not 1 <= meta["format"] <= FORMAT:
        raise StateFormatError(
            f"the state has format {meta['format']}; this version reads formats up to {FORMAT}"
        )
    return meta, safetensors.numpy.load(blob)


def _checksum_at(blob: bytes | bytearray) -> int:
    size = struct.unpack("<Q", blob[:8])[0]
    found = _CHECKSUM.search(blob, 8, 8 + size)
    if found is None:
        raise StateFormatError("not a state of streammetrics: it has no checksum")
    return found.start(1)


def _encoded(value: Any) -> Any:
    # JSON has neither infinities nor nan.
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: _decoded(item) for key, item in value.items()}
    return value
