"""Docstrings for the site: its reader of docstrings calls "Examples" what they call "Example"."""

from __future__ import annotations

import re

import griffe


class Examples(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )
