"""Base classes of metrics that are computed from numbers of each row, or from a sample of rows."""

from __future__ import annotations

import inspect
import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streammetrics.core.columns.batch import COUNTS, WEIGHT
from streammetrics.core.columns.computed import Computed, RowFormula, fields_of
from streammetrics.core.columns.objects import Configuration, Preparation, prepared_by
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.errors import EstimateWarning
from streammetrics.core.metric import Metric
from streammetrics.metrics.families import Family
from streammetrics.statistics.joint import SampledRows
from streammetrics.statistics.sums import FormulaSum, mean_of

if TYPE_CHECKING:
    from streammetrics.core.columns.schema import Field
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import GroupValues
    from streammetrics.core.statistic import GroupedStates, Statistic
    from streammetrics.statistics.sums import RowSum


class MeanOfRows(Metric[float]):
    """Base class of metrics that are the mean of one number per row, correctly rounded.

    ``nan`` without rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.

    Memory and cost: exact sums of the numbers and of their squares, which `confidence` needs; about
    200 bytes.
    """

    higher_is_better: ClassVar[bool | None] = False
    value_range = (0.0, math.inf)
    family = Family.ROW_MEAN
    _reads_groups = True

    nan_policy: NanPolicy = "raise"

    def readout(self, held: RowSum) -> float:
        """Return the mean."""
        return mean_of(held.total, held.rows)


class NamedColumns(Metric[float]):
    """Base class of metrics whose columns are the parameters of a method, and those of `update`.

    `_reader` is the name of the method. An annotation constrains a column, such as
    ``Annotated[Floats, Between(0, 1)]``. A method marked with `prepare` makes the columns of the
    arguments of `update`.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.
    """

    nan_policy: NanPolicy = "raise"

    _reader: ClassVar[str]
    _fields: ClassVar[tuple[Field, ...]] = ()
    _prepares: ClassVar[Any] = None
    _names: ClassVar[tuple[str, ...]] = ()
    _weighted: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "_reader" in vars(cls):  # a base class, which only declares the method
            return
        reader, prepares = vars(cls).get(cls._reader), prepared_by(cls)
        if reader is not None:
            cls._fields = fields_of(reader)
        if reader is not None or prepares is not cls._prepares:
            cls._prepares = prepares
            cls._names = tuple(name for each in cls._fields for name in each.names)
            if prepares is not None:
                cls._names = tuple(inspect.signature(prepares).parameters)[1:]
            if wrong := {WEIGHT, COUNTS} & {*cls._names}:
                told = f"{min(wrong)} is no column, as update has it anyway: rename it"
                raise TypeError(f"{cls.__name__}: {told}")
            if "update" not in vars(cls):
                cls.update = _update_of(cls._names, weighted=cls._weighted)  # type: ignore[method-assign]

    def _stateless(self) -> Configuration:
        """Return the class and the parameters, without the state."""
        return Configuration(type(self), self._key, self.config)

    def _schema(self, formula: RowFormula | None = None, unweighted: str = "") -> Schema:
        """Return the schema of the columns, or of the numbers that a formula makes of them."""
        prepares, preparation = type(self)._prepares, None
        if formula is None and prepares is None:
            return Schema(self._fields, self.nan_policy, unweighted)
        if prepares is not None:
            columns = tuple(name for each in self._fields for name in each.names)
            of = self._stateless()
            preparation = Preparation(prepares, self._names, columns, self._key[1:], of)
        computed = Computed(self._fields, formula, preparation)
        return Schema((computed,), self.nan_policy, unweighted)

    def update(self, *columns: Any, **named: Any) -> Self:
        """Add a batch of rows: the columns in the order of the parameters, or by name."""
        raise NotImplementedError  # each class with columns has its own


def _update_of(names: tuple[str, ...], *, weighted: bool) -> Any:
    """Return the `update` of metrics with columns of these names."""
    kinds, options = inspect.Parameter, (WEIGHT, COUNTS) if weighted else (COUNTS,)
    given = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in ("self", *names)]
    given += [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in options]
    signature, known = inspect.Signature(given), {*names, *options}

    def update(self: Any, *columns: Any, **named: Any) -> Any:
        """Add a batch of rows, given as columns in this order or by name."""
        every = dict(zip(names, columns, strict=False)) | named
        fits = len(every) == len(columns) + len(named) and every.keys() <= known
        if not fits or not every.keys() >= set(names):
            signature.bind(self, *columns, **named)  # raises
        return self.feed(every)

    update.__signature__ = signature  # type: ignore[attr-defined]  # read by `inspect.signature`
    return update


