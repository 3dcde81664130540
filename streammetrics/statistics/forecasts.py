"""Sums of what forecasts lose: of intervals, ensembles, quantiles, normal distributions, series.

What is rounded is one row's number. Inputs are bounded far below where a number overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.formulas import NORMAL
from streammetrics.statistics.sums import RowSum, regression_schema, summed

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Bools, Columns, Floats, ReadColumn

_MOST = 2.0**250  # of numbers, whose inverse is the least scale
_TAIL = 9.0  # standard deviations, beyond which it is a line


def _bounded(name: str, **options: Any) -> Numbers:
    return Numbers(name, **{"low": -_MOST, "high": _MOST, **options})


@dataclass(frozen=True)
class Ascending(Condition):
    """Refuses rows in which columns, or the numbers of one, go down."""

    names: tuple[str, ...]
    width: int = 0  # how many numbers a row has, 0 for any

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check that no number is below the one before it."""
        columns = [batch.numbers(name) for name in self.names]
        values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
        values = values[:, None] if values.ndim == 1 else values
        titles = " and ".join(batch.title(name) for name in self.names)
        if self.width and values.shape[1] != self.width:
            raise InvalidBatchError(
                f"{titles} has {values.shape[1]} numbers a row for {self.width} levels"
            )
        wrong: Any = (values[:, 1:] < values[:, :-1]).any(axis=1)
        advice = "the lower one comes first"
        reject_present(titles, "cross", wrong, missing, values, advice=advice)


class IntervalSum(RowSum):
    """Of prediction intervals: whether they hold the target, their width, or Winkler's score."""

    loss: Literal["coverage", "width", "winkler"]
    alpha: float = 0.0
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A target, and the two ends of an interval."""
        fields = tuple(_bounded(name) for name in ("y_true", "y_low", "y_high"))
        return Schema(fields, self.nan_policy, conditions=(Ascending(("y_low", "y_high")),))

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return what each row has."""
        y, low, high = columns
        if self.loss == "coverage":
            inside: Floats = ((y >= low) & (y <= high)).astype(np.float64)
            return inside
        width: Floats = high - low
        if self.loss == "winkler":
            width += 2 / self.alpha * np.maximum(np.maximum(low - y, y - high), 0.0)
        return width


class EnsembleSum(RowSum):
    """The continuous ranked probability score of the members of an ensemble, each as likely."""

    fair: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A target, and (n, m) members."""
        return Schema((_bounded("y_true"), _bounded("y_ensemble", wide=True)), self.nan_policy)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the integral of the squared distance of both distribution functions.

        It is mean |x - y| less half of mean |x - x'|, of pairs that differ if it is fair, as a sum
        over the gaps between members, none of which is negative.
        """
        y, members = columns
        members = np.sort(members.reshape(len(y), -1), axis=1)
        m = members.shape[1]
        y = y[:, None]
        below, above = np.arange(1.0, m), np.arange(m - 1.0, 0.0, -1.0)  # members beside a gap
        cut = np.clip(y, members[:, :-1], members[:, 1:])
        less = 1.0 if self.fair else 0.0
        inside = (cut - members[:, :-1]) * (below * (below - less))
        inside += (members[:, 1:] - cut) * (above * (above - less))
        score: Floats = inside.sum(axis=1) / (m * max(m - less, 1.0))
        score += np.maximum(members[:, 0] - y[:, 0], 0.0)
        score += np.maximum(y[:, 0] - members[:, -1], 0.0)
        return score


class GaussianSum(RowSum):
    """The continuous ranked probability score of normal distributions."""

    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A target, a mean and a standard deviation."""
        std = _bounded("y_std", low=1 / _MOST)
        return Schema((_bounded("y_true"), _bounded("y_mean"), std), self.nan_policy)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the score of each row."""
        y, mean, std = columns
        z = np.abs(y - mean) / std
        near = np.polynomial.chebyshev.chebval(np.minimum(z, _TAIL) * (2 / _TAIL) - 1, _SERIES)
        score: Floats = std * np.where(z < _TAIL, near, z - 1 / math.sqrt(math.pi))
        return score


