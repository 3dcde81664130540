"""Which metrics a set is made of: what is refused, how two sets differ, what a file says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streammetrics.core.by_name.shortcuts import by_name
from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.metric import Metric
from streammetrics.core.stateful import registered


def members_of(metrics: object) -> Mapping[str, Metric]:
    """Return the metrics by name that a new set is asked to have.

    Raises:
        TypeError: These are no metrics by name, or a name is no string.
        ValueError: One has seen rows, there is none of a name, or a name stands twice.
    """
    given = metrics if isinstance(metrics, Mapping) else by_name(metrics)
    if given is None:
        raise TypeError(
            f"a set takes its metrics by name, not as {an(type(metrics).__name__)}: "
            f"MetricSet({{{_by_name(metrics)}}})"
        )
    for name, metric in given.items():
        if not isinstance(name, str):
            raise TypeError(f"a metric is named by a string, not by {name!r}: {str(name)!r}")
        if not isinstance(metric, Metric):
            raise TypeError(f"{name!r} is {_kind(metric)}")
        if metric.n_rows or metric.n_omitted:
            raise ValueError(
                f"{name!r} has already seen {metric.n_rows:,} rows, and a set starts empty: "
                "reset() it or make a new one"
            )
    return given


def told_apart(mine: Mapping[str, Metric], theirs: Mapping[str, Metric]) -> list[str]:
    """Return in what two sets of metrics differ: names, classes or parameters."""
    parts = [f"{name!r} is only there" for name in theirs if name not in mine]
    parts += [f"{name!r} is only here" for name in mine if name not in theirs]
    for name in mine:
        if name in theirs and theirs[name]._key != mine[name]._key:
            alike = type(theirs[name]) is type(mine[name])
            parts.append(
                f"of {name!r}, {mine[name]._apart(theirs[name])}"
                if alike
                else f"{name!r} is {theirs[name]._titled()} there, {mine[name]._titled()} here"
            )
    return parts


def members_written(members: object) -> dict[str, Metric]:
    """Return the metrics that a file says a set has."""
    if not isinstance(members, tuple) or not all(isinstance(member, dict) for member in members):
        raise StateFormatError("the state does not say which metrics the set has")
    return {_name(member): _configured(member) for member in members}


def _configured(member: Mapping[str, object]) -> Metric:
    cls = registered(member.get("class"))
    if not issubclass(cls, Metric):
        raise StateFormatError(f"a set holds metrics, not {an(cls.__name__)}")
    return cls._configured(member)


def _name(member: Mapping[str, object]) -> str:
    name = member.get("name")
    if not isinstance(name, str):
        raise StateFormatError("a metric of the set has no name")
    return name


def _kind(value: object) -> str:
    if isinstance(value, type) and issubclass(value, Metric):
        return f"a class, not a metric: {value.__name__}() makes one"
    return f"{an(type(value).__name__)}, not a metric"


def _by_name(metrics: object) -> str:
    """Return the metrics as they would be written by name, where these are metrics."""
    given = metrics if isinstance(metrics, Iterable) else [metrics]
    some = [metric for metric in given if isinstance(metric, Metric)]
    shown = (f"{type(metric).__name__.lower()!r}: sm.{metric._titled()}" for metric in some)
    return ", ".join(shown) or "'f1': sm.F1()"