class RowMean(NamedColumns):
    """Base class of metrics that are the mean of one number per row, or a function of such means.

    A subclass computes the number of each row in `row`; its parameters are the columns. With
    several numbers, a tuple of arrays, `of_mean` computes the value from their means. Means are
    correctly rounded, and ``nan`` without rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.

    Memory and cost: exact sums of the numbers and of their squares, which `confidence` needs; about
    200 bytes.
    """

    family = Family.ROW_MEAN
    _reads_groups = True
    _formula = ("readout", "row", "of_mean")
    _reader = "row"
    _count: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "_reader" not in vars(cls) and cls.of_mean is not RowMean.of_mean:
            means = list(inspect.signature(cls.of_mean).parameters.values())[1:]
            plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
            if any(each.kind is not plain or each.default is not each.empty for each in means):
                raise TypeError(f"{cls.__name__}.of_mean: name each mean, without a default")
            cls._count = len(means)
            if cls.family == Family.ROW_MEAN:
                cls.family = Family.OF_MEANS

    @abstractmethod
    def row(self, *columns: Any, **named: Any) -> Any:
        """Return a number for each row, (n,), or a tuple of arrays, one for each mean.

        Each number depends on its own row alone. Numbers that are not finite are refused with the
        batch.
        """

    def of_mean(self, *means: Any, **named: Any) -> Any:
        """Return the value, given the mean of each number; by default the only mean.

        A mean is a number, or an array of the means of many groups.
        """
        return means[0]

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of the numbers."""
        low, high = -math.inf, math.inf
        if type(self).of_mean is RowMean.of_mean and self.value_range:
            low, high = self.value_range
        formula = RowFormula(self._stateless(), "row", self._count, low, high)
        return (FormulaSum(of=formula, read=self._schema(formula), count=self._count),)

    def readout(self, held: RowSum) -> float:
        """Return the value of the means."""
        if type(self).of_mean is RowMean.of_mean:
            return mean_of(held.total, held.rows)
        means = self._means(held)
        if isinstance(means[0], np.ndarray):
            return np.asarray(self.of_mean(*means), np.float64)  # type: ignore[return-value]  # of groups
        return float(self.of_mean(*means)) if held.rows else math.nan

    def _means(self, held: RowSum) -> list[object]:
        """Return the mean of each number as float64, or as an array of groups."""
        if self._count == 1:
            return [np.asarray(mean_of(held.total, held.rows))[()]]
        every = [held.total[..., place] for place in range(self._count)]
        return [np.asarray(mean_of(total, held.rows))[()] for total in every]

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        try:
            return super()._of_groups(*forms)
        except (TypeError, ValueError):  # `of_mean` takes numbers and no arrays
            return None


class SampleMetric(NamedColumns):
    """Base class of metrics of columns that need the rows, of which they keep a limited number.

    A subclass computes the value in `of_sample`; its parameters are the columns. Up to `max_rows`
    distinct rows the value is exact. Beyond that it is computed from a sample: the rows with the
    smallest seeded hash, with the number of times each was seen. It does not depend on the order of
    arrival. `exact` is then False, `bounds` gives the `value_range`, and the first `compute` gives
    an `EstimateWarning`.

    Args:
        max_rows: The largest number of distinct rows to keep.
        seed: The seed of the hash that draws the sample; only states with the same seed merge.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    _formula = ("readout", "of_sample")
    _reader = "of_sample"
    _weighted = False

    max_rows: MaxPoints = 20_000
    seed: Seed = 0

    @abstractmethod
    def of_sample(self, *columns: Any, **named: Any) -> Any:
        """Return the value of rows, given as columns (n,) in an order without meaning.

        Rows that were seen several times are repeated, up to 67,108,864 rows in all; beyond,
        reading raises a `StreamMetricsError`. There are no weights.
        """

    def statistics(self) -> tuple[SampledRows]:
        """Return an empty sample."""
        read = self._schema(unweighted="metrics of samples")
        return (SampledRows(read=read, max_rows=self.max_rows, seed=self.seed),)

    def readout(self, sample: SampledRows) -> float:
        """Return the value of the sampled rows; ``nan`` without rows."""
        columns = sample.columns()
        return float(np.float64(self.of_sample(*columns))) if columns else math.nan

    def is_exact(self, *statistics: Any) -> bool:
        """Whether the sample holds all rows."""
        (sample,) = statistics
        return bool(sample.complete)

    def _computed(self, state: State, depth: int = 3) -> float:
        value = super()._computed(state, depth + 1)
        if not self.is_exact(*self._chosen(state)) and not self.__dict__.get("_told", False):
            self.__dict__["_told"] = True
            warnings.warn(
                f"{type(self).__name__} is an estimate: more than max_rows={self.max_rows:,} "
                "distinct rows were seen; bounds() gives what is certain",
                EstimateWarning,
                stacklevel=depth,
            )
        return value
