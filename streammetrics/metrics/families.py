"""Families of metrics by how their values vary, and why some have no confidence limits."""

from __future__ import annotations

from enum import StrEnum, unique

from streammetrics.core.confidence import Biased, Refusal


@unique
class Family(StrEnum):
    """How a value is computed from rows, which determines how its confidence limits are computed.

    A metric states its family on its class, and `inference` has a rule for each family. The first
    families cover whole base classes: their rules differentiate or resample the formula of the
    class itself, so they work for any formula. The rules of all others are specific to the formula
    given beside the family.
    """

    # Any formula.
    TABLE = "a readout of a table of labels"
    AVERAGES = "a readout of a table of labels, by class or averaged"
    ROWS = "a mean over rows with several labels"
    STAIRS = "a readout of the scores of a class"
    LABELINGS = "a readout of how two labelings overlap"
    QUERIES = "a mean over queries"
    UNITS = "a mean over units with several attempts each"
    CORPUS = "a readout of counts summed over texts"

    # Tables of labels.
    HITS = "the share of rows that are predicted right"
    MISSES = "the share of rows that are predicted wrong"
    COST = "the mean cost of rows, by true and predicted class"
    SHARE = "a share of rows by class, which `AveragedMetric._parts` says"
    F_BETA = "F-beta"
    KAPPA = "Cohen's kappa"
    CONFUSION_MATRIX = "a confusion matrix"
    TOP_K = "the share of rows whose class is among the first k"
    SUBSETS = "the share of rows whose labels are all right"
    ADJUSTED_INFORMATION = "adjusted mutual information"

    STRENGTHS = "strengths of players"

    # Means over rows.
    MEAN_LOSS = "a mean of losses"
    BOUNDED_LOSS = "a mean of losses that has a largest value"
    ROOT_MEAN_LOSS = "the root of a mean of losses"
    MEAN_ERROR = "a mean of signed errors"
    MEAN = "a mean of values"
    LOSS_RATIO = "a ratio of two means of losses"
    LOG_LOSS = "the log loss"
    BRIER = "the Brier score"
    SCORE_LOSS = "a mean loss of scores"
    SIGNED_SCORE_LOSS = "a mean of signed errors of scores"
    PERPLEXITY = "the exponential of the log loss"
    ROW_MEAN = "a mean of one number per row"
    OF_MEANS = "a function of means of numbers per row"
    ROOT_ROW_MEAN = "the root of a mean of one number per row"

    # Ratios of moments.
    R2 = "one less a ratio of squared errors"
    SQUARED_RATIO = "a ratio of squared errors"
    EXPLAINED_VARIANCE = "one less a ratio of variances"
    PEARSON = "Pearson's correlation"
    CONCORDANCE = "Lin's concordance correlation"
    VARIANCE = "a variance"

    # Ranks and order.
    KENDALL = "Kendall's tau"
    SPEARMAN = "Spearman's rho"
    QUANTILE = "a quantile of values"
    ERROR_QUANTILE = "a quantile of absolute errors"

    # Scores of a class.
    ROC_AREA = "an area under the ROC curve"
    GINI = "twice an area under the ROC curve, less one"
    AVERAGE_PRECISION = "an area under the precision-recall curve, by steps"
    PR_AREA = "an area under the precision-recall curve, by trapezoids"
    DISTANCE = "the largest distance of two distributions"
    BEST_RATE = "the best rate at a constraint on another"
    CROSSING = "where two rates are equal"
    DEPTH = "a rate at a depth"

    # Curves and bins.
    ROC_CURVE = "a ROC curve"
    DET_CURVE = "a DET curve"
    GAINS = "a curve of gains"
    PR_CURVE = "a precision-recall curve"
    CALIBRATION_CURVE = "a calibration curve"
    CALIBRATION_FIT = "a coefficient of a fit of labels to scores"
    BINNED_SHARES = "shares of bins"


GROWS = "it grows with the rows and estimates nothing of a population; {} does"
EXTREME = "the {} value of a sample says little of that of the population; {} near it does"
BY = "MetricSet(..., unit={0!r}) has limits, by a jackknife of what the column {0!r} tells apart"
APART = Biased(
    "two samples of one population are apart by chance alone, so that it is too large by what is "
    "not known"
)
POINTS = Refusal(
    "every point is judged by the places of all others, and clusters were made of them, so rows "
    "are no sample of its parts"
)
LISTS = Refusal(
    f"items were chosen with those of the same list, so rows are not a sample; {BY.format('list')}"
)
CORPUS = Refusal(
    f"it is of the corpus, and how much its texts differ is not kept; {BY.format('text')}"
)
IMAGES = Refusal(f"how much images differ is not kept; {BY.format('image')}")
PIXELS = Refusal(
    f"pixels of an image are correlated, so rows are not a sample; {BY.format('image')}"
)
ITEMS = Refusal(
    f"how much single items agree is not kept, of which its spread is made; {BY.format('item')}"
)
BASELINE = (
    "the {} that it is relative to is of the same rows, and how both vary together is not kept; "
    f"{{}} has limits, and {BY.format('id')}"
)

# Why models cannot be compared by a metric.
SEVERAL = "it is several numbers; compare one of them, such as average='macro'"
NO_MEAN = "a count, a sum or an extreme says nothing of how sure it is"
