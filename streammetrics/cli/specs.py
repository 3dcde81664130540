"""What options say of metrics: which there are to be, at which depths, with which parameters."""

from __future__ import annotations

import ast
import contextlib
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.metrics import specs as words
from streammetrics.metrics.specs import Spec, SpecError, parameters_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streammetrics.core.metric import Metric


def parse(texts: Sequence[str]) -> list[Spec]:
    """Read what was typed behind ``--metrics``, once or several times.

    Raises:
        CommandError: A text is something else, or there is no such metric.
    """
    try:
        return [spec for text in texts for spec in words.parse(text)]
    except SpecError as error:
        raise CommandError(f"--metrics: {error}") from error


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


def shares(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them, 0.1,0.5,0.9."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise CommandError(f"--levels {text}: expected numbers, such as 0.1,0.5,0.9") from None


def at_each(specs: Sequence[Spec], depths: Sequence[object], *, strict: bool) -> list[Spec]:
    """Return the metrics with one for each of `depths` where it takes `k` and does not say it.

    Raises:
        CommandError: `depths` are for none, with `strict`.
        SpecError: A metric lacks a parameter.
    """
    found: list[Spec] = []
    for spec in specs:
        open_k = "k" in parameters_of(spec) and "k" not in spec.parameters
        each = [Spec(spec.name, {**spec.parameters, "k": k}) for k in depths]
        found += each if open_k else [spec]
    if strict and found == list(specs):
        shown = ", ".join(map(str, specs))
        raise CommandError(f"--k: none of the metrics takes it and leaves it open ({shown})")
    return found


def construct(
    specs: Sequence[Spec], shared: Mapping[str, object], strict: Collection[str]
) -> dict[str, Metric]:
    """Build the metrics.

    Args:
        specs: What to build.
        shared: Parameters for all that take them and do not say otherwise.
        strict: Those of them that at least one metric has to take.

    Raises:
        CommandError: A metric is asked for twice, or none takes a parameter.
        SpecError: There is no such parameter, or a value is not allowed.
    """
    built: dict[str, Metric] = {}
    unused = set(strict)
    for spec in specs:
        if str(spec) in built:
            raise CommandError(f"the metric {spec} is asked for twice")
        metric, taken = _built(spec, shared)
        built[str(spec)] = metric
        unused -= taken
    for name in sorted(unused):
        raise CommandError(
            f"--{name.replace('_', '-')} {shared[name]}: none of the metrics takes it "
            f"({', '.join(built)})"
        )
    return built


def _built(spec: Spec, shared: Mapping[str, object]) -> tuple[Metric, set[str]]:
    known = parameters_of(spec)
    common = {n: v for n, v in shared.items() if n in known and n not in spec.parameters}
    try:
        return words.construct(Spec(spec.name, {**common, **spec.parameters})), set(common)
    except SpecError as error:
        # One average of all metrics need not be known to each: ROCAUC has no "micro".
        rest = {n: v for n, v in common.items() if n != "average"}
        if rest != common:
            with contextlib.suppress(SpecError):
                metric = words.construct(Spec(spec.name, {**rest, **spec.parameters}))
                return metric, set(rest)
        if "k" in known and "k" not in {*common, *spec.parameters}:
            raise CommandError(f"{error} or --k 10") from None
        raise
