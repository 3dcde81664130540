"""The figure that a plot creates if no axes are passed; importing this module needs Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase


class TextFigure(Figure):
    """A figure whose text stays text in SVG files; by default Matplotlib writes glyph outlines.

    Outlines take more space than all curves of a picture, 18 of 30 KB, and cannot be searched or
    copied.
    """

    def draw(self, renderer: RendererBase) -> None:
        """Draw everything; the SVG renderer reads the font setting at each text."""
        with rc_context({"svg.fonttype": "none"}):
            super().draw(renderer)
