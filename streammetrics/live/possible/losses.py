"""Extremes of probability losses: each row has its likelier label, or its less likely one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from streammetrics.core.results.values import Interval
from streammetrics.live.possible.classes import two_classes
from streammetrics.live.possible.remembered import Terms
from streammetrics.metrics.scores.losses import BrierScore, LogLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.fields.weights import WeightedCount
    from streammetrics.core.metric import Metric

_LOSSES: dict[type, Literal["log", "brier"]] = {LogLoss: "log", BrierScore: "brier"}


def asks(metric: Metric, titles: Mapping[str, str]) -> Terms | None:
    """Return the sums to remember of the smaller and the larger loss of each row."""
    config = metric.config
    if type(metric) not in _LOSSES or config["from_logits"] or config["ignore_index"] is not None:
        return None
    return Terms(
        of=titles.get("y_score", "y_score"),
        nan_policy=config["nan_policy"],
        loss=_LOSSES[type(metric)],
    )


def interval(known: Metric, held: Terms, _: object) -> Interval | None:
    """Return the mean loss with the sum of the smaller losses, and with that of the larger ones."""
    if two_classes(known) is None:
        return None
    return Interval(*[_mean(known, terms, held.rows) for terms in (held.least, held.most)])


def _mean(known: Metric, terms: ExactSum, rows: WeightedCount) -> float:
    losses: Any = known._read()[0].fork()
    losses.total += terms
    losses.rows += rows
    losses.columns = losses.columns or 1
    return float(known.readout(losses))
