"""Which metric is compared in which way, and which cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.inference.comparing.counts import TableFamily
from streammetrics.inference.comparing.curves import CurveFamily
from streammetrics.inference.comparing.means import MeanFamily
from streammetrics.inference.comparing.queries import QueryFamily
from streammetrics.inference.comparing.sampled import SampledFamily
from streammetrics.metrics.classification.multilabel import MultilabelMetric
from streammetrics.metrics.families import NO_MEAN, SEVERAL, Family
from streammetrics.metrics.scores.labels import LabelRankingMetric
from streammetrics.statistics.joint.schema import OF_MODELS

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options
    from streammetrics.inference.comparing.base import PairedTest

_TABLES = {
    Family.TABLE, Family.AVERAGES, Family.SHARE, Family.F_BETA, Family.HITS, Family.MISSES,
    Family.KAPPA,
}  # fmt: skip
_MEANS = {
    Family.MEAN_LOSS, Family.BOUNDED_LOSS, Family.ROOT_MEAN_LOSS, Family.MEAN_ERROR,
    Family.LOG_LOSS, Family.BRIER, Family.TOP_K, Family.MEAN,
}  # fmt: skip


def family_of(name: str, metric: Any, models: int, max_rows: int) -> PairedTest:
    """Return the way in which a metric is compared.

    Raises:
        ValueError: It cannot be; the message says why, and names it.
    """
    why = refused(metric)
    if why:
        raise ValueError(f"{name!r}, {metric._titled()}, cannot be compared: {why}")
    if metric.family == Family.QUERIES:
        return QueryFamily()
    if metric.family in _TABLES:
        return TableFamily(metric)
    if metric.family in _MEANS:
        return MeanFamily(metric)
    if metric.family == Family.AVERAGE_PRECISION or _is_whole_area(metric):
        return CurveFamily(metric, max_rows)
    return SampledFamily(metric, models, max_rows)


def _is_whole_area(metric: Any) -> bool:
    return (
        metric.family == Family.ROC_AREA
        and metric.max_fpr in {None, 1.0}
        and metric.min_tpr in {None, 0.0}
        and metric.multi_class == "ovr"
        and metric.average != "micro"
    )


def refused(metric: Metric) -> str:
    """Return why a metric cannot be compared, and nothing where it can."""
    config: Options = metric.config
    if metric._incomparable == SEVERAL or ("average" in config and config["average"] is None):
        return SEVERAL
    if config.get("multioutput") == "raw_values":
        return "it is several numbers; multioutput='uniform_average' makes one of them"
    if isinstance(metric, MultilabelMetric | LabelRankingMetric) or config.get("multilabel"):
        return "how the labels of a row hang together in two models is not kept"
    if metric._incomparable or config.get("normalize") is False:
        return metric._incomparable or NO_MEAN
    if not set(metric.inputs) & set(OF_MODELS):
        return f"it reads nothing that is a model's own ({', '.join(OF_MODELS)})"
    fields = [field for schema in metric._layout.schemas for field in schema.fields]
    plain = all(isinstance(field, ScoredLabels | Numbers) or not field.names for field in fields)
    plain = plain and len(metric.inputs) <= 2  # rows of a truth and what is judged are sampled
    if not plain and metric.family not in {*_TABLES, Family.QUERIES}:
        return "nothing is known of how it varies with its rows"
    return ""
