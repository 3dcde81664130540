"""Sets as mappings: their named inputs, and views of their metrics."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import (
    COUNTS,
    WEIGHT,
    asks_for,
    check_single,
    is_several,
    meant,
    near,
    parted,
)
from streammetrics.core.columns.conversion import Beside
from streammetrics.core.configured import brief
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.values import flat

if TYPE_CHECKING:
    from collections.abc import (
        ItemsView,
        Iterable,
        Iterator,
        KeysView,
        Mapping,
        Sequence,
        ValuesView,
    )

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import ArrayLike, Foreign


_AT_MAKING = {"columns", "unit"}  # parameters of a set's constructor


class NamedInputs:
    """The inputs of a set, and the user's columns for them."""

    columns: dict[str, str]  # the user's names of inputs that have another name
    _titles: dict[str, str]  # the user's name of every input
    _needed: tuple[str, ...]  # the user's names of required columns
    _in_tables: dict[str, str]
    _told: bool  # whether the warning about unused weights was given

    def _name_inputs(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Derive the tables of names from `columns` once, because small batches need them often."""
        # No column of a table has an empty name.
        self._in_tables = {WEIGHT: "", COUNTS: "", **self.columns}
        self._told = False
        self._titles = {
            name: self.columns.get(name, name) for name in (*required, *optional, COUNTS)
        }
        # An optional input is required if `columns` names it.
        needed = (*required, *self.columns)
        self._needed = tuple(dict.fromkeys(self.columns.get(name, name) for name in needed))

    def _tell(self, names: Iterable[str]) -> None:
        """Warn once if a table has a column of weights that `columns` does not name."""
        if not self._told and WEIGHT in names and WEIGHT not in self._asked(names).values():
            warnings.warn(
                f"the table's column {WEIGHT!r} is not read, and every row weighs 1: "
                f"columns={{{WEIGHT!r}: {WEIGHT!r}}} takes it as the weight",
                stacklevel=3,
            )
            self._told = True

    def _asked(self, names: Iterable[str], *, weighted: bool = False) -> dict[str, str]:
        """Return the column of each input that is required, or is among the `names` of a table.

        Weights and counts are included only if `columns` names them, or if `weighted`: all columns
        were passed by name.
        """
        wanted = {*self._needed, *names}
        asked = {name: title for name, title in self._titles.items() if title in wanted}
        for name in (WEIGHT, COUNTS):
            if not weighted and name not in self.columns:
                asked.pop(name, None)
        return asked

    def _reads(self, names: Iterable[str]) -> list[str]:
        """Return the columns of a table that `update` reads.

        Raises:
            InvalidBatchError: A required column is missing.
        """
        names = list(names)
        self._tell(names)
        parts = self._parts(names).values()
        return list(dict.fromkeys(name for part in parts for name in part))

    def _parts(self, names: list[str], *, weighted: bool = False) -> dict[str, tuple[str, ...]]:
        """Return the columns that each of the user's names refers to: one, or those of a matrix."""
        asked = dict.fromkeys(self._asked(names, weighted=weighted).values())
        plain = [title for title in asked if title in names]
        self._check_there([*plain, *filter(is_several, asked)], names)
        parts = {title: parted(title, names, plain) for title in asked}
        check_single((name for part in parts.values() for name in part), names)
        return parts

    def _known(self, columns: Mapping[str, object]) -> list[str]:
        """Return the names of the columns; raise if no input uses one of them."""
        titles = dict.fromkeys(self._titles.values())
        other = columns.keys() - set(titles)
        unknown = sorted(n for n in other if not any(asks_for(title, n) for title in titles))
        if unknown:
            for name in _AT_MAKING & columns.keys():
                raise _made_with(name, columns[name])
            if COUNTS not in self.columns:
                titles.pop(COUNTS, None)
            raise InvalidBatchError(
                f"no input is called {', '.join(map(repr, unknown))}"
                f"{meant(unknown[0], titles)}; the inputs are {', '.join(map(repr, titles))}"
            )
        return list(columns)

    def _check_there(self, given: Sequence[str], names: Sequence[str]) -> None:
        missing = [title for title in self._needed if title not in given]
        if missing and missing[0] in names:
            raise InvalidBatchError(f"{missing[0]} is None; pass its values", missing[0])
        if missing:
            near = meant(missing[0], [name for name in names if name not in given])
            raise InvalidBatchError(
                f"no column {', '.join(map(repr, missing))}; "
                f"there are: {', '.join(map(repr, names)) or 'none'}{near}"
            )


def beside_a_table(columns: Mapping[str, object]) -> InvalidBatchError:
    """Return the error for columns passed in addition to a table."""
    for name in _AT_MAKING & columns.keys():
        return _made_with(name, columns[name])
    name = next(iter(columns))
    return InvalidBatchError(
        f"pass one table or columns by name, not both: beside the table there is {name!r}; it is "
        "read of the table where that has a column of this name, or of another one with "
        f"MetricSet(..., columns={{{name!r}: 'COLUMN'}})"
    )


def _made_with(name: str, value: object) -> InvalidBatchError:
    return InvalidBatchError(
        f"{name} is not a column: it is set once, when the set is made: "
        f"MetricSet(..., {name}={brief(value)}), whose update(table) takes the table alone"
    )


def columns_of(table: Foreign, parts: Mapping[str, tuple[str, ...]]) -> dict[str, ArrayLike]:
    """Return the column or matrix of a table for each of the user's names."""
    return {
        title: table[names[0]] if len(names) == 1 else Beside({name: table[name] for name in names})
        for title, names in parts.items()
    }


class ByName(Mergeable):
    """A set as a mapping from names to read-only views of its metrics."""

    _accumulator: Accumulator
    _metrics: dict[str, Metric]  # without rows
    _viewed: dict[str, Metric] | None  # created on first use

    def _views(self) -> dict[str, Metric]:
        """Return the metrics as views of this set's rows."""
        views = self._viewed
        if views is None:
            view = self._open_view()
            views = {name: metric._over(view) for name, metric in self._metrics.items()}
            self._viewed = views
        return views

    def _open_view(self) -> ReadOnly:
        """Return the accumulator that the views read."""
        return ReadOnly(self._accumulator)

    def keys(self) -> KeysView[str]:
        """Return the names of the metrics."""
        return self._metrics.keys()

    def values(self) -> ValuesView[Metric]:
        """Return read-only views of the metrics."""
        return self._views().values()

    def items(self) -> ItemsView[str, Metric]:
        """Return the names with read-only views of the metrics."""
        return self._views().items()

    def __getitem__(self, name: str) -> Metric:
        try:
            return self._views()[name]
        except KeyError:
            raise KeyError(f"no metric {name!r}{near(str(name), self._metrics)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def flat(self, prefix: str = "") -> dict[str, float]:
        """Return all numbers in a flat dictionary, as experiment loggers expect.

        Values by class are named ``NAME/CLASS``. Curves and matrices are left out. See
        ``docs/training.md`` for MLflow, Weights & Biases, TensorBoard and Lightning.

        Args:
            prefix: Prefix of all names, such as ``"val/"``.

        Raises:
            ValueError: Two numbers have the same name, such as those of metrics ``"r"`` and
                ``"r/cat"``.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"recall": sm.Recall(average=None), "acc": sm.Accuracy()})
            >>> suite.update(y_true=["a", "b", "b"], y_pred=["a", "b", "a"]).flat("val/")
            {'val/recall/a': 1.0, 'val/recall/b': 0.5, 'val/acc': 0.6666666666666666}
        """
        found: dict[str, float] = {}
        parts: Any = self.items()
        for name, part in parts:
            if isinstance(part, ByName):  # one for each model of a comparison
                numbers = part.flat(f"{prefix}{name}/")
            else:
                numbers = flat(f"{prefix}{name}", part.compute())
            if twice := numbers.keys() & found:
                raise ValueError(
                    f"two numbers of this set would be called {min(twice)!r}: rename one of the "
                    "metrics"
                )
            found |= numbers
        return found
