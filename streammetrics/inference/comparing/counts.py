"""Metrics of counts: from how often each true label met each pair of predicted labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import StreamMetricsError
from streammetrics.inference.comparing.base import LEAST, Estimate, Joint, PairedTest, estimated
from streammetrics.inference.distributions import binomial_cdf, normal_quantile
from streammetrics.inference.influence import influence
from streammetrics.metrics.families import Family
from streammetrics.statistics.joint.table import JointTable, labels_of
from streammetrics.statistics.tables.threshold import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats
    from streammetrics.inference.comparing.base import Side
    from streammetrics.metrics.classification.base import ContingencyMetric
    from streammetrics.statistics.tables.contingency import LabelCells


MCNEMAR = "McNemar, exact"
DELTA = "joint counts"


class Discordant(NamedTuple):
    """Of the rows that two shares are of: how many only one, and only the other, has."""

    rows: int
    only: int
    other: int

    def estimate(self, level: float) -> Estimate:
        """Return the difference of the shares: exact p of McNemar, limits of Bonett and Price."""
        n, only, other = self
        least = min(only, other)
        p = 2 * binomial_cdf(least, only + other, 0.5) if only + other else 1.0
        p = min(1.0, max(p, LEAST))
        a, b = (only + 1) / (n + 2), (other + 1) / (n + 2)
        spread = normal_quantile((1 + level) / 2) * math.sqrt((a + b - (a - b) ** 2) / (n + 2))
        difference = (only - other) / n
        # The limits are about a difference that is drawn to 0 a little; they hold this one too.
        low, high = min(a - b - spread, difference), max(a - b + spread, difference)
        return Estimate(difference, max(low, -1.0), min(high, 1.0), p, MCNEMAR)


class TableFamily(PairedTest):
    """Accuracy, F1 and all others that are read from a table of true and predicted labels."""

    def __init__(self, metric: ContingencyMetric) -> None:
        self.metric = metric

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:  # noqa: ARG002 - a table a pair
        """Return a table for each pair."""
        (table,) = self.metric.statistics()
        bring = labels_of(table)  # type: ignore[arg-type]  # what it is, by its `statistics`
        return [Joint(JointTable(), pair, table.schema, bring) for pair in pairs]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return McNemar's test of shares of the same rows, else Σ w² (∂θ_A - ∂θ_B)²."""
        assert isinstance(joint, JointTable)
        shares = discordant(one.metric, joint)
        if shares is not None and shares.rows:
            return shares.estimate(level)
        labels, cells = joint.triples.labels, joint.triples.cells
        a, b = (
            _at(labels, cells[:, 0], cells[:, column], *slopes(side.metric))
            for column, side in ((1, one), (2, other))
        )
        squares = np.asarray(joint.triples.squares.to_float())
        variance = float(np.dot(squares, (a - b) ** 2))
        return estimated(one.value - other.value, variance, level, DELTA, math.inf)


def slopes(metric: ContingencyMetric) -> tuple[LabelCells, Floats]:
    """Return the cells of a metric's table, and how much its value changes with each of them."""
    (table,) = metric._read()
    confusion = metric._confusion(table)  # type: ignore[arg-type]  # a table, by its `statistics`
    cells: LabelCells = table.cells()  # type: ignore[attr-defined]
    scale = 2.0**-confusion.exponent
    return cells, influence(metric, confusion, metric.read) * scale


def _at(
    labels: Array,
    truth: Array,
    called: Array,
    cells: LabelCells,
    slope: Floats,
) -> Floats:
    """Return the slopes at pairs of places in `labels`."""
    size = max(len(labels), 1)
    rows, columns = (
        np.searchsorted(labels, side)[place]
        for side, place in ((cells.row_labels, cells.rows), (cells.column_labels, cells.columns))
    )
    packed = rows * size + columns
    order = np.argsort(packed)
    wanted = truth * size + called
    known = np.append(packed[order], -1)
    places = np.searchsorted(known[:-1], wanted)
    if not np.array_equal(known[places], wanted):  # nobody checks it when a state is read
        raise StreamMetricsError("the joint counts of this state are not those of its models")
    found: Floats = slope[order[places]]
    return found


def discordant(metric: ContingencyMetric, joint: JointTable) -> Discordant | None:
    """Return the counts of McNemar's test where both values are shares of the same rows."""
    labels, cells, amount, squares = joint.triples
    if amount != squares:  # rows have weights
        return None
    truth, one, other = cells.T
    if metric.family in {Family.HITS, Family.MISSES} and metric.normalize:  # type: ignore[attr-defined]  # of these
        of = np.ones(len(cells), np.bool_)
        right = metric.family == Family.HITS
        hits = (one == truth) == right, (other == truth) == right
    elif metric.family == Family.SHARE and metric.average == "binary":  # type: ignore[attr-defined]  # of this
        success, failures, _ = metric._parts  # type: ignore[attr-defined]  # of this
        wants = {success, *failures} == {"tp", "fn"}
        if not wants and {success, *failures} != {"fp", "tn"}:
            return None  # a share of rows that a model chooses
        threshold = isinstance(metric.statistics()[0], ThresholdTable)
        is_positive = labels == (1 if threshold else metric._positive_label)
        says = success in {"tp", "fp"}
        of = is_positive[truth] == wants
        hits = is_positive[one] == says, is_positive[other] == says
    else:
        return None
    counts = np.asarray(amount.integers()[0]) << amount.integers()[1]
    only, others = of & hits[0] & ~hits[1], of & hits[1] & ~hits[0]
    return Discordant(*(int(counts[chosen].sum()) for chosen in (of, only, others)))
