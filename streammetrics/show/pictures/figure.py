"""The figure that a plot opens where it is given no axes; importing this needs Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase


class TextFigure(Figure):
    """A figure whose letters are text in SVG files too, where Matplotlib writes their outlines.

    Outlines are more than all curves of a picture: 18 of 30 KB, and nobody can search or copy them.
    """

    def draw(self, renderer: RendererBase) -> None:
        """Draw everything; renderers of SVG ask for the setting at each text."""
        with rc_context({"svg.fonttype": "none"}):
            super().draw(renderer)
