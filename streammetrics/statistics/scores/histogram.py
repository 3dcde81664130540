"""Scores of labelled rows: what curves, the areas under them and calibration are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.columns.scores import Scores
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.histograms.histogram import DyadicHistogram
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_BINS = 1 << 20


class ScoreHistogram(Statistic):
    """Weight of both classes at each score, or in each cell of scores past `max_bins`.

    One histogram for (n,) scores of the positive class; K of them, each class against the rest,
    for (n, K) scores. See `DyadicHistogram` for memory and cost of each. With `from_logits` (n, K)
    scores are kept as probabilities, and (n,) ones as the logits they are, in the same order.
    """

    max_bins: Bins = MAX_BINS
    pos_label: Any = 1
    labels: tuple[Any, ...] | None = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None
    from_logits: bool = False

    @property
    def schema(self) -> Schema:
        """A label and a score, or a score for each class; only the order of scores matters."""
        # Integers as logits would have to be rounded by the softmax.
        scored = ScoredLabels(
            Scores(wide=True, from_logits=self.from_logits, long=not self.from_logits),
            self.pos_label,
            self.labels,
            ignore_index=self.ignore_index,
        )
        return Schema((scored,), self.nan_policy)

    def clear(self) -> None:
        """Forget all rows."""
        self.histograms: tuple[DyadicHistogram, ...] = ()
        self.whole = True  # every weight is a whole number: a row may stand for several, not less

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Count the rows at their scores: codes (n,) and scores (n,) or (n, K)."""
        codes, scores = columns
        if weight is not None and self.whole:
            self.whole = bool((np.rint(weight) == weight).all())
        self._grow(1 if scores.ndim == 1 else scores.shape[1])
        if scores.ndim == 1:
            long = isinstance(scores, LongNumbers)
            heads, tails = (scores.head, scores.tail) if long else (scores, None)
            self.histograms[0].add(heads, codes.view(np.uint8), weight, tails)
            return
        for k, histogram in enumerate(self.histograms):
            mine = (codes == k).view(np.uint8)
            histogram.add(np.ascontiguousarray(scores[:, k]), mine, weight)

    def merge(self, other: ScoreHistogram) -> None:
        """Add the rows of another histogram."""
        self.merge_all([other])

    def merge_all(self, others: Sequence[ScoreHistogram]) -> None:
        """Add the rows of other histograms."""
        seen = [other for other in others if other.histograms]
        for other in seen:
            self._grow(len(other.histograms))
        for k, mine in enumerate(self.histograms):
            mine.merge(*(other.histograms[k] for other in seen))
        self.whole = self.whole and all(other.whole for other in seen)

    def _grow(self, columns: int) -> None:
        """Rebind to forks that may be added to, one for each column of scores."""
        if not self.histograms:
            self.histograms = tuple(DyadicHistogram(self.max_bins, 2) for _ in range(columns))
        elif len(self.histograms) == columns:
            self.histograms = tuple(histogram.fork() for histogram in self.histograms)
        else:
            raise IncompatibleMetricsError(
                f"{columns} columns of scores cannot join {len(self.histograms)}"
            )

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return all(histogram.exact for histogram in self.histograms)

    def classes(self) -> tuple[DyadicHistogram, ...]:
        """Return the histogram of each class: of (n,) scores and of no rows the only one."""
        return self.histograms or (DyadicHistogram(self.max_bins, 2),)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(histogram.nbytes for histogram in self.histograms)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the number of histograms, whether all weights are whole, and each histogram."""
        arrays = {"form": np.array([len(self.histograms), self.whole], np.int64)}
        for k, histogram in enumerate(self.histograms):
            arrays |= nested(str(k), histogram.arrays())
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the histograms."""
        form = take_array(arrays, "form", "int64")
        if form.shape != (2,) or form[0] < 0 or form[0] > len(arrays) or form[1] not in {0, 1}:
            raise StateFormatError(f"{form.tolist()} is not the form of score histograms")
        parts = [part(arrays, str(k)) for k in range(int(form[0]))]
        if 1 + sum(map(len, parts)) != len(arrays):
            raise StateFormatError("the state of score histograms holds arrays that are not theirs")
        self.histograms = tuple(
            DyadicHistogram.from_arrays(self.max_bins, 2, arrays) for arrays in parts
        )
        self.whole = bool(form[1])
