"""How many predictions have their label, how late it came, and what became of the others."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.rows import batch_of
from streammetrics.live.table import CONFLICT, CORRECTED, LABELLED, LATE, REPEATED
from streammetrics.live.time import SECOND
from streammetrics.metrics.classification.reports import ConfusionMatrix
from streammetrics.metrics.distributions import Quantile

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Ints

KNOWN, PENDING, EXPIRED, DISPLACED, REFUSED = range(5)  # what became of a prediction
_FLAGS = (CORRECTED, CONFLICT, LATE, REPEATED)

_BINS = 1024  # of the delays in a pane


def _quantile(q: float) -> Quantile:
    return Quantile(q=q, max_bins=_BINS, nan_policy="omit")


# What is counted is a contingency table of what became of rows and of their flags, and the delays.
SUITE = MetricSet(
    {
        "table": ConfusionMatrix(labels=range(32)),
        "median": _quantile(0.5),
        "p90": _quantile(0.9),
        "p99": _quantile(0.99),
    },
    columns={"y_true": "status", "y_pred": "flags", "values": "delay"},
)


# What a table says of predictions, as far as there are any.
TOLD = ("predicted", "labelled", "pending", "expired", "displaced", "late", "conflicting")


class Coverage(NamedTuple):
    """The predictions of a window by what became of them, and of the whole stream what was refused.

    `predicted` is the sum of `labelled`, `pending`, `expired`, `displaced` and `refused`: each
    prediction is in exactly one of these.
    """

    predicted: int
    labelled: int  # with a label that counts
    pending: int  # which a label in time may still reach
    expired: int  # whose label's time is over
    displaced: int  # which had to leave before that, for want of room (`max_pending`)
    refused: int  # with a label that is good by itself, but not beside what was predicted
    corrected: int  # with two different labels, of which one counts
    conflicting: int  # with two different labels of one version and time
    late: int  # with a label that came after its time, and does not count
    repeated: int  # with two different predictions of one id, of which the earlier counts
    delay_median: float  # seconds from a prediction to its label
    delay_p90: float
    delay_p99: float
    labels_waiting: int  # of the stream: labels whose prediction has not come
    labels_unmatched: int  # of the stream: labels whose prediction never came
    predictions_refused: int  # of the stream: predictions that came when their row had left
    labels_refused: int  # of the stream: labels that came when their row had left
    observations_refused: int  # of the stream: rows that contradict those of other workers

    @property
    def coverage(self) -> float:
        """The part of the predictions whose label is known; ``nan`` where there are none."""
        return self.labelled / self.predicted if self.predicted else float("nan")


def batch_of_rows(status: Ints, flags: Array, delays: Ints) -> Batch:
    """Return rows as they are counted; a delay counts where the label is known."""
    seconds = np.where(status == KNOWN, delays / SECOND, np.nan)
    kept = flags.astype(np.int64) & ~LABELLED
    return batch_of(
        SUITE,
        {"status": Column(status), "flags": Column(kept), "delay": Column(seconds)},
        checked=True,
    )


def share_of(state: State) -> float:
    """Return which part of the predictions has a label, as `Coverage.coverage`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = np.asarray(SUITE._at(state)["table"].compute(), np.int64)
    status = table.sum(axis=1)
    return float(status[KNOWN] / status.sum()) if status.any() else float("nan")


def coverage_of(state: State, stream: tuple[int, ...]) -> Coverage:
    """Return what a state of `SUITE` says; `stream` is what is said of the whole stream."""
    counted = SUITE._at(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = counted.compute()
    table = np.asarray(values["table"], np.int64)
    status = table.sum(axis=1).tolist()
    flags = [int(table[:, np.arange(32) & flag > 0].sum()) for flag in _FLAGS]
    delays = [float(values[name]) for name in ("median", "p90", "p99")]
    counts = [sum(status), *status[:5], *flags]
    return Coverage._make([*counts, *delays, *stream])
