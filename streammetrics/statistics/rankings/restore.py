"""The table of a state, checked before it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.state.arrays import take_array
from streammetrics.statistics.rankings.combine import combined
from streammetrics.statistics.rankings.ids import decoded
from streammetrics.statistics.rankings.order import Results
from streammetrics.statistics.rankings.table import MOST, Grades, Judgments, RankingTable

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays, Floats
    from streammetrics.statistics.rankings.combine import Cutoff
    from streammetrics.statistics.rankings.ids import Values


def restored(arrays: Arrays, cut: Cutoff) -> RankingTable:
    """Return the table of a state, after checking that it is one in canonical form."""
    levels = take_array(arrays, "levels", "float64")
    narrow = next(t for t in ("int8", "int16", "int32") if len(levels) <= np.iinfo(t).max)
    table = RankingTable(
        _ids(arrays, "queries"), take_array(arrays, "judged", "bool"), _ids(arrays, "docs"), levels,
        Results(
            *_part(arrays, "results", query="int32", score="float64", doc="int32", grade=narrow)
        ),
        Judgments(*_part(arrays, "judgments", query="int32", doc="int32", grade=narrow)),
        Grades(*_part(arrays, "grades", query="int32", grade=narrow, times="int64")),
        take_array(arrays, "weights", "float64") if "weights" in arrays else None,
    )  # fmt: skip
    results, given, grades = table.results, table.judgments, table.grades
    n_queries, n_docs, n_levels = len(table.queries), len(table.docs), len(levels)
    places = np.concatenate([results.query, given.query, grades.query])
    sound = (
        _inside(places, 0, n_queries)
        and np.unique(places).size == n_queries == len(table.judged)
        and _inside(results.doc, -1, n_docs)
        and _inside(given.doc, 0, n_docs)
        and _inside(results.grade, -1, n_levels)
        and _inside(np.concatenate([given.grade, grades.grade]), 0, n_levels)
        and bool(np.isfinite(levels).all() and (levels[1:] > levels[:-1]).all())
        and not np.isnan(results.score).any()
        and not (np.signbit(results.score) & (results.score == 0)).any()
        and bool((grades.times > 0).all())
        and (table.weights is None or _are_weights(table.weights, n_queries))
    )
    if not sound:
        raise StateFormatError("the places or the values of a ranking state are out of range")
    if grades.times.sum(dtype=np.float64) >= 2 * MOST:
        raise StateFormatError("there are more judgments than are counted")
    try:
        again = combined([table], cut, distinct=False).arrays()
        decoded(table.queries), decoded(table.docs)
    except (InvalidBatchError, UnicodeDecodeError) as error:
        raise StateFormatError(f"the rows of a ranking state are not sound: {error}") from error
    for name, array in table.arrays().items():
        if array.tobytes() != again[name].tobytes() or array.dtype != again[name].dtype:
            raise StateFormatError(f"the array {name!r} of a ranking state is not canonical")
    return table


def _part(arrays: Arrays, name: str, **dtypes: str) -> list[Array]:
    columns = [take_array(arrays, f"{name}/{key}", dtype) for key, dtype in dtypes.items()]
    if len({len(column) for column in columns}) > 1:
        raise StateFormatError(f"the columns of {name!r} differ in length")
    return columns


def _ids(arrays: Arrays, name: str) -> Values:
    if name in arrays and arrays[name].dtype == np.uint8:
        rows = np.ascontiguousarray(take_array(arrays, name, "uint8", 2))
        if not rows.size:
            raise StateFormatError(f"the strings {name!r} are empty")
        ids: Values = rows.view(f"S{rows.shape[1]}").reshape(-1)
        ends = bool(rows[:, -1].any()) or rows.shape[1] == 1
    else:
        ids, ends = take_array(arrays, name, "int64"), True
    if not ends or not (ids[1:] > ids[:-1]).all():
        raise StateFormatError(f"the ids {name!r} are not canonical")
    return ids


def _are_weights(weights: Floats, n_queries: int) -> bool:
    """Whether there is a weight, or the one nan, for each query, and some weight at all."""
    said = weights[~np.isnan(weights)]
    blank = weights[np.isnan(weights)].view(np.uint64)
    return (
        len(weights) == n_queries
        and bool(said.size)
        and bool((np.isfinite(said) & ~np.signbit(said)).all())
        and bool((blank == np.float64(np.nan).view(np.uint64)).all())
    )


def _inside(places: Array, low: int, high: int) -> bool:
    return not len(places) or (int(places.min()) >= low and int(places.max()) < high)
