"""Averages over classes, some of whose values may be 0/0, and the weights of an F measure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.constraints import OrNan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.types import Bools, Floats


# What 0/0 gives, see `mean_of_classes`; sums of it over any rows and classes stay finite.
ZeroDivision = Annotated[float, OrNan(1e100)] | None


def beta_weights(beta: float) -> tuple[float, float]:
    """Return the weights of recall and precision in an F measure, beta² to 1, without overflow."""
    # Divided by the square of a large beta, which may be beyond float64.
    return (1.0, 1 / beta / beta) if beta > 1024.0 else (beta * beta, 1.0)


class ClassMean(NamedTuple):
    """A mean over classes, and the text of a warning, empty where every class counts."""

    value: float
    doubt: str


def mean_of_classes(
    values: Floats,
    weight: Floats,
    seen: Callable[[], Bools],
    labels: Sequence[object],
    zero_division: float | None,
    of: str = "",
) -> ClassMean:
    """Return the weighted mean of the classes' values, which are ``nan`` where they are 0/0.

    By default (`zero_division` is ``None``) such a class counts as 0 if it has rows, true or
    predicted, so that a class that is never predicted lowers the precision, as in scikit-learn;
    without rows it is left out. Both cause a warning. With an explicit ``nan`` every such class is
    left out; with another number no value is ``nan``, as 0/0 already is that number. The mean is
    ``nan`` where no class is defined, and where all weights are 0; in the latter case a number as
    `zero_division` gives the unweighted mean, as in scikit-learn.

    Args:
        values: The value of each class, (K,).
        weight: The weight of each class in the mean, (K,).
        seen: Returns which classes have rows, (K,); called only where it matters.
        labels: The names of the classes, for the warning.
        zero_division: The metric's parameter.
        of: What the values are, for the warning, such as ``"the recall of "``.
    """
    weight = light(weight)
    if not weight.any():
        is_number = zero_division is not None and not math.isnan(zero_division)
        return ClassMean(float(values.mean()) if is_number else math.nan, "")
    empty = np.isnan(values)
    if not empty.any():
        return ClassMean(float((values * weight).sum() / weight.sum()), "")
    if empty.all():
        return ClassMean(math.nan, "")
    counted = weight > 0
    empty &= counted
    doubts = []
    if zero_division is None and empty.any():
        known = seen()
        zero, absent = empty & known, empty & ~known
        if zero.any():
            doubts.append(
                f"counts {of}{_named(labels, zero)} as 0 in its average, being 0/0 there "
                "(zero_division=0 says so without a warning, zero_division=nan leaves it out)"
            )
        if absent.any():
            doubts.append(
                f"leaves {of}{_named(labels, absent)} out of its average, for want of rows "
                "(zero_division=0 counts it as 0)"
            )
        values, empty = np.where(zero, 0.0, values), absent
    chosen = counted & ~empty
    if not chosen.any():
        return ClassMean(math.nan, "")
    value = (values[chosen] * weight[chosen]).sum() / weight[chosen].sum()
    return ClassMean(float(value), "; and ".join(doubts))


def light(weight: Floats) -> Floats:
    """Return weights in the same proportions, whose products with `ZeroDivision` are finite."""
    return weight * 2.0**-400 if weight.sum() > 2.0**600 else weight


def lone_doubt(
    labels: Sequence[object], values: float | Floats, lacks: Mapping[str, Bools] | None = None
) -> str:
    """Return the warning for values that are not averaged, empty where none is ``nan``.

    Args:
        labels: The names of the classes.
        values: The value of each class, (K,).
        lacks: Which classes lack what, such as ``{"predictions of": ...}``, each (K,).
    """
    empty = np.isnan(np.atleast_1d(values))
    if not empty.any():
        return ""
    missing = {what: empty & where for what, where in (lacks or {}).items()}
    why = lacking_classes(labels, missing, "it" if np.count_nonzero(empty) == 1 else "")
    why = f"as there are {why}" if why else "being 0/0 there"
    return f"is nan for {_named(labels, empty)}, {why} (zero_division=0 makes it 0)"


def lacking_classes(labels: Sequence[object], lacks: Mapping[str, Bools], it: str = "") -> str:
    """Return which classes lack what, empty where none lacks anything.

    Args:
        labels: The names of the classes.
        lacks: As in `lone_doubt`.
        it: What to call the classes in place of their names.
    """
    return " and ".join(
        f"no {what} {it or _named(labels, where)}" for what, where in lacks.items() if where.any()
    )


def _named(labels: Sequence[object], chosen: Bools) -> str:
    places = np.flatnonzero(chosen).tolist()
    first = ", ".join(repr(labels[place]) for place in places[:5])
    more = f", ... ({len(places)})" if len(places) > 5 else ""
    return f"the class{'es' * (len(places) > 1)} {first}{more}"
