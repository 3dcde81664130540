"""The metrics asked for: ``F1,FBeta(beta=2),ROCAUC`` in words, then as objects."""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.core.columns.naming import near
from streammetrics.core.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# Python's spelling and JSON's, in any case.
WORDS = {
    "none": None, "null": None, "true": True, "false": False, "nan": math.nan, "inf": math.inf,
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """A metric by its name, with the parameters written beside it."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        written = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{self.name}({written})" if written else self.name


def parse(texts: Sequence[str]) -> list[Spec]:
    """Read ``F1,FBeta(beta=2)``: names in any case, and keyword parameters.

    Values are spelt as in Python or JSON, and words that are neither are text:
    ``F1(average=none)``, ``F1(average=macro)``.

    Raises:
        CommandError: A text is something else, or there is no such metric.
    """
    return [spec for text in texts for spec in _parsed(text)]


def _parsed(text: str) -> list[Spec]:
    try:
        tree = ast.parse(f"[{text}]", mode="eval").body
        items = tree.elts if isinstance(tree, ast.List) else []
        specs = [_spec(item) for item in items]
    except (SyntaxError, ValueError):
        specs = []
    if not specs:
        raise CommandError(
            f"--metrics {text!r}: expected names and parameters such as F1,FBeta(beta=2),ROCAUC; "
            "streammetrics metrics lists what there is"
        )
    return specs


def _spec(item: ast.expr) -> Spec:
    if isinstance(item, ast.Name):
        return Spec(known_as(item.id))
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and not item.args:
        parameters = {str(k.arg): _value(k.value) for k in item.keywords}
        return Spec(known_as(item.func.id), parameters)
    raise ValueError("neither a name nor a call with keywords")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=word):
            return WORDS.get(word.lower(), word)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return tuple(map(_value, items))
        case _:
            return ast.literal_eval(node)


def known_as(name: str) -> str:
    """Return the name of the metric that is meant, whatever its case, ``roc_auc`` for ROCAUC."""
    by_letters = {_letters(known): known for known in catalogue()}
    found = by_letters.get(_letters(name))
    if found is None:
        raise CommandError(f"no metric {name!r}{near(name, sorted(catalogue()))}")
    return found


def _letters(name: str) -> str:
    return name.lower().replace("_", "")


def literal(text: str) -> Any:
    """Read a label: an integer, a boolean, or text, which quotes make of anything."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
    return value if isinstance(value, bool | int | str) else text.strip()


def character(text: str) -> str:
    """Read a character, of which the tab has a name."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


def depths(texts: Sequence[str]) -> tuple[int, ...]:
    """Read numbers of results, 5,10,100."""
    text = ",".join(texts)
    values = tuple(map(literal, text.split(",")))
    if not all(type(value) is int and value > 0 for value in values):
        raise CommandError(f"--k {text}: expected whole numbers from 1 up, such as 5,10,100")
    return values


def literals(text: str) -> tuple[Any, ...]:
    """Read labels with commas between them; one that is text makes all of them text."""
    parts = [part for part in text.split(",") if part.strip()]
    values = tuple(map(literal, parts))
    if any(isinstance(value, str) for value in values):
        return tuple(
            v if isinstance(v, str) else p.strip() for v, p in zip(values, parts, strict=True)
        )
    return values


@cache
def catalogue() -> dict[str, type[Metric]]:
    """Return the public metrics of the package by name."""
    import streammetrics  # noqa: PLC0415 - the package imports no command line, nor this the whole of it early

    return {
        name: value
        for name, value in vars(streammetrics).items()
        if inspect.isclass(value) and issubclass(value, Metric) and not inspect.isabstract(value)
    }


def at_each(specs: Sequence[Spec], depths: Sequence[Any], *, strict: bool) -> list[Spec]:
    """Return the metrics with one for each of `depths` where it takes `k` and does not say it.

    Raises:
        CommandError: A metric lacks a parameter, or (with `strict`) `depths` are for none.
    """
    found: list[Spec] = []
    for spec in specs:
        open_k = "k" in _parameters(spec) and "k" not in spec.parameters
        each = [Spec(spec.name, {**spec.parameters, "k": k}) for k in depths]
        found += each if open_k else [spec]
    if strict and found == list(specs):
        shown = ", ".join(map(str, specs))
        raise CommandError(f"--k: none of the metrics takes it and leaves it open ({shown})")
    return found


def construct(
    specs: Sequence[Spec], shared: Mapping[str, Any], strict: Collection[str]
) -> dict[str, Metric]:
    """Build the metrics.

    Args:
        specs: What to build.
        shared: Parameters for all that take them and do not say otherwise.
        strict: Those of them that at least one metric has to take.

    Raises:
        CommandError: There is no such parameter, or a value is not allowed.
    """
    built: dict[str, Metric] = {}
    unused = set(strict)
    for spec in specs:
        names = _parameters(spec)
        if str(spec) in built:
            raise CommandError(f"the metric {spec} is asked for twice")
        metric, taken = _built(catalogue()[spec.name], spec, names, shared)
        built[str(spec)] = metric
        unused -= taken
    for name in sorted(unused):
        raise CommandError(
            f"--{name.replace('_', '-')} {shared[name]}: none of the metrics takes it "
            f"({', '.join(built)})"
        )
    return built


def _parameters(spec: Spec) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a metric; raise where it lacks one of those written."""
    parameters = inspect.signature(catalogue()[spec.name]).parameters
    for name in spec.parameters:
        if name not in parameters:
            raise CommandError(f"{spec.name} has no parameter {name!r}{near(name, parameters)}")
    return parameters


def _built(
    cls: type[Metric],
    spec: Spec,
    known: Mapping[str, inspect.Parameter],
    shared: Mapping[str, Any],
) -> tuple[Metric, set[str]]:
    common = {n: v for n, v in shared.items() if n in known and n not in spec.parameters}
    given = {**common, **spec.parameters}
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in given:
            option = " or --k 10" if name == "k" else ""
            raise CommandError(
                f"{spec.name} needs {name}, {cls._parameters[name].words}: "
                f"{spec.name}({name}=...){option}"
            )
    try:
        return cls(**given), set(common)
    except (ValueError, TypeError) as error:
        # One average of all metrics need not be known to each: ROCAUC has no "micro".
        if "average" in common:
            rest = {n: v for n, v in given.items() if n != "average"}
            with contextlib.suppress(ValueError, TypeError):
                return cls(**rest), set(common) - {"average"}
        why = str(error)
        if isinstance(error, TypeError):  # a comparison of what the parameter cannot be
            types = [f"{name} is {known[name].annotation}" for name in spec.parameters]
            why = f"a parameter is of the wrong type: {', '.join(types) or error}"
        raise CommandError(why if why.startswith(spec.name) else f"{spec}: {why}") from None
