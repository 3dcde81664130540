"""Rows of several models in one reading: what they have alike, and each one's own columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streammetrics.core.columns.schema import Condition, Facts, Field, Schema
from streammetrics.statistics.rankings.rows import RankingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Bools, Columns, Places

# Inputs of which each model has its own; all others are of the rows.
OF_MODELS = ("y_score", "y_pred", "score", "labels_pred", "values")


def alias(name: str, model: str) -> str:
    """Return how a model's own input is called among those of all models."""
    return f"{name} of {model}" if name in OF_MODELS else name


def _view(batch: Batch, names: tuple[str, ...], model: str) -> Batch:
    """Return a batch as the statistics of a model know it."""
    return batch.aliased({name: alias(name, model) for name in names})


@dataclass(frozen=True)
class Own(Field):
    """A field that reads a model's own inputs in the place of its inputs."""

    of: Field
    model: str

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The inputs, with the model's own in their places."""
        return tuple(alias(name, self.model) for name in self.of.names)

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Those of the names that a batch may leave out."""
        return frozenset(alias(name, self.model) for name in self.of.optional)

    @property
    def nested(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """Those whose rows hold several values."""
        return tuple((alias(name, self.model), each) for name, each in self.of.nested)

    @property
    def leader(self) -> str:  # type: ignore[override]
        """The labels whose shape the columns beside them follow: they are of the rows."""
        return self.of.leader

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each of the columns holds."""
        return {alias(name, self.model): kind for name, kind in self.of.kinds.items()}

    @property
    def plain(self) -> Own:
        """The same columns, whatever is asked of them."""
        return Own(self.of.plain, self.model)

    def take(self, batch: Batch) -> tuple[Columns, Bools | None]:
        """Return the converted columns and a mask of the rows where a value is missing."""
        view = _view(batch, self.of.names, self.model)
        taken = self.of.take(view)
        batch.n_rows = view.n_rows
        return taken

    def ignored(self, taken: Columns) -> Bools | None:
        """Return a mask of rows to be left out whatever else they hold."""
        return self.of.ignored(taken)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Raise where a value that is not missing lies outside the domain."""
        self.of.validate(_view(batch, self.of.names, self.model), taken, missing)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> tuple[Columns, Facts]:
        """Return the canonical columns of the kept rows and their facts."""
        return self.of.finish(_view(batch, self.of.names, self.model), taken, rows)

    def present(self, columns: Columns) -> Columns:
        """Return what is made, row by row, of the columns that were read."""
        return self.of.present(columns)


@dataclass(frozen=True)
class OwnCondition(Condition):
    """A condition on a model's own columns."""

    of: Condition
    names: tuple[str, ...]
    model: str

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise where rows that are not missing do not meet it."""
        self.of.check(_view(batch, self.names, self.model), missing)


@dataclass(frozen=True)
class Bring:
    """How the columns of each model become the columns of a joint statistic.

    Two are equal where `key` is: it says what is made, and of which statistic's columns.
    """

    key: Hashable
    columns: Callable[[list[Columns]], Columns] = field(compare=False)


@dataclass(frozen=True)
class ModelSchema(Schema):
    """The schema of a statistic over the rows of several models, which are read together.

    A row that one model leaves out is left out for all. Statistics of one model are shown its
    columns, joint ones what `bring` makes of those of some models.
    """

    of: Schema = field(kw_only=True)
    models: tuple[str, ...] = field(kw_only=True)
    shown: tuple[str, ...] = field(kw_only=True)
    bring: Bring | None = field(kw_only=True, default=None)

    @classmethod
    def over(
        cls,
        schema: Schema,
        models: Sequence[str],
        shown: Sequence[str],
        bring: Bring | None = None,
    ) -> ModelSchema:
        """Return a statistic's schema over models, of which some are shown to it."""
        fields = tuple(
            replace(field, partial=True) if isinstance(field, RankingRows) else field
            for field in schema.fields
        )
        of = replace(schema, fields=fields)
        return cls(
            tuple(Own(each, model) for model in models for each in fields),
            schema.nan_policy,
            schema.unweighted,
            tuple(
                OwnCondition(each, schema.inputs, model)
                for model in models
                for each in schema.conditions
            ),
            of=of,
            models=tuple(models),
            shown=tuple(shown),
            bring=bring,
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns of all models, in the documented order."""
        return tuple(dict.fromkeys(super().inputs))

    def present(self, columns: Columns) -> Columns:
        """Return the columns as the statistic takes them."""
        width = len(self.of.inputs)
        starts = (width * self.models.index(model) for model in self.shown)
        shown = [self.of.present(columns[start : start + width]) for start in starts]
        return shown[0] if self.bring is None else self.bring.columns(shown)
