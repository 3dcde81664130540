"""The rule that compares the scores of a window with a reference: drift, beyond chance."""

from __future__ import annotations

import hashlib
import math
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between
from streammetrics.core.errors import an
from streammetrics.core.fields.weighed import Weighed
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.stateful import from_bytes, load
from streammetrics.inference.distributions import normal_quantile
from streammetrics.live.alerts.rule import Moment, WindowRule
from streammetrics.live.time import duration
from streammetrics.metrics.drift.bins import JensenShannon, PopulationStability
from streammetrics.metrics.drift.distances import KSDistance, Wasserstein, gaps_of
from streammetrics.statistics.scores.histogram import Counted, ScoreHistogram
from streammetrics.statistics.scores.samples import SampleHistogram
from streammetrics.statistics.sums.values import ValueHistogram

if TYPE_CHECKING:
    from datetime import timedelta

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.live.alerts.rule import Verdict
    from streammetrics.metrics.drift.base import SampleDistance

__all__ = ["Drift"]

Method = Literal["ks", "wasserstein", "psi", "js"]

_THRESHOLDS = {"ks": 0.1, "psi": 0.2, "js": 0.1}


class Drift(WindowRule):
    """Fires where the values of a column in a window are far from those of a reference.

    Far is what is both above `threshold` and above the noise floor: what chance alone keeps a
    distance of as many rows below, in a share `level` of all windows. A PSI of 0.2 means nothing of
    200 rows in 10 bins, and a distance that is certain may still be too small to matter.

    It compares histograms that are there already: those of a metric of scores, such as `ROCAUC`, or
    of a `Quantile`. So it sees the rows that the window has: where predictions wait for labels,
    those with one. To see all, and at once, observe the scores in a `Live` of their own.

    Args:
        reference: A set that has seen the reference's rows, or a metric of any column; its bytes,
            or the path of a saved one.
        column: The column of scores or of values, by its name in events.
        method: ``"ks"``: `KSDistance`; ``"wasserstein"``; ``"psi"``: `PopulationStability` with a
            pseudo-count of a half; ``"js"``: `JensenShannon`.
        threshold: The distance that matters: by default 0.1 (``"ks"``, ``"js"``) or 0.2
            (``"psi"``); that of ``"wasserstein"`` has the unit of the values, and has to be given.
        bins: Of ``"psi"`` and ``"js"``.
        level: In which share of windows chance alone stays below the noise floor.
        window: The window.
        min_rows: Of fewer rows nothing is said.
        for_: How long it has to be so before the alert fires.
        after: How long after its end a window is judged, see `Live.alerts`.
        name: What the alert is called.

    Example:
        >>> import numpy as np
        >>> import streammetrics as sm
        >>> reference = sm.Quantile(q=0.5).update(np.linspace(0, 1, 1000))
        >>> live = sm.Live(sm.Quantile(q=0.5))
        >>> _ = live.observe(time=range(0, 7200, 10), values=np.linspace(0, 1, 720) ** 2)
        >>> rule = sm.Drift(reference, "values", method="ks", window="1h", min_rows=100)
        >>> alert = live.alerts([rule])[0]
        >>> alert.state, round(alert.value, 2)
        ('firing', 0.23)
    """

    column: str
    method: Method = "ks"
    threshold: float | None = None
    bins: Annotated[int, Between(2, 1000)] = 10
    level: float = 0.999
    window: str = "1h"
    reference: str = ""  # its digest

    def __init__(
        self,
        reference: Mergeable | bytes | str | os.PathLike[str],
        column: str,
        *,
        method: Method = "ks",
        threshold: float | None = None,
        bins: int = 10,
        level: float = 0.999,
        window: str | timedelta = "1h",
        min_rows: int = 100,
        for_: str | timedelta | None = None,
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        if isinstance(reference, bytes):
            reference = from_bytes(reference)
        elif isinstance(reference, str | os.PathLike):
            reference = load(reference)
        if not isinstance(reference, Mergeable):
            raise TypeError(
                f"the reference is {an(type(reference).__name__)}, no metric and no set"
            )
        alone = not isinstance(reference, MetricSet)  # whose only histogram it is
        self._reference = values_in(reference, None if alone else column)
        if self._reference.histogram is None:
            raise ValueError(f"the reference has seen no rows of {column!r}")
        self._configure(
            column=column,
            method=method,
            threshold=_THRESHOLDS.get(method) if threshold is None else threshold,
            bins=bins,
            level=level,
            window=window,
            min_rows=min_rows,
            for_=for_,
            after=after,
            name=name,
            reference=hashlib.sha256(reference.to_bytes()).hexdigest()[:16],
        )

    def check_parameters(self) -> None:
        """Check that there is a threshold and a level."""
        super().check_parameters()
        known = self.threshold is not None and self.threshold >= 0
        require(self, "threshold", known, "a distance, 0 or above, in the unit of the values")
        require(self, "level", 0.5 <= self.level < 1, "a share from 0.5 to below 1")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The one window."""
        return (duration(self.window, "window"),)

    def check(self, suite: Mergeable) -> None:
        """Check that a histogram of the column is there, of what the reference has."""
        if values_in(suite, self.column).logits != self._reference.logits:
            raise ValueError(f"{self.column!r} holds logits in one of reference and stream only")

    def part(self, suite: Mergeable) -> Mergeable:
        """Return a metric that has the histogram, and no other, if there is one."""
        every: Any = suite.values() if isinstance(suite, MetricSet) else ()
        wanted = _statistic(suite, self.column)
        key = wanted._key, wanted.schema
        return next((one for one in every if [*one._layout.places] == [key]), suite)

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Compare the distance with the threshold and the noise floor."""
        several = isinstance(windows[0], MetricSet)
        current = values_in(windows[0], self.column if several else None).histogram
        rows = int(windows[0].n_rows)
        if current is None or rows < self.min_rows:
            return Moment(end, "no data", rows=rows, told=f"{rows:,} rows")
        reference: Any = self._reference.histogram  # which has rows, as was checked
        samples = _together(reference, current)
        distance = self._distance(samples.max_bins)
        with own_arithmetic():
            value = distance.readout(samples)
            low, high = (value, value) if samples.exact else distance.interval(samples)
        floor, threshold = self._floor(samples), float(self.threshold or 0.0)
        least = max(floor, threshold)
        verdict: Verdict = "bad" if low > least else "good" if high <= least else "between"
        told = (
            f"{self.method} {value:.4g} of {self.column} over {rows:,} rows; matters from "
            f"{threshold:g}, chance stays below {floor:.4g}"
        )
        return Moment(end, verdict, value, low, high, rows, told)

    def _distance(self, max_bins: int) -> SampleDistance:
        if self.method == "ks":
            return KSDistance(max_bins=max_bins)
        if self.method == "wasserstein":
            return Wasserstein(max_bins=max_bins)
        if self.method == "psi":
            return PopulationStability(max_bins=max_bins, bins=self.bins, pseudo_count=0.5)
        return JensenShannon(max_bins=max_bins, bins=self.bins)

    def _floor(self, samples: SampleHistogram) -> float:
        """Return what distances of samples of one population exceed seldom, by their limit laws."""
        (histogram,) = samples.classes()
        n, m = histogram.totals()
        parts, tail = 1 / n + 1 / m, 1 - self.level
        if self.method == "ks":  # Smirnov's limit; ties only make it smaller
            return min(math.sqrt(-math.log(tail / 2) / 2 * parts), 1.0)
        if self.method == "wasserstein":
            # The integral of |B(F)|, B a Brownian bridge: its mean, and concentration around it.
            spread = gaps_of(samples).spread
            return (
                spread
                * math.sqrt(parts)
                * (math.sqrt(2 / math.pi) + math.sqrt(-2 * math.log(tail)))
            )
        free = self.bins - 1  # Pearson's chi-square, by Wilson and Hilferty
        cube = 1 - 2 / (9 * free) + normal_quantile(self.level) * math.sqrt(2 / (9 * free))
        stability = free * max(cube, 0.0) ** 3 * parts
        return stability if self.method == "psi" else math.sqrt(stability / 8)

    def _says(self) -> str:
        return f"drift of {self.column} by {self.method} over {self.window}"


class ColumnHistogram(NamedTuple):
    """The histogram of a column, ``None`` without rows, and whether it is one of logits."""

    histogram: DyadicHistogram | None
    logits: bool


def values_in(what: Mergeable, column: str | None) -> ColumnHistogram:
    """Return the histogram of a column, or of any, in a set or a metric.

    Raises:
        ValueError: There is none.
    """
    held = _statistic(what, column)
    histograms = held.histograms
    if len(histograms) > 1:
        raise ValueError(f"{column!r} has {len(histograms)} columns of scores, not one")
    logits = isinstance(held, ScoreHistogram) and held.keeps_logits
    return ColumnHistogram(histograms[0] if histograms else None, logits)


def _statistic(what: Mergeable, column: str | None) -> Any:
    """Return what holds the histogram of a column, or of any, in a set or a metric."""
    titles = getattr(what, "columns", {})
    for statistic in what._accumulator.flush().statistics:
        name = statistic.schema.inputs[-1]
        plain = isinstance(statistic, ValueHistogram) and statistic.of == "values"
        fits = column is None or titles.get(name, name) == column
        if fits and (plain or isinstance(statistic, ScoreHistogram)):
            return statistic
    raise ValueError(
        f"there is no histogram of {column or 'values'!r}: put a Quantile of it into the set, or a "
        "metric of scores such as ROCAUC"
    )


@lru_cache(maxsize=64)
def _pooled(reference: DyadicHistogram, most: int) -> DyadicHistogram:
    """Return a reference, which nobody changes, as the one sample; it is compared often."""
    return reference.pooled(most, 0)


def _together(reference: DyadicHistogram, current: DyadicHistogram) -> SampleHistogram:
    """Return both as the two samples of one histogram."""
    most = max(reference.max_cells, current.max_cells)
    both = _pooled(reference, most).fork()
    both.merge(current.pooled(most, 1))
    samples = SampleHistogram(max_bins=most)
    samples.counted = Counted(
        Weighed((both,)), all(isinstance(total, int) for total in both.totals())
    )
    return samples
