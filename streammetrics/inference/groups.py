"""Confidence limits of shares for many groups, and for the rows outside each, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.confidence import Asked, confidence_of
from streammetrics.inference.shares import micro_rows, parts_of
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats
    from streammetrics.metrics.classification.together import Confusions


class Readings(NamedTuple):
    """A metric of each group: its value and its limits, each (groups,)."""

    value: Floats
    low: Floats
    high: Floats


def beside_rest(
    metric: Metric[Any], level: float, *forms: object
) -> tuple[Readings, Readings] | None:
    """Return what a metric is in every group, and in all other groups together.

    Of its statistics the states are given as a form of all groups holds them. ``None`` where they
    are to be read in turn.
    """
    if not isinstance(metric, ContingencyMetric):
        return None
    tables = metric._confusions(*forms)
    if tables is None or not _is_share(metric, tables):
        return None
    mine, rest = _read(metric, level, tables), _read(metric, level, tables.rest())
    return None if mine is None or rest is None else (mine, rest)


def _is_share(metric: Any, tables: Confusions) -> bool:
    """Whether limits are those of a share, which takes arrays as it does numbers."""
    if not getattr(metric.read, "elementwise", False):
        return False
    if metric.family in {Family.HITS, Family.MISSES}:
        return bool(metric.normalize)
    parts = parts_of(metric)
    if parts is None:
        return False
    if metric.average == "micro":
        return micro_rows(parts, tables, tables) is not None
    return bool(metric.average == "binary")


def _read(metric: Any, level: float, tables: Confusions) -> Readings | None:
    if not tables.total.all():  # a group without rows has no share
        return None
    value = metric.read(tables)
    if not isinstance(value, np.ndarray):
        return None
    return Readings(value, *confidence_of(metric, Asked(level, False, 0), tables))
