"""Rows without a label, as the rules for what their labels may be see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column


class Unlabelled(NamedTuple):
    """Rows without a label, by the names of their columns; and how a label is named."""

    columns: Mapping[str, Column]
    label: str
    titles: Mapping[str, str]  # the user's names of inputs

    def of(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of an input, ``None`` where it holds none."""
        values = self.plain(name)
        return None if values is None or values.dtype.kind == "U" else values

    def plain(self, name: str) -> NDArray[Any] | None:
        """Return the numbers, or the texts, of an input, ``None`` where a row has several."""
        column = self.columns.get(self.titles.get(name, name))
        if column is None or column.values.ndim > 1:
            return None
        return column.values if column.vocabulary is None else column.vocabulary[column.values]
