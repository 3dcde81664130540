"""Groups of sampling units, assigned by a hash of the unit's value."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.schema import reject
from streammetrics.core.confidence import unsure
from streammetrics.core.errors import InvalidBatchError, UndefinedMetricWarning
from streammetrics.core.floating import own_arithmetic
from streammetrics.inference.units import unit_limits
from streammetrics.slices.reading import as_integers, flat
from streammetrics.statistics.points import label_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Ints
    from streammetrics.statistics.grouped.keys import Part

    Rests = dict[Part, State]  # for each group of units, the state of all rows outside it

GROUPS = 64
_SEED = 0


def hashed(title: str) -> str:
    """Return the name of the column of unit groups."""
    return f"hash of {title}"


def groups_of(value: object, title: str) -> Ints:
    """Return the group of each row's unit, from 0 to 63.

    Raises:
        InvalidBatchError: The column does not exist, or a row has no valid id.
    """
    if value is None:
        raise InvalidBatchError(f"no column {title!r}, which says what unit each row is of")
    column = flat(as_column(value, title, advice="units are text or integers"), title)
    values, missing = column.values, column.nulls
    if values.dtype.kind == "f":
        values, missing = as_integers(values, missing, title, "holds numbers that are no ids")
    if missing is not None and missing.any():
        reject(title, "is missing", missing, advice="every row is of a unit")
    of = column.vocabulary
    hashes = label_hashes(values.astype(np.int64) if of is None else of, _SEED)
    groups: Ints = (hashes % np.uint64(GROUPS)).astype(np.int64)
    return groups if of is None else groups[values]


def limits_by_unit(
    metric: Any, whole: State, rests: Sequence[State], level: float
) -> ConfidenceInterval:
    """Return jackknife limits from the states of all rows and without each group of units."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        with own_arithmetic():
            value, *others = (
                metric._judged(*metric._chosen(state))[0] for state in (whole, *rests)
            )
        statistics = metric._chosen(whole)
        certain = None if metric.is_exact(*statistics) else metric.interval(*statistics)
    limits = unit_limits(metric, value, others, level, certain)
    return limits or unsure(level, "its value is not one number, nor an array of some")


def warn_unsure(name: str, interval: ConfidenceInterval, depth: int = 3) -> None:
    """Warn of limits by unit that are missing or nan."""
    why = interval.method
    if why.startswith("jackknife"):
        if not np.isnan(np.asarray(interval.low, np.float64)).any():
            return
        why = f"has limits that are nan: its units do not tell how it varies ({why})"
        warnings.warn(f"{name} {why}", UndefinedMetricWarning, stacklevel=depth + 1)
    else:
        warnings.warn(f"{name}: {why}", UndefinedMetricWarning, stacklevel=depth + 1)
