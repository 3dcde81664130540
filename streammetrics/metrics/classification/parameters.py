"""Parameters of classification: which column is read beside the truth, and several labels."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.labels import one_kind
from streammetrics.core.columns.logits import log_odds
from streammetrics.core.configured import require
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Options


def judged_column(metric: Any, y_pred: Any, y_score: Any) -> tuple[str, Any]:
    """Return the name and the values of the predictions, or with a threshold of the scores."""
    if y_pred is not None and y_score is not None:
        raise InvalidBatchError("pass y_pred or y_score, not both")
    if metric.threshold is None and y_score is not None:
        raise InvalidBatchError(
            f"y_score needs a threshold: {type(metric).__name__}(threshold=0.5)"
        )
    second = y_pred if y_score is None else y_score
    return ("y_pred" if metric.threshold is None else "y_score"), second


def check_multilabel(metric: Any) -> None:
    """Convert the labels to one type, and check that there is one threshold or one per label."""
    metric.labels = one_kind(metric.labels)
    cuts = metric.threshold
    several = cuts if isinstance(cuts, tuple) else (cuts,)
    numbers = cuts is None or all(type(x) in {int, float} and x == x for x in several)  # noqa: PLR0124 - the test for nan
    require(metric, "threshold", numbers and cuts != (), "a number, or one for each label")
    if isinstance(cuts, tuple) and metric.labels is not None:
        enough = len(cuts) == len(metric.labels)
        require(metric, "threshold", enough, f"one number, or {len(metric.labels)} for the labels")
    if metric.from_logits and cuts is not None:
        shares = all(0 <= x <= 1 for x in several)
        require(metric, "threshold", shares, "probabilities, with from_logits=True")


def multilabel_options(metric: Any) -> Options:
    """Return the parameters of the statistics of rows with several labels."""
    cuts = metric.threshold
    if metric.from_logits and cuts is not None:
        several = isinstance(cuts, tuple)
        cuts = tuple(map(log_odds, cuts)) if several else log_odds(cuts)
    return {"threshold": cuts, "labels": metric.labels, "nan_policy": metric.nan_policy}


def warn_of_indicators(metric: Any, true: Any, pred: Any) -> None:
    """Warn where both columns are (n, L) of 0 and 1, which may be meant as several labels per row.

    They are read as n L rows of one class each, as tensors (B, T) usually are meant. scikit-learn
    reads arrays, sparse matrices and frames of this shape as indicators of labels.
    """
    given = metric.labels is not None or metric.ignore_index is not None
    several = metric.threshold is not None or getattr(metric, "multilabel", False)
    if given or several or true.shape[1] < 2 or getattr(pred, "shape", None) != true.shape:
        return
    sides = [_matrix(true), _matrix(pred)]
    if all(side is not None and ((side == 0) | (side == 1)).all() for side in sides):
        n, width = true.shape
        warnings.warn(
            f"y_true and y_pred are {true.shape} of 0 and 1, read as {n * width:,} rows of one "
            "class each: rows of several labels take multilabel=True; labels=[0, 1] or "
            ".reshape(-1) says that these are classes at positions",
            stacklevel=3,
        )


def _matrix(values: Any) -> Array | None:
    """Return an array, a sparse matrix or a frame as an array, ``None`` for anything else."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "toarray"):
        return np.asarray(values.toarray())
    return np.asarray(values.to_numpy()) if hasattr(values, "to_numpy") else None
