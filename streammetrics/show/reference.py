"""The entries of ``docs/metrics.md``, made of the docstrings of metrics.

    python -m streammetrics.show.reference docs/metrics.md

brings a page up to date: every ``### Name`` of a metric is written anew, and a metric that has none
gets one behind the others of its module. All else on the page stays.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.registry import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.metric import Metric
    from streammetrics.core.parameters import Parameter

_SECTION = re.compile(r"^(Args|Raises|Memory and cost|Reference|Example):[ \n]", re.MULTILINE)
_ITEM = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
# What a page says once, above the entries of a family.
_SHARED = re.compile(r"^(The other p|P)arameters are those of `\w+`(\s+and\s+`\w+`)?\.\s*")
_FORMULA = re.compile(r"^Formula: (.+?)(?:, with (.+)\.)?$", re.MULTILINE)
_ENTRY = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


class Documentation(NamedTuple):
    """A docstring in parts."""

    text: str
    sections: dict[str, str]


def documented(cls: type) -> Documentation:
    """Return the parts of a class's docstring."""
    pieces = _SECTION.split(inspect.getdoc(cls) or "")
    titles, bodies = pieces[1::2], pieces[2::2]
    return Documentation(pieces[0].strip(), dict(zip(titles, bodies, strict=True)))


def formula(cls: type) -> tuple[str, str]:
    """Return the formula in a class's docstring, and what its letters are; both may be empty."""
    for paragraph in documented(cls).text.split("\n\n"):
        found = _FORMULA.match(" ".join(paragraph.split()))
        if found:
            return found[1], found[2] or ""
    return "", ""


def entry(cls: type[Metric]) -> str:
    """Return what a page says of a metric, below its heading."""
    text, sections = documented(cls)
    paragraphs = [shown for p in text.split("\n\n") if (shown := _SHARED.sub("", p))]
    paragraphs = [_typed(p) if p.startswith("Formula: ") else p for p in paragraphs]
    paragraphs += _parameters(cls, sections.get("Args", ""))
    for title in ("Memory and cost", "Reference"):
        if title in sections:
            paragraphs.append(f"{title}: {inspect.cleandoc(sections[title])}")
    paragraphs = [re.sub("``+", "`", paragraph) for paragraph in paragraphs]
    example = inspect.cleandoc(sections["Example"]).removeprefix(">>> import streammetrics as sm\n")
    return "\n\n".join([*paragraphs, f"```python\n{example}\n```"])


def _typed(paragraph: str) -> str:
    """Return a formula as a page has it, typed: what its letters are is in words."""
    line = " ".join(paragraph.split())
    return _FORMULA.sub(lambda f: f"Formula: `{f[1]}`" + (f", with {f[2]}." if f[2] else ""), line)


def _parameters(cls: type[Metric], args: str) -> Iterator[str]:
    """Yield the list of the parameters that are the metric's own."""
    own = {name: known for name, known in cls._parameters.items() if known.owner is cls}
    lines = [_item(name, own[name], body) for name, body in _told(args).items() if name in own]
    if lines:
        yield "\n".join(lines)


def inherited(cls: type[Metric]) -> str:
    """Return the list of the parameters that a metric has of its family."""
    told: dict[str, str] = {}
    for base in cls.__mro__:  # what is nearer to the metric counts
        told = _told(documented(base).sections.get("Args", "")) | told
    return "\n".join(
        _item(name, parameter, told[name])
        for name, parameter in cls._parameters.items()
        if parameter.owner is not cls and name in told
    )


def _told(args: str) -> dict[str, str]:
    """Return what a section of parameters says of each."""
    pieces = _ITEM.split(f"\n{args}")
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _item(name: str, parameter: Parameter, body: str) -> str:
    default = "" if parameter.required else f"={parameter.default!r}"
    return f"- `{name}{default}`: {' '.join(body.split())}".replace("'", '"', 2 * ("'" in default))


def updated(page: str) -> str:
    """Return a page with the entry of every metric as its docstring has it."""
    metrics = catalogue()
    page = _ENTRY.sub(
        lambda found: (
            f"### {found[1]}\n\n{entry(metrics[found[1]])}\n\n" if found[1] in metrics else found[0]
        ),
        page,
    )
    for name, cls in metrics.items():
        if f"### {name}\n" not in page:
            page = _added(page, name, cls, metrics)
    return page.rstrip() + "\n"


def _added(page: str, name: str, cls: type[Metric], metrics: dict[str, type[Metric]]) -> str:
    """Return the page with an entry more, behind those of its module or else of its room."""
    room = cls.__module__.rpartition(".")[0]
    for place in (cls.__module__, room):
        beside = [
            found
            for found in _ENTRY.finditer(page)
            if found[1] in metrics and metrics[found[1]].__module__.startswith(place)
        ]
        if beside:
            end = beside[-1].end()
            return f"{page[:end]}### {name}\n\n{entry(cls)}\n\n{page[end:]}"
    raise ValueError(f"the page has no entry of {room}: write one by hand to say where it goes")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
