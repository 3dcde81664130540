"""The metrics asked for: ``F1,FBeta(beta=2),ROCAUC`` in words, then as objects."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError, near
from streammetrics.core.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True)
class Spec:
    """A metric by name, with the parameters written beside it."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        written = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{self.name}({written})" if written else self.name


def parse(text: str) -> list[Spec]:
    """Read ``F1,FBeta(beta=2)``: names, and keyword parameters with literal values.

    Raises:
        CommandError: The text is something else.
    """
    try:
        tree = ast.parse(f"[{text}]", mode="eval").body
        items = tree.elts if isinstance(tree, ast.List) else []
        specs = [_spec(item) for item in items]
    except (SyntaxError, ValueError):
        specs = []
    if not specs:
        raise CommandError(
            f"--metrics {text!r}: expected names and parameters such as F1,FBeta(beta=2),ROCAUC"
        )
    return specs


def _spec(item: ast.expr) -> Spec:
    if isinstance(item, ast.Name):
        return Spec(item.id)
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and not item.args:
        return Spec(item.func.id, {str(k.arg): ast.literal_eval(k.value) for k in item.keywords})
    raise ValueError("neither a name nor a call with keywords")


def literal(text: str) -> Any:
    """Read a label: an integer, a boolean, or text, which quotes make of anything."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
    return value if isinstance(value, bool | int | str) else text.strip()


def literals(text: str) -> tuple[Any, ...]:
    """Read labels with commas between them; one that is text makes all of them text."""
    parts = [part for part in text.split(",") if part.strip()]
    values = tuple(map(literal, parts))
    if any(isinstance(value, str) for value in values):
        return tuple(
            v if isinstance(v, str) else p.strip() for v, p in zip(values, parts, strict=True)
        )
    return values


def catalogue() -> dict[str, type[Metric]]:
    """Return the public metrics of the package by name."""
    import streammetrics  # noqa: PLC0415 - the package imports no command line, nor this the whole of it early

    return {
        name: value
        for name, value in vars(streammetrics).items()
        if inspect.isclass(value) and issubclass(value, Metric) and not inspect.isabstract(value)
    }


def construct(
    specs: Sequence[Spec], shared: Mapping[str, Any], strict: Collection[str]
) -> dict[str, Metric]:
    """Build the metrics.

    Args:
        specs: What to build.
        shared: Parameters for all that take them and do not say otherwise.
        strict: Those of them that at least one metric has to take.

    Raises:
        CommandError: There is no such metric or parameter, or a value is not allowed.
    """
    known = catalogue()
    built: dict[str, Metric] = {}
    unused = set(strict)
    for spec in specs:
        if spec.name not in known:
            raise CommandError(f"no metric {spec.name!r}{near(spec.name, sorted(known))}")
        if str(spec) in built:
            raise CommandError(f"the metric {spec} is asked for twice")
        metric, taken = _built(known[spec.name], spec, shared)
        built[str(spec)] = metric
        unused -= taken
    for name in sorted(unused):
        raise CommandError(
            f"--{name.replace('_', '-')} {shared[name]}: none of the metrics takes it "
            f"({', '.join(built)})"
        )
    return built


def _built(cls: type[Metric], spec: Spec, shared: Mapping[str, Any]) -> tuple[Metric, set[str]]:
    names = tuple(inspect.signature(cls).parameters)
    for name in spec.parameters:
        if name not in names:
            raise CommandError(f"{spec.name} has no parameter {name!r}{near(name, names)}")
    common = {n: v for n, v in shared.items() if n in names and n not in spec.parameters}
    try:
        return cls(**spec.parameters, **common), set(common)
    except ValueError as error:
        # One average of all metrics need not be known to each: ROCAUC has no "micro".
        own = common.pop("average", None)
        if own is None:
            raise CommandError(f"{spec}: {error}") from None
        try:
            return cls(**spec.parameters, **common), set(common)
        except (ValueError, TypeError):
            raise CommandError(f"{spec}: {error}") from None
    except TypeError as error:
        raise CommandError(f"{spec}: {error}") from None
