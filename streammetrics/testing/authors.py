"""`check_metric`: reports everything that is missing or broken in a metric.

>>> import numpy as np
>>> import streammetrics as sm
>>> from streammetrics.testing import check_metric
>>> check_metric(sm.Mean, {"values": np.array([0.5, 0.25, 0.25, -3.0])})
"""

from __future__ import annotations

import doctest
import inspect
import math
import sys
import warnings
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, get_args

import numpy as np

from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning, an
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import is_curve, plain
from streammetrics.core.statistic import Statistic
from streammetrics.testing.behaviour import of_rows, said
from streammetrics.testing.laws import numbers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from streammetrics.core.types import Array
    from streammetrics.testing.behaviour import Finding

_CLASSES = 8  # number of classes of which a batch alone is tried
_ROWS = 24  # number of generated rows if the author passes none


def check_metric(
    metric: Metric | type[Metric],
    rows: Mapping[str, object] | None = None,
    *,
    oracle: Callable[..., object] | None = None,
    seed: int = 0,
) -> None:
    """Check a metric completely, and report all problems at once.

    Checks the documentation and its example; parameters and statistics; the signature of `update`;
    state of the statistics outside their fields; whole and fractional weights, if the metric takes
    them; ``nan_policy``; strided, read-only and float32 columns; the laws of `check_laws` on the
    given rows; the value without rows; contradictions between the value, `bounds`, `exact`,
    `value_range` and `confidence`; zeros of both signs; a state merged with itself 70 times; forged
    states; a million rows; one object and separate objects in threads; extreme numbers; and if the
    rows show no problem, a new process with other hashes, if it can import the class.

    Args:
        metric: The metric, or its class if it needs no arguments.
        rows: Columns by input name, 20 to 1000 rows that are hard for the metric: ties, repeated
            rows, rows that cancel. ``None`` generates rows from the kinds of the columns.
        oracle: A plain function of the columns, by name, that returns the value; a parameter
            ``sample_weight`` is given weights, which are 1 for rows without if it has no default.
        seed: Seed of the random splits and orders.

    Raises:
        AssertionError: There are problems; the message lists all of them, with the smallest batch
            found for each.
    """
    cls = metric if isinstance(metric, type) else type(metric)
    if not issubclass(cls, Metric):
        raise TypeError(f"expected a metric or its class, not {an(cls.__name__)}")
    findings = list(_of_class(cls))
    made = _made(metric, findings)
    if made is not None:
        findings += _of_object(made, rows, seed, oracle)
    if findings:
        count = f"{len(findings)} finding{'s' * (len(findings) > 1)}"
        lines = [f"{place}. {about}: {told}" for place, (about, told) in enumerate(findings, 1)]
        raise AssertionError("\n".join([f"{cls.__name__} has {count}:", *lines]))


def _made(metric: Metric | type[Metric], findings: list[Finding]) -> Metric | None:
    """Return an empty metric; if it cannot be created, add a finding and return None."""
    if not isinstance(metric, type):
        return metric.copy().reset()
    if inspect.isabstract(metric):
        missing = ", ".join(sorted(metric.__abstractmethods__))
        findings.append(("class", f"it does not say {missing}: write these methods"))
        return None
    needed = [name for name, known in metric._parameters.items() if known.required]
    if needed:
        asked = f"parameters without a default ({', '.join(needed)})"
        findings.append(("class", f"it has {asked}: pass an object, not the class"))
        return None
    try:
        return metric()
    except Exception as error:
        findings.append(("class", f"it cannot be made without parameters: {said(error)}"))
        return None


