"""What every value of several numbers can do: be told as a dictionary, a table and a picture."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from streammetrics.core.results.hooks import Drawing, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.results.table import Library, Table
    from streammetrics.core.types import Foreign

VALUE = "value"  # the title of a table's only column of values


class Result:
    """A value of several numbers that knows what each of them is of."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[Any, Any]:
        """Return the value in plain Python, ready for JSON, by the labels of what it is of."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the value as a table."""

    def to_frame(self, library: Library = "pandas") -> Foreign:
        """Return the value as a data frame.

        What the rows are of is the index in pandas, and the first columns in polars.

        Args:
            library: ``"pandas"`` or ``"polars"``, which has to be installed.
        """
        return self._table().frame(library)

    def to_csv(self) -> str:
        """Return the value as CSV in full precision: what the rows are of comes first."""
        return self._table().csv()

    def to_markdown(self) -> str:
        """Return the value as a Markdown table."""
        return self._table().markdown()

    def to_latex(self) -> str:
        r"""Return the value as a LaTeX tabular, for ``\\usepackage{booktabs}``."""
        return self._table().latex()

    def plot(self, ax: object = None, *, kind: str | None = None, **style: object) -> Axes:
        """Draw the value and return Matplotlib's axes; it needs the extra ``plot``.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which picture, where there are several, as ``docs/pictures.md`` lists them.
            **style: What Matplotlib takes for the main line or mark: ``color``, ``label``, ...

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: There is no such picture of this value.
        """
        return drawn(self, ax, Drawing(kind, style=style))

    def _repr_html_(self) -> str | None:
        return self._table().html()
