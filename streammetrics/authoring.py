"""Everything needed to write a metric or a statistic, in one module.

    >>> import numpy as np
    >>> from streammetrics.authoring import Positives, RowMean
    >>> class MeanLogRatio(RowMean):
    ...     def row(self, y_true: Positives, y_pred: Positives):
    ...         return np.log(y_pred / y_true)
    >>> MeanLogRatio().update([1.0, 2.0], [1.0, 2.0]).compute()
    0.0

Exports the metric families with their inputs, parameters, averages and intermediate results;
reusable statistics; and, for statistics of your own, fields, columns and exact sums. See
``docs/extending.md``.
"""

from streammetrics.core.arithmetic.exact import ExactSum, nearest, root
from streammetrics.core.columns.labels import Label, Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.objects import prepare
from streammetrics.core.columns.schema import Field, Schema
from streammetrics.core.columns.scores import ScoredLabels, Scores
from streammetrics.core.configured import require
from streammetrics.core.constraints import (
    Above,
    AtLeast,
    Between,
    Bins,
    Constraint,
    MaxPairs,
    MaxPoints,
    NanPolicy,
    OrNan,
    Outside,
    Positive,
    Positives,
    Satisfies,
    Seed,
    Share,
    Shares,
)
from streammetrics.core.errors import InvalidBatchError, StateFormatError, StreamMetricsError
from streammetrics.core.field import StateField
from streammetrics.core.fields.histograms import Histograms
from streammetrics.core.fields.keyed import HashSketch, KeyCounts, Largest
from streammetrics.core.fields.sums import Extreme, NamedSums, Sum, Width
from streammetrics.core.fields.tables import PairTable
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import (
    Curves,
    Interval,
    KeyedValues,
    LabelledArray,
    Points,
    Report,
)
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import Floats, Ints, NoAverage
from streammetrics.metrics.aggregation import Aggregate
from streammetrics.metrics.averages import ZeroDivision, mean_of_classes
from streammetrics.metrics.classification.base import AveragedMetric, ContingencyMetric
from streammetrics.metrics.classification.view import Confusion
from streammetrics.metrics.clustering.internal import InternalMetric, SampledMetric
from streammetrics.metrics.clustering.pairs import LabelingMetric, Overlap, PairMetric, Pairs
from streammetrics.metrics.correlation import RankCorrelation
from streammetrics.metrics.families import Family
from streammetrics.metrics.ranking.base import AtK, QueryMean, Ranking, RankingMetric, UpToK
from streammetrics.metrics.regression.base import RegressionMetric, averaged
from streammetrics.metrics.regression.losses import MeanLoss, RootMeanLoss
from streammetrics.metrics.regression.moments import VarianceRatio
from streammetrics.metrics.regression.quantiles import ErrorQuantile
from streammetrics.metrics.rowwise import RowMean, SampleMetric
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    CumulativeCounts,
    ScoredMetric,
    ScoreMetric,
    Steps,
    staircases,
)
from streammetrics.statistics.centroids import ClusterSums
from streammetrics.statistics.histograms import Extremes, ScoreHistogram, ValueHistogram
from streammetrics.statistics.pairs import PairHistogram
from streammetrics.statistics.points import PointSample, label_hashes
from streammetrics.statistics.probabilities import ProbabilityLossSum
from streammetrics.statistics.rankings import RankingBuffer
from streammetrics.statistics.sums import LossSum, Moments
from streammetrics.statistics.tables import ContingencyTable, LabelPairs, ThresholdTable
from streammetrics.testing import check_laws, check_metric, same_value, split_rows

__all__ = [
    "Above",
    "Aggregate",
    "AtK",
    "AtLeast",
    "AveragedMetric",
    "Between",
    "Bins",
    "ClassScoreMetric",
    "ClusterSums",
    "Confusion",
    "Constraint",
    "ContingencyMetric",
    "ContingencyTable",
    "CumulativeCounts",
    "Curves",
    "ErrorQuantile",
    "ExactSum",
    "Extreme",
    "Extremes",
    "Family",
    "Field",
    "Floats",
    "HashSketch",
    "Histograms",
    "InternalMetric",
    "Interval",
    "Ints",
    "InvalidBatchError",
    "KeyCounts",
    "KeyedValues",
    "Label",
    "LabelPairs",
    "LabelingMetric",
    "LabelledArray",
    "Labels",
    "Largest",
    "LossSum",
    "MaxPairs",
    "MaxPoints",
    "MeanLoss",
    "Metric",
    "Moments",
    "NamedSums",
    "NanPolicy",
    "NoAverage",
    "Numbers",
    "OrNan",
    "Outside",
    "Overlap",
    "PairHistogram",
    "PairMetric",
    "PairTable",
    "Pairs",
    "PointSample",
    "Points",
    "Positive",
    "Positives",
    "ProbabilityLossSum",
    "QueryMean",
    "RankCorrelation",
    "Ranking",
    "RankingBuffer",
    "RankingMetric",
    "RegressionMetric",
    "Report",
    "RootMeanLoss",
    "RowMean",
    "SampleMetric",
    "SampledMetric",
    "Satisfies",
    "Schema",
    "ScoreHistogram",
    "ScoreMetric",
    "ScoredLabels",
    "ScoredMetric",
    "Scores",
    "Seed",
    "Share",
    "Shares",
    "StateField",
    "StateFormatError",
    "Statistic",
    "Steps",
    "StreamMetricsError",
    "Sum",
    "ThresholdTable",
    "UpToK",
    "ValueHistogram",
    "VarianceRatio",
    "Weight",
    "WeightedCount",
    "Width",
    "ZeroDivision",
    "averaged",
    "check_laws",
    "check_metric",
    "label_hashes",
    "mean_of_classes",
    "nearest",
    "prepare",
    "require",
    "root",
    "same_value",
    "split_rows",
    "staircases",
]
