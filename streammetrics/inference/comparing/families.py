"""Which metric is compared in which way, and which cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.inference.comparing.counts import TableFamily
from streammetrics.inference.comparing.curves import CurveFamily
from streammetrics.inference.comparing.means import MeanFamily
from streammetrics.inference.comparing.queries import QueryFamily
from streammetrics.inference.comparing.sampled import SampledFamily
from streammetrics.metrics.aggregation import Count, Maximum, Mean, Minimum, Sum
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.classification.multilabel import MultilabelMetric
from streammetrics.metrics.classification.reports import ClassificationReport, ConfusionMatrix
from streammetrics.metrics.classification.topk import TopKAccuracy
from streammetrics.metrics.clustering.pairs import PairConfusionMatrix
from streammetrics.metrics.ranking.base import RankingMetric
from streammetrics.metrics.ranking.counted import RankingCount, RecallAtFixedPrecision
from streammetrics.metrics.regression.losses import MeanError, MeanLoss, RootMeanLoss
from streammetrics.metrics.regression.quantiles import MaxError
from streammetrics.metrics.scores.calibration import CalibrationCurve
from streammetrics.metrics.scores.curves import PrecisionRecallCurve, ROCCurve
from streammetrics.metrics.scores.decisions import BestThreshold, ConfusionAtThresholds
from streammetrics.metrics.scores.errors import DETCurve
from streammetrics.metrics.scores.gains import CumulativeGains, LiftCurve
from streammetrics.metrics.scores.labels import LabelRankingMetric
from streammetrics.metrics.scores.losses import BrierScore, LogLoss
from streammetrics.metrics.scores.precision_area import AveragePrecision
from streammetrics.metrics.scores.roc_area import ROCAUC
from streammetrics.statistics.joint.schema import OF_MODELS

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options
    from streammetrics.inference.comparing.base import Family

_SEVERAL = (
    ConfusionMatrix, ClassificationReport, PairConfusionMatrix, ROCCurve, PrecisionRecallCurve,
    CalibrationCurve, ConfusionAtThresholds, BestThreshold, CumulativeGains, LiftCurve, DETCurve,
)  # fmt: skip
_NOT_MEANS = (Count, Sum, Minimum, Maximum, MaxError, RankingCount, RecallAtFixedPrecision)
_MEANS = (MeanLoss, RootMeanLoss, MeanError, LogLoss, BrierScore, TopKAccuracy, Mean)


def family_of(name: str, metric: Metric, models: int, max_rows: int) -> Family:
    """Return the way in which a metric is compared.

    Raises:
        ValueError: It cannot be; the message says why, and names it.
    """
    why = refused(metric)
    if why:
        raise ValueError(f"{name!r}, {metric._titled()}, cannot be compared: {why}")
    if isinstance(metric, RankingMetric):
        return QueryFamily()
    if isinstance(metric, ContingencyMetric):
        return TableFamily(metric)
    if isinstance(metric, _MEANS):
        return MeanFamily(metric)
    if isinstance(metric, AveragePrecision) or _is_whole_area(metric):
        return CurveFamily(metric, max_rows)
    return SampledFamily(metric, models, max_rows)


def _is_whole_area(metric: Metric) -> TypeGuard[ROCAUC]:
    return (
        isinstance(metric, ROCAUC)
        and metric.max_fpr in {None, 1.0}
        and metric.min_tpr in {None, 0.0}
        and metric.multi_class == "ovr"
        and metric.average != "micro"
    )


def refused(metric: Metric) -> str:
    """Return why a metric cannot be compared, and nothing where it can."""
    config: Options = metric.config
    if isinstance(metric, _SEVERAL) or ("average" in config and config["average"] is None):
        return "it is several numbers; compare one of them, such as average='macro'"
    if config.get("multioutput") == "raw_values":
        return "it is several numbers; multioutput='uniform_average' makes one of them"
    if isinstance(metric, MultilabelMetric | LabelRankingMetric) or config.get("multilabel"):
        return "how the labels of a row hang together in two models is not kept"
    if isinstance(metric, _NOT_MEANS) or config.get("normalize") is False:
        return "a count, a sum or an extreme says nothing of how sure it is"
    if not set(metric.inputs) & set(OF_MODELS):
        return f"it reads nothing that is a model's own ({', '.join(OF_MODELS)})"
    fields = [field for schema in metric._layout.schemas for field in schema.fields]
    plain = all(isinstance(field, ScoredLabels | Numbers) or not field.names for field in fields)
    plain = plain and len(metric.inputs) <= 2  # rows of a truth and what is judged are sampled
    if not plain and not isinstance(metric, RankingMetric | ContingencyMetric):
        return "nothing is known of how it varies with its rows"
    return ""
