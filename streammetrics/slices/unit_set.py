"""A set of metrics whose rows are stored in groups of units, for confidence limits by unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.confidence import check_level
from streammetrics.core.errors import StateFormatError
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Values
from streammetrics.slices.keyed import KeyedSet
from streammetrics.slices.units import limits_by_unit, warn_unsure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.metric import Metric


class UnitSet(KeyedSet):
    """The class of ``MetricSet(..., unit="user")``: a set of metrics with limits by unit."""

    _called = "MetricSet"

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        unit: str,
        counts: str | None = None,
    ) -> None:
        super().__init__(MetricSet(metrics, columns=columns), by=[[]], unit=unit, counts=counts)

    def _confident_by(self, unit: str, level: float, *, anytime: bool) -> Values:
        self._check_unit(unit, anytime=anytime)
        level = check_level(level)
        values = Values()
        whole, rests = self._parts_by_unit()
        for name, metric in self._metrics.items():
            values[name] = interval = limits_by_unit(metric, whole, rests, level)
            warn_unsure(repr(name), interval)
        return values

    def _configuration(self) -> dict[str, object]:
        return {**super()._configuration(), "unit": self.unit}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        suite, unit = MetricSet._configured(meta), meta.get("unit")
        if not isinstance(unit, str):
            raise StateFormatError("the state does not say what its units are")
        return cls(dict(suite.items()), columns=suite.columns, unit=unit)

    def _apart(self, other: Any) -> str:
        if self.unit != other.unit:
            return f"unit is {other.unit!r} there and {self.unit!r} here"
        return super()._apart(other)

    def __repr__(self) -> str:
        inside = repr(self._suite).partition(" <")[0].removesuffix(")")
        return f"{inside}, unit={self.unit!r}) <{self.n_rows:,} rows>"
