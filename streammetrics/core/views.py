"""Sets by name: their inputs and the views of their metrics."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import (
    WEIGHT,
    asks_for,
    check_single,
    is_several,
    meant,
    near,
    parted,
)
from streammetrics.core.columns.conversion import Beside
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.parameters import brief
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


_AT_MAKING = {"columns", "unit"}  # parameters of a set


class NamedInputs:
    """Inputs by name, those that are needed, and the user's columns for them."""

    columns: dict[str, str]  # the user's names, of those inputs that have another
    _titles: dict[str, str]  # the user's name of every input
    _needed: tuple[str, ...]  # the user's names of those that must be there
    _in_tables: dict[str, str]
    _told: bool  # of weights that a table has and nothing asks for

    def _name_inputs(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Work out once what follows from `columns`, as small batches need it often."""
        self._in_tables = {WEIGHT: "", **self.columns}  # no column of a table is called nothing
        self._told = False
        self._titles = {name: self.columns.get(name, name) for name in (*required, *optional)}
        # An input that may be left out is needed all the same once `columns` has named it.
        needed = (*required, *self.columns)
        self._needed = tuple(dict.fromkeys(self.columns.get(name, name) for name in needed))

    def _tell(self, names: Iterable[str]) -> None:
        """Warn once of a table with weights that no parameter names."""
        if not self._told and WEIGHT in names and WEIGHT not in self._asked(names).values():
            warnings.warn(
                f"the table's column {WEIGHT!r} is not read, and every row weighs 1: "
                f"columns={{{WEIGHT!r}: {WEIGHT!r}}} takes it as the weight",
                stacklevel=3,
            )
            self._told = True

    def _asked(self, names: Iterable[str], *, weighted: bool = False) -> dict[str, str]:
        """Return the column of each input that is needed, or is among the `names` of a table.

        The weight is asked for only where `columns` names it, or where it is passed by its name.
        """
        wanted = {*self._needed, *names}
        asked = {name: title for name, title in self._titles.items() if title in wanted}
        if not weighted and WEIGHT not in self.columns:
            asked.pop(WEIGHT, None)
        return asked

    def _reads(self, names: Iterable[str]) -> list[str]:
        """Return those of a table's columns that `update` takes.

        Raises:
            InvalidBatchError: A column that it needs is not among them.
        """
        names = list(names)
        self._tell(names)
        parts = self._parts(names).values()
        return list(dict.fromkeys(name for part in parts for name in part))

    def _parts(self, names: list[str], *, weighted: bool = False) -> dict[str, tuple[str, ...]]:
        """Return the columns that what each title stands for is read from: one, or a matrix's."""
        asked = dict.fromkeys(self._asked(names, weighted=weighted).values())
        plain = [title for title in asked if title in names]
        self._check_there([*plain, *filter(is_several, asked)], names)
        parts = {title: parted(title, names, plain) for title in asked}
        check_single((name for part in parts.values() for name in part), names)
        return parts

    def _known(self, columns: Mapping[str, object]) -> list[str]:
        """Return the names, each of which some input asks for."""
        titles = dict.fromkeys(self._titles.values())
        other = columns.keys() - set(titles)
        unknown = sorted(n for n in other if not any(asks_for(title, n) for title in titles))
        if unknown:
            for name in _AT_MAKING & columns.keys():
                raise _made_with(name, columns[name])
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
    """Return the error of columns that are passed beside a table, which has its own."""
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
        f"{name} is no column but said once, when the set is made: "
        f"MetricSet(..., {name}={brief(value)}), whose update(table) takes the table alone"
    )


def columns_of(table: Foreign, parts: Mapping[str, tuple[str, ...]]) -> dict[str, ArrayLike]:
    """Return what each title stands for in a table."""
    return {
        title: table[names[0]] if len(names) == 1 else Beside({name: table[name] for name in names})
        for title, names in parts.items()
    }


class ByName(Mergeable):
    """What a set is as a mapping: names, and beside each its metric as it reads the set's rows."""

    _accumulator: Accumulator
    _metrics: dict[str, Metric]  # of no rows
    _viewed: dict[str, Metric] | None  # made when they are first asked for

    def _views(self) -> dict[str, Metric]:
        """Return the metrics as they read this set's rows."""
        views = self._viewed
        if views is None:
            view = self._open_view()
            views = {name: metric._over(view) for name, metric in self._metrics.items()}
            self._viewed = views
        return views

    def _open_view(self) -> ReadOnly:
        """Return what the metrics of this set are read from."""
        return ReadOnly(self._accumulator)

    def keys(self) -> KeysView[str]:
        """Return the names of the metrics."""
        return self._metrics.keys()

    def values(self) -> ValuesView[Metric]:
        """Return read-only views of the metrics."""
        return self._views().values()

    def items(self) -> ItemsView[str, Metric]:
        """Return the names, each with a read-only view of its metric."""
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
        """Return all numbers by flat names: what loggers of experiments take.

        Values of classes are ``NAME/CLASS``; curves and matrices, which are no few numbers, are
        left out. ``docs/training.md`` shows MLflow, Weights & Biases, TensorBoard and Lightning.

        Args:
            prefix: What all names begin with, as ``"val/"``.

        Raises:
            ValueError: Two numbers have one name, as those of metrics ``"r"`` and ``"r/cat"``.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"recall": sm.Recall(average=None), "acc": sm.Accuracy()})
            >>> suite.update(y_true=["a", "b", "b"], y_pred=["a", "b", "a"]).flat("val/")
            {'val/recall/a': 1.0, 'val/recall/b': 0.5, 'val/acc': 0.6666666666666666}
        """
        found: dict[str, float] = {}
        parts: Any = self.items()
        for name, part in parts:
            if isinstance(part, ByName):  # of a comparison, by model
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
