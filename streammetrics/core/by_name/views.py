"""The metrics of a set by their names: read-only views of the rows that it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.naming import near
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.values import flat

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, KeysView, ValuesView

    from streammetrics.core.metric import Metric


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
