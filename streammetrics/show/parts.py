"""What a value that is more than a number is made of, with the names of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streammetrics.core.results.curves import Curves, Points, is_curve
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.values import KeyedValues, Report

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Vector:
    """A number for each of several classes, outputs or clusters."""

    what: str
    names: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Matrix:
    """Numbers by what is down, the true class, and what is across, the predicted one."""

    what: tuple[str, str]
    down: tuple[str, ...]
    across: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class NumberTable:
    """Several numbers for each of several names; None where a name has no such number."""

    what: str
    header: tuple[str, ...]
    lines: Mapping[str, tuple[float | None, ...]]


def part_of(value: object) -> Vector | Matrix | NumberTable | int:
    """Return what a value is made of: of a curve how many points, of a number 0."""
    match value:
        case LabelledArray(axes=[(what, labels)]):
            return Vector(what, _texts(labels), tuple(value.tolist()))
        case LabelledArray(axes=[(down, labels), (across, titles)]):
            rows = tuple(map(tuple, value.tolist()))
            return Matrix((down, across), _texts(labels), _texts(titles), rows)
        case KeyedValues(name=what):
            return Vector(what, _texts(value), tuple(value.values()))
        case Report():
            return _table(value)
        case Points() if not is_curve(value):
            return Vector("best", tuple(value._named()), _floats(value))
        case Curves() if value and not is_curve(value):
            lines = zip(value.labels, map(_floats, value), strict=True)
            header = tuple(value[0]._named())
            return NumberTable("class", header, {str(label): numbers for label, numbers in lines})
        case tuple():
            return len(value[-1])
    return 0


def _floats(point: Points) -> tuple[float, ...]:
    return tuple(map(float, point._named().values()))


def _texts(labels: Any) -> tuple[str, ...]:
    return tuple(map(str, labels))


def _table(value: Report) -> NumberTable:
    header = tuple(next(part for part in value.values() if isinstance(part, dict)))
    lines = {
        name: tuple(part.values())
        if isinstance(part, dict)
        else (*[None] * (len(header) - 2), part, None)  # accuracy, as scikit-learn prints it
        for name, part in value.items()
    }
    return NumberTable("class", header, lines)
