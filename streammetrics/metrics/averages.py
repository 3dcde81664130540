"""Averages over classes whose values may be 0/0, and the weights of F measures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.constraints import OrNan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.types import Bools, Floats


ZeroDivision = Annotated[float, OrNan(1e100)] | None
"""The value of 0/0, see `mean_of_classes`. The limit keeps sums over rows and classes finite."""


def beta_weights(beta: float) -> tuple[float, float]:
    """Return weights of recall and precision in F-beta, in the ratio beta², without overflow."""
    # For a large beta both are divided by beta², which may overflow.
    return (1.0, 1 / beta / beta) if beta > 1024.0 else (beta * beta, 1.0)


class ClassMeans(NamedTuple):
    """The mean over classes of each group, and which classes need a warning because of 0/0."""

    values: Floats  # (groups,)
    doubtful: Bools  # which groups need a warning, (groups,)
    zero: Bools  # which classes count as 0, (groups, K)
    absent: Bools  # which classes are left out, (groups, K)

    def why(self, group: int, labels: Sequence[object], of: str = "") -> str:
        """Return the warning for a group, empty if it needs none.

        Args:
            group: The index of the group.
            labels: The names of its classes.
            of: A description of the values, such as ``"the recall of "``.
        """
        doubts = []
        if self.zero[group].any():
            doubts.append(
                f"counts {of}{_named(labels, self.zero[group])} as 0 in its average, being 0/0 "
                "there (zero_division=0 says so without a warning, zero_division=nan leaves it out)"
            )
        if self.absent[group].any():
            doubts.append(
                f"leaves {of}{_named(labels, self.absent[group])} out of its average, for want of "
                "rows (zero_division=0 counts it as 0)"
            )
        return "; and ".join(doubts)


def class_means(
    values: Floats, weight: Floats, seen: Callable[[], Bools], zero_division: float | None
) -> ClassMeans:
    """Return the weighted mean over the classes of each group; 0/0 is ``nan`` in `values`.

    With ``zero_division=None`` an undefined class counts as 0 if it has true or predicted rows, so
    a class that is never predicted lowers the precision, as in scikit-learn. A class without rows
    is left out. Both cases cause a warning. An explicit ``nan`` leaves out every undefined class.
    With any other number no value is ``nan``, because 0/0 was already replaced by it.

    The mean is ``nan`` if no class is defined or all weights are 0. If all weights are 0 and
    `zero_division` is a number, the unweighted mean is returned, as in scikit-learn.

    Args:
        values: The value of each class, (groups, K).
        weight: The weight of each class in the mean, (groups, K).
        seen: Returns which classes have rows, (groups, K); called only if needed.
        zero_division: The metric's parameter.
    """
    weight = light(weight)
    empty: Bools = np.isnan(values)
    zero: Bools = np.zeros(values.shape, np.bool_)
    absent, doubtful = zero, np.zeros(len(values), np.bool_)
    whole = weight.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (values * weight).sum(axis=1) / whole
        if empty.any():
            count = np.count_nonzero(empty, axis=1)
            lacking = (count > 0) & (count < values.shape[1])
            counted = weight > 0
            empty &= counted & lacking[:, None]
            if zero_division is None:
                zero, absent = empty & seen(), empty & ~seen()
                doubtful = np.logical_or.reduce(empty, axis=1)
                values, empty = np.where(zero, 0.0, values), absent
            chosen = counted & ~empty
            some = row_sums(values * weight, chosen) / row_sums(weight, chosen)
            means[lacking] = some[lacking]
        if zero_division is not None and not math.isnan(zero_division):
            means = np.where(whole == 0, values.mean(axis=1), means)
    undefined: Bools = np.isnan(means)
    if undefined.any():
        means[undefined] = math.nan  # always with the same sign
    return ClassMeans(means, doubtful, zero, absent)


class ClassMean(NamedTuple):
    """A mean over classes, and a warning, empty if every class counts."""

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
    """Return the `class_means` of a single group; all arrays are (K,).

    Args:
        values: The value of each class.
        weight: The weight of each class in the mean.
        seen: Returns which classes have rows.
        labels: The names of the classes, for the warning.
        zero_division: The metric's parameter.
        of: A description of the values for the warning, such as ``"the recall of "``.
    """
    means = class_means(values[None], weight[None], lambda: seen()[None], zero_division)
    return ClassMean(float(means.values[0]), means.why(0, labels, of))


def row_sums(values: Floats, chosen: Bools) -> Floats:
    """Return the sum of the chosen numbers of each row, rounded as if the others did not exist.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[True, False], [True, True]]))
    array([1., 7.])
    """
    sums = np.zeros(len(values))
    count = np.count_nonzero(chosen, axis=1)
    for size in np.unique(count[count > 0]).tolist():  # the summation order depends on the size
        rows = count == size
        sums[rows] = values[rows][chosen[rows]].reshape(-1, size).sum(axis=1)
    return sums


def light(weight: Floats) -> Floats:
    """Return weights (..., K), scaled per group so that products with `ZeroDivision` are finite."""
    if not weight.size or weight.max() < 2.0**500:
        return weight
    heavy = weight.sum(axis=-1, keepdims=True) > 2.0**600
    return np.where(heavy, weight * 2.0**-400, weight)


def lone_doubt(
    labels: Sequence[object], values: float | Floats, lacks: Mapping[str, Bools] | None = None
) -> str:
    """Return the warning for values that are not averaged, empty if none is ``nan``.

    Args:
        labels: The names of the classes.
        values: The value of each class, (K,).
        lacks: Which classes lack rows of a kind, such as ``{"predictions of": ...}``, each (K,).
    """
    empty = np.isnan(np.atleast_1d(values))
    if not empty.any():
        return ""
    missing = {what: empty & where for what, where in (lacks or {}).items()}
    why = lacking_classes(labels, missing, "it" if np.count_nonzero(empty) == 1 else "")
    why = f"as there are {why}" if why else "being 0/0 there"
    return f"is nan for {_named(labels, empty)}, {why} (zero_division=0 makes it 0)"


def lacking_classes(labels: Sequence[object], lacks: Mapping[str, Bools], it: str = "") -> str:
    """Return text on which classes lack which rows, empty if none lacks any.

    Args:
        labels: The names of the classes.
        lacks: As in `lone_doubt`.
        it: Text to use instead of the names of the classes.
    """
    return " and ".join(
        f"no {what} {it or _named(labels, where)}" for what, where in lacks.items() if where.any()
    )


def _named(labels: Sequence[object], chosen: Bools) -> str:
    places = np.flatnonzero(chosen).tolist()
    first = ", ".join(repr(labels[place]) for place in places[:5])
    more = f", ... ({len(places)})" if len(places) > 5 else ""
    return f"the class{'es' * (len(places) > 1)} {first}{more}"