# The Chebyshev series of z (2 Φ(z) - 1) + 2 φ(z) - 1 / √π for z from 0 to the tail. It was made by
# numpy.polynomial.chebyshev.chebinterpolate, whose last bits depend on the platform.
# fmt: off
_SERIES: Floats = np.array([
    4.059555029123951, 4.268732507728398, 0.18811683557734565, -0.1317904971072169,
    0.07771166484248071, -0.03664898436728487, 0.011940598668680857, -0.0008178482116785393,
    -0.0020965884133186527, 0.0016270303579334828, -0.0006044884826725174,
    2.2563379271966342e-05, 0.00011843191099968628, -7.449999433155236e-05,
    1.7355973138709754e-05, 5.763224519231703e-06, -6.470978835437506e-06,
    2.148184534588674e-06, 1.7567790008058208e-07, -4.7666256029639404e-07,
    1.8439039868209704e-07, 2.26165264218171e-09, -3.217249714223009e-08,
    1.2781005591452684e-08, 1.0827115583516286e-10, -2.041586384674083e-09,
    7.422622011614384e-10, 3.607217956526267e-11, -1.203172771205638e-10, 3.579598644048687e-11,
    4.8135129503435815e-12, -6.373113109538825e-12, 1.3609874692695266e-12,
    4.099602130556953e-13, -2.921121514445186e-13, 3.1240041020627993e-14,
    1.893884853546449e-14, -2.1188657835605377e-14, -1.4029774586430025e-14,
    -1.232670415786695e-14, -1.4205159398838296e-14, -1.2377425961166146e-14,
    -1.2492267003882162e-14, -1.3434871597414831e-14, -1.5604558817021082e-14,
    -1.4397527705192472e-14, -1.4184176929304751e-14, -1.141719185309918e-14,
    -1.0353908861629294e-14, -9.793805455087545e-15, -1.1306560683940092e-14,
    -1.4388985986013047e-14, -1.9155211691480108e-14, -1.8653598203607625e-14,
    -1.9654065400797387e-14, -1.8162702264978243e-14, -1.8560861465096485e-14,
    -1.9123109319197375e-14, -2.20019603327479e-14, -2.242667108219088e-14,
    -2.4850525694793477e-14, -2.3751308002912346e-14, -2.4858425527335744e-14,
    -2.3968340099218046e-14, -2.504937049315716e-14,
])
# fmt: on


class QuantileSum(RowSum):
    """Twice the mean pinball loss of quantiles, which approaches the ranked probability score."""

    levels: tuple[float, ...]
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A target, and a quantile for each level."""
        fields = _bounded("y_true"), _bounded("y_quantiles", wide=True)
        ascending = Ascending(("y_quantiles",), len(self.levels))
        return Schema(fields, self.nan_policy, conditions=(ascending,))

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the score of each row."""
        y, quantiles = columns
        off = y[:, None] - quantiles.reshape(len(y), -1)
        levels = np.array(self.levels)
        total: Floats = np.maximum(levels * off, (levels - 1) * off).sum(axis=1)
        return total * (2 / len(levels))


class ScaledSum(RowSum):
    """Errors over the scale of the row's series, absolute or squared.

    A square below the normal floats is left out of the numbers, and added to the total unrounded.
    """

    takes_counts = True

    squared: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A target, a prediction and the scale of their series."""
        scale = _bounded("scale", low=1 / _MOST)
        return Schema((_bounded("y_true"), _bounded("y_pred"), scale), self.nan_policy)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the scaled error of each row."""
        errors = self._errors(*columns)
        if not self.squared:
            return errors
        squares = errors * errors
        return np.where(squares < NORMAL, 0.0, squares)

    def _errors(self, *columns: ReadColumn) -> Floats:
        y, p, scale = columns
        errors: Floats = np.abs(y - p) / scale
        return errors

    def _left_out(self, *columns: ReadColumn) -> Floats | None:
        """Return the errors whose squares are left out, and 0 for others; ``None`` if all are 0."""
        if not self.squared:
            return None
        errors = self._errors(*columns)
        small = np.where(errors * errors < NORMAL, errors, 0.0)
        return small if small.any() else None

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the sums of the numbers of rows, with what is left out of them."""
        fields: dict[str, Any] = super().lift(columns, weight, group)
        small = self._left_out(*columns)
        if small is not None:
            fields["total"] += summed(small, weight, group, small)
        return fields

    def check_fields(self) -> None:
        """Check as well that the sum of what is never negative is not."""
        super().check_fields()
        if self.total.any_negative:
            raise StateFormatError("the sum of scaled errors is negative")


class CosineSum(RowSum):
    """The cosine of the angle between target and prediction, 0 where one of them is 0."""

    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Targets and predictions (n, d)."""
        true, pred = (_bounded(name, wide=True) for name in ("y_true", "y_pred"))
        return regression_schema(self.nan_policy, true=true, pred=pred)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the cosine of each row."""
        y, p = (_normed(each.reshape(len(each), -1)) for each in columns)
        cosine: Floats = (y * p).sum(axis=1)
        return np.clip(cosine, -1.0, 1.0)


def _normed(rows: Floats) -> Floats:
    """Return rows of length 1, or of zeros."""
    most = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(most > 0, most, 1.0)
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows / np.where(most > 0, length, 1.0)


class BinnedShares(Statistic):
    """The weight of values from 0 to 1 in bins of equal width, the last of which holds 1 too."""

    takes_counts = True

    n_bins: int
    nan_policy: NanPolicy = "raise"

    bins = Weight(lambda of: (of.n_bins,))

    @property
    def schema(self) -> Schema:
        """Values of a distribution function."""
        return Schema((Numbers("pit", low=0.0, high=1.0),), self.nan_policy)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return how much there is in each bin."""
        edges = np.linspace(0.0, 1.0, self.n_bins + 1)[1:-1]
        pit: Floats = columns[0]
        places = edges.searchsorted(pit, side="right")
        if group is None:
            return {"bins": WeightedCount.at_places(places, self.n_bins, weight)}
        places += group.index * self.n_bins
        bins = WeightedCount.at_places(places, group.size * self.n_bins, weight)
        return {"bins": bins.shaped((group.size, self.n_bins))}
