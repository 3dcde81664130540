"""Docstrings for the site, whose reader finds examples only in sections called "Examples"."""

from __future__ import annotations

import re
from textwrap import indent

import griffe

BARE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # an example in no section


class Examples(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = BARE.sub(_section, text)


def _section(example):
    return "Examples:\n" + indent(example[0], "    ")
