"""The columns that a suite slices by: as events bring them, and as keys while rows wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.core.columns.conversion import Column
from streammetrics.core.errors import StateFormatError
from streammetrics.slices.bins import Bins, title_of
from streammetrics.slices.groups import state_of_all
from streammetrics.slices.reading import key_column
from streammetrics.slices.slices import Slices
from streammetrics.statistics.grouped.keys import OTHER, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable

    By = str | Sequence[str] | None


class SliceKeys:
    """What is to be known of a suite's keys; of one that is no `Slices` there are none.

    Attributes:
        kinds: What the columns hold that rows are sliced by, as users name them.
        titles: What the keys are called that are made of them.
        inner: The suite of each slice.
    """

    def __init__(self, suite: Mergeable) -> None:
        self._suite = suite
        self._cuts = suite._cuts if isinstance(suite, Slices) else ()
        self.inner: Mergeable = suite._suite if isinstance(suite, Slices) else suite
        self.kinds: dict[str, Kind] = {
            title_of(column): "number" if isinstance(column, Bins) else "label"
            for cut in self._cuts
            for column in cut.by
        }
        self.titles = frozenset(cut.title for cut in self._cuts)
        layout = self.inner._layout
        renamed: Mapping[str, str] = getattr(suite, "columns", {})
        self._needed = {renamed.get(name, name) for name in layout.required}
        self._read = self._needed | {renamed.get(name, name) for name in layout.optional}
        self._only = self.kinds.keys() - self._read

    def made(self, columns: Mapping[str, object]) -> dict[str, Any]:
        """Return columns with those that are keys alone as keys of text, one for each kind."""
        if not self._cuts or self._cuts[0].title in columns:
            return dict(columns)
        keys = {cut.title: key_column(columns, cut.by) for cut in self._cuts}
        return {**{n: c for n, c in columns.items() if n not in self._only}, **keys}

    def check(self, columns: Mapping[str, Column], *, without: str = "") -> None:
        """Raise `StateFormatError` where columns of a state are not such as rows are kept in.

        Args:
            columns: The columns, in the order of their names, their keys as `made` makes them.
            without: A column that the rows do not have, as their label.
        """
        names, needed = list(columns), (self._needed | self.titles) - {without}
        allowed = (self._read | self.titles) - {without}
        if names != sorted(names) or not needed <= set(names) <= allowed:
            raise StateFormatError(f"rows of the state have columns {names}, not {sorted(needed)}")
        for cut in self._cuts:
            keys = columns[cut.title]
            if keys.vocabulary is None or keys.nulls is not None or OTHER in keys.vocabulary:
                raise StateFormatError(f"rows of the state have no keys as text {cut.title}")
            checked(keys.vocabulary.tolist(), len(cut.titles))

    def named(self, columns: Iterable[str]) -> set[str]:
        """Return the names of columns as users have them, of which `made` made others."""
        return (set(columns) - self.titles) | self._only

    def shown(self, state: State, by: By = None) -> Any:
        """Return what is at a state: a set, or a metric, of all rows, or slices of one kind.

        Raises:
            ValueError: There are no such slices.
        """
        if by is None:
            return self.inner._at(self.whole(state))
        if isinstance(self._suite, Slices):
            try:
                return self._suite._of_kind(state, by)
            except KeyError as error:
                raise ValueError(f"by={by!r}: {error.args[0]}") from None
        raise ValueError(f'by={by!r}: nothing is sliced here; Live(..., by=[["country"]]) would be')

    def whole(self, state: State) -> State:
        """Return the state of all rows, whatever their keys."""
        if not isinstance(self._suite, Slices):
            return state
        return state_of_all(state, self._suite._cuts[0])


def is_made(columns: Mapping[str, object], suite: Mergeable) -> bool:
    """Whether columns have keys as `SliceKeys.made` makes them."""
    return isinstance(suite, Slices) and isinstance(columns.get(suite._cuts[0].title), Column)
