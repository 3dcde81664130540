"""Bytes to metric, set or ledger and back: what is in the file, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from streammetrics.core.accumulator import Feed
from streammetrics.core.errors import StateFormatError, StreamMetricsError
from streammetrics.core.metric import Mergeable, Metric, registered_name
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.state.container import packed, unpacked
from streammetrics.core.statistic import nested, part
from streammetrics.ledger.ledger import Ledger
from streammetrics.ledger.shards import of_parts, parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.stateful import Stateful


def to_bytes(what: Stateful) -> bytes:
    """Return the state of a metric, a set or a ledger: equal states give equal bytes."""
    if isinstance(what, Ledger):
        shards, arrays = parts(what.known)
        return packed({"class": "Ledger", "shards": shards}, arrays)
    if not isinstance(what, Mergeable):
        raise TypeError(f"a {type(what).__name__} has no state format")
    feeds, statistics, _ = what.alone().flush()
    arrays = {}
    for index, statistic in enumerate(statistics):
        arrays |= nested(str(index), statistic.arrays())
    rows = [[dict(sorted(facts.items())), n_rows, n_omitted] for facts, n_rows, n_omitted in feeds]
    return packed({**_description(what), "feeds": rows}, arrays)


def from_bytes(blob: bytes) -> Metric | MetricSet | Ledger:
    """Rebuild the metric, the set or the ledger whose `to_bytes` gave `blob`.

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
        meta, arrays = unpacked(bytes(blob))
        if meta["class"] == "Ledger":
            return Ledger.of(of_parts(meta["shards"], arrays, from_bytes))
        what = _built(meta)
        return what.over(_filled(what.alone(), meta, arrays))
    except StateFormatError:
        raise
    except (
        StreamMetricsError, SafetensorError, ValueError, TypeError, KeyError, IndexError,
        AttributeError, OverflowError, RecursionError, MemoryError,
    ) as error:  # fmt: skip
        raise StateFormatError(f"not a state of streammetrics: {error}") from error


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
    if isinstance(what, MetricSet):
        members = [{"name": name, **_description(what[name])} for name in what]
        return {"class": "MetricSet", "columns": what.columns, "metrics": members}
    assert isinstance(what, Metric)
    return {"class": registered_name(type(what)), "parameters": what.config}


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
