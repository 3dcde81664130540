"""Exact, mergeable metrics for data that does not fit in memory, is spread out, or never ends.

    >>> import streammetrics as sm

A metric takes batches, merges with others of its kind, and can be read at any time:

    >>> auc = sm.ROCAUC()
    >>> _ = auc.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> auc.compute(), auc.exact
    (0.75, True)
    >>> other = sm.ROCAUC().update([1, 0], [0.9, 0.3])
    >>> sm.merge([auc, other]).compute()
    0.8888888888888888

Several metrics are fed together, each statistic once a batch:

    >>> suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()})
    >>> _ = suite.update({"y_true": [0, 1], "y_score": [0.25, 0.75]})
    >>> suite.compute()
    {'f1': 1.0, 'loss': 0.2876820724517809}

The state is a function of the multiset of rows: any batches, order, shards and merge tree give the
same `to_bytes()`, and the same value to the last bit. A value is exact, or `bounds()` certainly
holds the exact one.
"""

from typing import TYPE_CHECKING

from streammetrics import _command  # noqa: F401 - first: NumPy takes its time, and Ctrl-C may come
from streammetrics.core.by_name.catalogue import meant_metric
from streammetrics.core.by_name.shortcuts import score
from streammetrics.core.errors import (
    EstimateWarning,
    FloatingPointModeError,
    IncompatibleMetricsError,
    InvalidBatchError,
    NoConfidenceError,
    StateFormatError,
    StreamMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.kernels import describe as kernels
from streammetrics.core.mergeable import merge
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval
from streammetrics.core.stateful import from_bytes, load
from streammetrics.engines.local import evaluate
from streammetrics.inference import families  # noqa: F401 - registers how sure each metric is
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.inference.comparing.states import compare
from streammetrics.ledger.ledger import Ledger
from streammetrics.live.alerts.change import Change
from streammetrics.live.alerts.drift import Drift
from streammetrics.live.alerts.missing import Coverage, Silence
from streammetrics.live.alerts.thresholds import Above, Below, BurnRate
from streammetrics.live.live import Live
from streammetrics.metrics import aggregation, distributions
from streammetrics.metrics.aggregation import *  # noqa: F403 - each module lists its public names
from streammetrics.metrics.agreement import association as agreement_association
from streammetrics.metrics.agreement import raters as agreement_raters
from streammetrics.metrics.agreement.association import *  # noqa: F403
from streammetrics.metrics.agreement.raters import *  # noqa: F403
from streammetrics.metrics.classification import multilabel as classification_multilabel
from streammetrics.metrics.classification import overall as classification_overall
from streammetrics.metrics.classification import rates as classification_rates
from streammetrics.metrics.classification import ratios as classification_ratios
from streammetrics.metrics.classification import reports as classification_reports
from streammetrics.metrics.classification import topk as classification_topk
from streammetrics.metrics.classification.multilabel import *  # noqa: F403
from streammetrics.metrics.classification.overall import *  # noqa: F403
from streammetrics.metrics.classification.rates import *  # noqa: F403
from streammetrics.metrics.classification.ratios import *  # noqa: F403
from streammetrics.metrics.classification.reports import *  # noqa: F403
from streammetrics.metrics.classification.topk import *  # noqa: F403
from streammetrics.metrics.clustering import dispersion as clustering_dispersion
from streammetrics.metrics.clustering import distances as clustering_distances
from streammetrics.metrics.clustering import entropy as clustering_entropy
from streammetrics.metrics.clustering import matching as clustering_matching
from streammetrics.metrics.clustering import pairs as clustering_pairs
from streammetrics.metrics.clustering.dispersion import *  # noqa: F403
from streammetrics.metrics.clustering.distances import *  # noqa: F403
from streammetrics.metrics.clustering.entropy import *  # noqa: F403
from streammetrics.metrics.clustering.matching import *  # noqa: F403
from streammetrics.metrics.clustering.pairs import *  # noqa: F403
from streammetrics.metrics.correlation import rank as correlation_rank
from streammetrics.metrics.correlation.rank import *  # noqa: F403
from streammetrics.metrics.detection import boxes as detection_boxes
from streammetrics.metrics.detection import masks as detection_masks
from streammetrics.metrics.detection import panoptic as detection_panoptic
from streammetrics.metrics.detection.boxes import *  # noqa: F403
from streammetrics.metrics.detection.masks import *  # noqa: F403
from streammetrics.metrics.detection.panoptic import *  # noqa: F403
from streammetrics.metrics.distributions import *  # noqa: F403
from streammetrics.metrics.drift import bins as drift_bins
from streammetrics.metrics.drift import distances as drift_distances
from streammetrics.metrics.drift.bins import *  # noqa: F403
from streammetrics.metrics.drift.distances import *  # noqa: F403
from streammetrics.metrics.forecasting import intervals as forecasting_intervals
from streammetrics.metrics.forecasting import predictive as forecasting_predictive
from streammetrics.metrics.forecasting import scaled as forecasting_scaled
from streammetrics.metrics.forecasting.intervals import *  # noqa: F403
from streammetrics.metrics.forecasting.predictive import *  # noqa: F403
from streammetrics.metrics.forecasting.scaled import *  # noqa: F403
from streammetrics.metrics.ranking import base as ranking_base
from streammetrics.metrics.ranking import binary as ranking_binary
from streammetrics.metrics.ranking import counted as ranking_counted
from streammetrics.metrics.ranking import cutoff as ranking_cutoff
from streammetrics.metrics.ranking import graded as ranking_graded
from streammetrics.metrics.ranking import inferred as ranking_inferred
from streammetrics.metrics.ranking import interpolated as ranking_interpolated
from streammetrics.metrics.ranking import sets as ranking_sets
from streammetrics.metrics.ranking.base import *  # noqa: F403
from streammetrics.metrics.ranking.binary import *  # noqa: F403
from streammetrics.metrics.ranking.counted import *  # noqa: F403
from streammetrics.metrics.ranking.cutoff import *  # noqa: F403
from streammetrics.metrics.ranking.graded import *  # noqa: F403
from streammetrics.metrics.ranking.inferred import *  # noqa: F403
from streammetrics.metrics.ranking.interpolated import *  # noqa: F403
from streammetrics.metrics.ranking.sets import *  # noqa: F403
from streammetrics.metrics.recommendation import lists as recommendation_lists
from streammetrics.metrics.recommendation.lists import *  # noqa: F403
from streammetrics.metrics.regression import deviances as regression_deviances
from streammetrics.metrics.regression import losses as regression_losses
from streammetrics.metrics.regression import moments as regression_moments
from streammetrics.metrics.regression import norms as regression_norms
from streammetrics.metrics.regression import quantiles as regression_quantiles
from streammetrics.metrics.regression import relative as regression_relative
from streammetrics.metrics.regression import shares as regression_shares
from streammetrics.metrics.regression.deviances import *  # noqa: F403
from streammetrics.metrics.regression.losses import *  # noqa: F403
from streammetrics.metrics.regression.moments import *  # noqa: F403
from streammetrics.metrics.regression.norms import *  # noqa: F403
from streammetrics.metrics.regression.quantiles import *  # noqa: F403
from streammetrics.metrics.regression.relative import *  # noqa: F403
from streammetrics.metrics.regression.shares import *  # noqa: F403
from streammetrics.metrics.scores import calibration as scores_calibration
from streammetrics.metrics.scores import curves as scores_curves
from streammetrics.metrics.scores import decisions as scores_decisions
from streammetrics.metrics.scores import distributions as scores_distributions
from streammetrics.metrics.scores import early as scores_early
from streammetrics.metrics.scores import errors as scores_errors
from streammetrics.metrics.scores import gains as scores_gains
from streammetrics.metrics.scores import labels as scores_labels
from streammetrics.metrics.scores import losses as scores_losses
from streammetrics.metrics.scores import margins as scores_margins
from streammetrics.metrics.scores import precision_area as scores_precision_area
from streammetrics.metrics.scores import reliability as scores_reliability
from streammetrics.metrics.scores import roc_area as scores_roc_area
from streammetrics.metrics.scores import shares as scores_shares
from streammetrics.metrics.scores import thresholds as scores_thresholds
from streammetrics.metrics.scores import trapezoids as scores_trapezoids
from streammetrics.metrics.scores.calibration import *  # noqa: F403
from streammetrics.metrics.scores.curves import *  # noqa: F403
from streammetrics.metrics.scores.decisions import *  # noqa: F403
from streammetrics.metrics.scores.distributions import *  # noqa: F403
from streammetrics.metrics.scores.early import *  # noqa: F403
from streammetrics.metrics.scores.errors import *  # noqa: F403
from streammetrics.metrics.scores.gains import *  # noqa: F403
from streammetrics.metrics.scores.labels import *  # noqa: F403
from streammetrics.metrics.scores.losses import *  # noqa: F403
from streammetrics.metrics.scores.margins import *  # noqa: F403
from streammetrics.metrics.scores.precision_area import *  # noqa: F403
from streammetrics.metrics.scores.reliability import *  # noqa: F403
from streammetrics.metrics.scores.roc_area import *  # noqa: F403
from streammetrics.metrics.scores.shares import *  # noqa: F403
from streammetrics.metrics.scores.thresholds import *  # noqa: F403
from streammetrics.metrics.scores.trapezoids import *  # noqa: F403
from streammetrics.metrics.survival import concordance as survival_concordance
from streammetrics.metrics.survival.concordance import *  # noqa: F403
from streammetrics.metrics.text import answers as text_answers
from streammetrics.metrics.text import distances as text_distances
from streammetrics.metrics.text import recognition as text_recognition
from streammetrics.metrics.text import spans as text_spans
from streammetrics.metrics.text import translation as text_translation
from streammetrics.metrics.text.answers import *  # noqa: F403
from streammetrics.metrics.text.distances import *  # noqa: F403
from streammetrics.metrics.text.recognition import *  # noqa: F403
from streammetrics.metrics.text.spans import *  # noqa: F403
from streammetrics.metrics.text.translation import *  # noqa: F403
from streammetrics.show.cards import model_index
from streammetrics.show.pages import written as pages  # noqa: F401 - registers how reports are written
from streammetrics.show.pictures import families as pictures  # noqa: F401 - registers how results are drawn
from streammetrics.slices import unit_set  # noqa: F401 - what a MetricSet with a unit is
from streammetrics.slices.bins import Bins, Periods
from streammetrics.slices.slices import Slices

__version__ = "0.1.0"

__all__ = [
    "Above",
    "Below",
    "Bins",
    "BurnRate",
    "Change",
    "Comparison",
    "Coverage",
    "Drift",
    "EstimateWarning",
    "FloatingPointModeError",
    "IncompatibleMetricsError",
    "Interval",
    "InvalidBatchError",
    "Ledger",
    "Live",
    "Metric",
    "MetricSet",
    "NoConfidenceError",
    "Periods",
    "Silence",
    "Slices",
    "StateFormatError",
    "StreamMetricsError",
    "UndefinedMetricWarning",
    "compare",
    "evaluate",
    "from_bytes",
    "kernels",
    "load",
    "merge",
    "model_index",
    "score",
]
_MODULES = (
    text_answers,
    text_spans,
    text_translation,
    text_distances,
    text_recognition,
    survival_concordance,
    recommendation_lists,
    ranking_sets,
    ranking_interpolated,
    ranking_inferred,
    ranking_counted,
    agreement_raters,
    agreement_association,
    scores_distributions,
    regression_shares,
    regression_norms,
    forecasting_scaled,
    forecasting_predictive,
    forecasting_intervals,
    aggregation,
    distributions,
    classification_multilabel,
    classification_overall,
    classification_rates,
    classification_ratios,
    classification_reports,
    classification_topk,
    clustering_entropy,
    clustering_dispersion,
    clustering_distances,
    clustering_matching,
    clustering_pairs,
    correlation_rank,
    detection_boxes,
    detection_masks,
    detection_panoptic,
    drift_distances,
    drift_bins,
    ranking_base,
    ranking_binary,
    ranking_cutoff,
    ranking_graded,
    regression_deviances,
    regression_losses,
    regression_moments,
    regression_quantiles,
    regression_relative,
    scores_calibration,
    scores_curves,
    scores_decisions,
    scores_early,
    scores_errors,
    scores_gains,
    scores_labels,
    scores_losses,
    scores_margins,
    scores_precision_area,
    scores_reliability,
    scores_roc_area,
    scores_shares,
    scores_thresholds,
    scores_trapezoids,
)
__all__ += [name for module in _MODULES for name in module.__all__]

if not TYPE_CHECKING:  # to a type checker every name would be there

    def __getattr__(name: str) -> object:
        """Raise for a name that is not there, and say what it is called here."""
        told = "" if name.startswith("_") else meant_metric(name, __all__)
        raise AttributeError(f"module 'streammetrics' has no attribute {name!r}{told}")


def __dir__() -> list[str]:
    """Return what is the user's: submodules are attributes too, but are imported by name."""
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__version__"])