def _of_class(cls: type[Metric]) -> Iterator[Finding]:
    """Yield the findings of the class: documentation, types and parameters."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    if not text:
        yield "documentation", "the class has no docstring: say what it is, and its formula"
    elif ">>> " not in text:
        yield "documentation", 'the docstring has no example: show one under "Example:"'
    else:
        yield from _of_example(cls, text)
    inherited = " ".join(base.__doc__ or "" for base in cls.__mro__)
    for name in cls._parameters:
        if name not in inherited:
            yield "documentation", f'the parameter {name} is not described under "Args:"'
    known = {
        name
        for base in cls.__mro__[1:]
        for name in (*vars(base), *vars(base).get("__annotations__", ()))
    }
    for name, value in vars(cls).items():
        constant = isinstance(value, bool | int | float | str | list | dict)
        if constant and not name.startswith("_") and name not in known:
            yield (
                "parameters",
                f"{name} has no annotation, so it is not a parameter: give it a type",
            )
    said = [
        argument
        for base in cls.__mro__
        for generic in base.__dict__.get("__orig_bases__", ())
        for argument in get_args(generic)
        if not isinstance(argument, TypeVar)
    ]
    if not said:
        yield "types", f"nobody knows what its value is: write class {cls.__name__}(Metric[float])"
    if "<locals>" in cls.__qualname__:
        yield "class", "it is defined inside a function, where pickle does not find it: move it out"


def _of_example(cls: type[Metric], text: str) -> Iterator[Finding]:
    names = dict(vars(sys.modules[cls.__module__])) | {cls.__name__: cls}
    test = doctest.DocTestParser().get_doctest(text, names, cls.__name__, None, None)
    told: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        failed, _ = doctest.DocTestRunner().run(test, out=told.append)
    if failed:
        lines = [line.strip() for line in "".join(told).splitlines()]
        first = next((i for i, line in enumerate(lines) if line == "Failed example:"), 0)
        brief = " ".join(filter(None, lines[first:]))
        yield "documentation", f"the example does not run as it is written. {brief[:300]}"


def _of_object(
    metric: Metric,
    rows: Mapping[str, object] | None,
    seed: int,
    oracle: Callable[..., object] | None,
) -> Iterator[Finding]:
    """Yield the findings of an instance fed with rows."""
    yield from _of_parameters(metric)
    broken = list(_of_statistics(metric))
    yield from broken
    yield from _of_nothing(metric)
    if broken:
        return
    columns = made_up(metric) if rows is None else {n: np.asarray(c) for n, c in rows.items()}
    if not len(next(iter(columns.values()), ())):
        yield "rows", "there are none, so nothing else was checked: pass 20 to 1000"
        return
    try:
        metric.copy().feed(columns).to_bytes()
    except Exception as error:
        advice = "pass rows that it takes" if rows is None else "these rows are to be fed"
        yield "rows", f"they are refused, so nothing else was checked ({advice}): {said(error)}"
        return
    for of, batch in (("", columns), *_of_one_class(metric, columns)):
        try:
            with warnings.catch_warnings(action="ignore"):
                value = metric.copy().feed(batch).compute()
        except Exception as error:
            if of and isinstance(error, StreamMetricsError):
                continue  # it may need both classes
            yield "value", f"compute() raises{of}, so nothing else was checked: {said(error)}"
            return
        numbers = list(numbers_in(plain(value)))
        if not of and (value is None or (numbers and all(map(math.isnan, numbers)))):
            advice = "return a number, or pass rows for which it is defined"
            yield "value", f"it is {value} on these rows, so no formula was checked: {advice}"
    yield from of_rows(metric, columns, seed, oracle)


def _of_one_class(
    metric: Metric, columns: Mapping[str, Array]
) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield the rows with one class in all columns of labels, for the first few classes."""
    kinds = {n: k for statistic in metric.statistics() for n, k in statistic.schema.kinds.items()}
    known = [n for n, k in kinds.items() if k == "label" and columns.get(n, np.zeros(())).ndim == 1]
    alike = [n for n in known if columns[n].dtype.kind == columns[known[0]].dtype.kind]
    labels = (x for n in alike for x in columns[n].tolist() if isinstance(x, int | float | str))
    for label in islice(dict.fromkeys(labels), _CLASSES):
        one = {name: np.full(len(columns[name]), label) for name in alike}
        yield f" for rows of one class ({label!r} in {', '.join(alike)})", {**columns, **one}


def _of_parameters(metric: Metric) -> Iterator[Finding]:
    try:
        twin = type(metric)(**metric.config)
        hash(metric._key)
    except Exception as error:
        yield "parameters", f"it cannot be made again from its own: {said(error)}"
        return
    if twin._key != metric._key:
        yield (
            "parameters",
            "rebuilt from its own config it is a different metric: make check_parameters stable",
        )


def _of_statistics(metric: Metric) -> Iterator[Finding]:
    first, second = metric.statistics(), metric.statistics()
    if not isinstance(first, tuple) or not all(isinstance(s, Statistic) for s in first):
        yield "statistics", f"statistics() gives {first!r}: return a tuple of statistics"
        return
    if any(one is other for one in first for other in second):
        yield "statistics", "statistics() gives the same objects twice: make new ones"
    if [s._key for s in first] != [s._key for s in second]:
        yield "statistics", "statistics() gives others each time: let it depend on parameters only"


def _of_nothing(metric: Metric) -> Iterator[Finding]:
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            value = metric.copy().compute()
        except Exception as error:
            yield "no rows", f"compute() raises: {said(error)}; return nan there"
            return
    numbers = list(numbers_in(plain(value)))
    made = any(number == number and number != 0 for number in numbers)  # noqa: PLR0124 - excludes nan
    if made and not is_curve(value):  # whose ends are known
        yield "no rows", f"compute() makes up {value!r}: return nan where nothing is defined"
    odd = [warning for warning in caught if warning.category is not UndefinedMetricWarning]
    if odd:
        yield "no rows", f"compute() warns by itself ({odd[0].message}): test for it and return nan"


def made_up(metric: Metric) -> dict[str, Array]:
    """Return rows for a metric, generated from the kinds of its columns, with ties and repeats."""
    place = np.arange(_ROWS)
    first: dict[str, Array] = {
        "label": place % 2,
        "id": place % 5,
        "number": (place * 7 % 11 + 1) / 16,
    }
    later = {"label": place % 2 ^ (place % 3 == 0), "id": place, "number": (place % 4 + 1) / 8}
    schemas = [statistic.schema for statistic in metric.statistics()]
    columns: dict[str, Array] = {}
    seen = set()
    for name, kind in {n: k for schema in schemas for n, k in schema.kinds.items()}.items():
        columns[name] = (later if kind in seen else first)[kind]
        seen.add(kind)
    if "query_weight" in columns:
        columns["query_weight"] = (first["id"] + 1) / 4  # constant within a query
    return columns
