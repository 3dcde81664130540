"""The base class of values made of several numbers: export as dictionary, table and plot."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from streammetrics.core.results.hooks import Drawing, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.results.table import Library, Table
    from streammetrics.core.types import Foreign

VALUE = "value"  # title of the column of a table with one number per row


class Result:
    """A value made of several numbers, each with a label."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[Any, Any]:
        """Return the value by label, as plain Python objects that JSON can represent."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the value as a table."""

    def to_frame(self, library: Library = "pandas") -> Foreign:
        """Return the value as a data frame.

        The labels of the rows are the index in pandas, and the first columns in polars.

        Args:
            library: ``"pandas"`` or ``"polars"``, which must be installed.
        """
        return self._table().frame(library)

    def to_csv(self) -> str:
        """Return the value as CSV in full precision; the labels of the rows come first."""
        return self._table().csv()

    def to_markdown(self) -> str:
        """Return the value as a Markdown table."""
        return self._table().markdown()

    def to_latex(self) -> str:
        r"""Return the value as a LaTeX tabular, which requires ``\\usepackage{booktabs}``."""
        return self._table().latex()

    def plot(self, ax: object = None, *, kind: str | None = None, **style: object) -> Axes:
        """Plot the value and return Matplotlib's axes; requires the extra ``plot``.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which plot, if there are several; see ``docs/pictures.md``.
            **style: Arguments of Matplotlib for the main line or mark: ``color``, ``label``, ...

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: The value has no plot, or none of this kind.
        """
        return drawn(self, ax, Drawing(kind, style=style))

    def _repr_html_(self) -> str | None:
        return self._table().html()
