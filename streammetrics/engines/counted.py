"""Batches of tensors counted on their device: distinct rows, and how often each occurs.

A state is a function of the multiset of rows. It is therefore the same, byte for byte, whether a
set takes the rows, or the distinct rows with a column of counts.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.scores import ScoredLabels
from streammetrics.core.metric_set import MetricSet
from streammetrics.statistics.tables import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.types import Foreign

# Performance constants; none of them affects results.
LEAST = 1 << 20  # values of a batch; to move and count fewer of them as rows is faster
_FEWER = 8  # rows for each distinct one, from which counts are faster
_SAMPLE = 1 << 14  # first rows, which show whether there are few distinct ones
_FEW = 1 << 16  # counts that are moved with the zeros among them
_CELLS = 1 << 20  # cells that are counted by their number; beyond that, rows are sorted
_WIDEST = 1 << 22  # scores of distinct rows, as the host is given them
_WIDE = 1 << 33  # range of numbers of which only those that occur get a place
_MOST = 1 << 63  # cells that have a number


class ColumnRoles(NamedTuple):
    """How a set reads its columns, which go by the user's names.

    Attributes:
        counts: The column of counts.
        labels: The true labels, if only labels are read; else empty. Then labels of shape (B, T...)
            are rows, and the scores of classes in another column only their first largest one.
        cuts: Columns of scores that are only compared with thresholds, which are ascending.
    """

    counts: str
    labels: str
    cuts: Mapping[str, list[float]]


def roles_of(suite: object) -> ColumnRoles | None:
    """Return how a set reads its columns; ``None`` if it cannot take counts.

    Other objects may convert columns in an `update` of their own.
    """
    if type(suite) is not MetricSet:
        return None
    plan, names = suite._plan, suite.columns
    if any(statistic.uncounted for statistic in plan.start.statistics):
        return None
    fields = [field for schema in plan.schemas for field in schema.fields]
    only_labels = all(type(field) is Labels for field in fields)
    cuts: dict[str, set[float]] = {}
    others = set()
    for statistic, source in zip(plan.start.statistics, plan.sources, strict=True):
        for field in plan.schemas[source].fields:
            for name in field.read:
                column = names.get(name, name)
                if (
                    type(statistic) is ThresholdTable
                    and type(field) is ScoredLabels
                    and name == field.scores.name
                ):
                    cuts.setdefault(column, set()).add(statistic.threshold)
                else:
                    others.add(column)
    return ColumnRoles(
        names.get(COUNTS, COUNTS),
        names.get(plan.leader, plan.leader) if only_labels else "",
        {name: sorted(cuts[name]) for name in cuts.keys() - others},
    )


def narrowed(
    columns: dict[str, Foreign], roles: ColumnRoles
) -> tuple[dict[str, Foreign], dict[str, int]]:
    """Return columns with the places of the largest ones for scores of classes.

    The second of the results has the numbers of classes. The place of rows with NaN is after all
    others. Nothing waits for the device. Small batches are returned as they are.
    """
    truth, places, widths = columns.get(roles.labels), {}, {}
    for name, column in columns.items():
        if _of_classes(column, truth) and column.numel() >= LEAST:
            most, place = column.detach().max(dim=1)
            place.masked_fill_(most.isnan(), width := column.shape[1])
            places[name], widths[name] = place.byte() if width < 256 else place, width
    return columns | places, widths


def _of_classes(column: Foreign, truth: Foreign) -> bool:
    """Whether a column has the scores of several classes beside labels."""
    if not hasattr(column, "detach") or not hasattr(truth, "detach"):
        return False
    shape = tuple(column.shape)
    return (
        column.dtype.is_floating_point
        and len(shape) > 1 < shape[1]
        and shape[:1] + shape[2:] == tuple(truth.shape)
    )


def scores(places: Foreign, width: int) -> Foreign:
    """Return scores (B, K, T...) of K classes that have their largest ones at places (B, T...)."""
    torch = sys.modules["torch"]
    classes = torch.arange(width).reshape(-1, *[1] * (places.ndim - 1))
    places = places.unsqueeze(1)
    return (places == classes).float().masked_fill_(places == width, math.nan)


def counted(
    columns: Mapping[str, Foreign], widths: Mapping[str, int], roles: ColumnRoles
) -> dict[str, Foreign] | None:
    """Return the distinct rows and their counts as tensors on the CPU, counted on the device.

    A row is distinct by its bits, except that of scores only what is read of them counts. Returns
    ``None`` if the rows themselves are needed, or are faster.

    Args:
        columns: Tensors of one device, by the user's names, as `narrowed` returns them.
        widths: The numbers of classes of the columns of places.
        roles: How the set reads them.
    """
    codes: dict[str, _Code] = {}
    code: _Code | None
    cells, size, rows = None, 1, -1
    for name, column in columns.items():
        if name in widths:
            width = widths[name]
            places = column.reshape(-1).long()
            code = _Code(places, width + 1, partial(scores, width=width), width)
        else:
            code = _coded(name, column, columns, roles)
        if code is None or rows not in {-1, len(code.places)}:
            return None
        codes[name], rows = code, len(code.places)
        cells = code.places if cells is None else cells * code.size + code.places
        size *= code.size
        if size > _MOST:
            return None
    if cells is None or roles.counts in columns:
        return None
    found, counts = _distinct(cells, size) or (None, None)
    if found is None or counts is None:
        return None
    if any(len(found) * code.width > _WIDEST for code in codes.values()):
        return None
    left, counted = found.cpu(), {roles.counts: counts.cpu()}
    for name, code in reversed(codes.items()):
        counted[name] = code.values(left % code.size)
        left = left // code.size
    return counted


def _distinct(cells: Foreign, size: int) -> tuple[Foreign, Foreign] | None:
    """Return the distinct cells and their counts; ``None`` if there are too many of them."""
    torch, n = sys.modules["torch"], len(cells)
    if size <= min(_CELLS, n):
        counts = torch.bincount(cells, minlength=size)
        if size <= _FEW:
            counts = counts.cpu()
        found = counts.nonzero().reshape(-1)
        return found, counts[found]
    if not _repeats(cells):
        return None
    found, counts = torch.unique(cells, return_counts=True)
    return None if len(found) > n // _FEWER else (found, counts)


def _repeats(column: Foreign) -> bool:
    """Whether there seem to be few distinct integers in a column."""
    first = column[:_SAMPLE]
    return 2 * len(sys.modules["torch"].unique(first)) <= len(first)


class _Code(NamedTuple):
    """A column as places below a size, int64, and what is at some places.

    Attributes:
        places: The place of each row, on the device.
        size: The number of places.
        values: Returns the values at places, on the CPU.
        width: The number of values at a place.
    """

    places: Foreign
    size: int
    values: Callable[[Foreign], Foreign]
    width: int = 1


def _coded(
    name: str, column: Foreign, columns: Mapping[str, Foreign], roles: ColumnRoles
) -> _Code | None:
    """Return the code of a column; ``None`` if its rows are needed."""
    truth = columns.get(roles.labels)
    if truth is not None:
        # Columns of floats beside labels of their shape may be meant otherwise, and are refused.
        if column.ndim > 1 and (column.shape != truth.shape or column.dtype.is_floating_point):
            return None
        column = column.reshape(-1)
    if column.ndim != 1 or not len(column) or column.dtype.is_complex:
        return None
    if name in roles.cuts and column.dtype.is_floating_point and column.dtype.itemsize > 2:
        return _cut(column, roles.cuts[name])
    return _bits(column)


def _bits(column: Foreign) -> _Code | None:
    """Return the code of any numbers (n,), by their bits."""
    torch, dtype = sys.modules["torch"], column.dtype
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    if dtype == torch.bool or dtype.is_floating_point:
        column = column.contiguous().view(kind)
    elif dtype not in {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}:
        return None
    else:
        kind = dtype
    if dtype.is_floating_point and dtype.itemsize > 2 and not _repeats(column):
        return None
    low, high = torch.stack(torch.aminmax(column)).tolist()

    def values(places: Foreign) -> Foreign:
        return (places + low).to(kind).view(dtype)

    if high - low < _WIDE:
        return _Code(column.long() - low, high - low + 1, values)
    if not _repeats(column):
        return None
    known, places = torch.unique(column, return_inverse=True)
    known = known.cpu().view(dtype)
    return _Code(places, len(known), lambda places: known[places])


def _cut(scores: Foreign, thresholds: list[float]) -> _Code | None:
    """Return the code of scores (n,) by which thresholds they reach."""
    torch = sys.modules["torch"]
    if scores.isnan().any():
        return None
    places = torch.zeros_like(scores, dtype=torch.long)
    for threshold in thresholds:
        places += scores >= _reached(threshold, scores.dtype)
    examples = torch.tensor([-math.inf, *thresholds], dtype=torch.double)
    return _Code(places, len(examples), lambda places: examples[places])


def _reached(threshold: float, dtype: Foreign) -> float:
    """Return the least number of a type that reaches the threshold.

    A comparison of tensors would round the threshold to their type.
    """
    torch = sys.modules["torch"]
    rounded = torch.tensor(threshold, dtype=torch.double).to(dtype)
    if rounded.double() < threshold:
        rounded = torch.nextafter(rounded, torch.tensor(math.inf, dtype=dtype))
    return float(rounded)
