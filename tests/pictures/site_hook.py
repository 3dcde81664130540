"""A hook of the documentation site: a page for each metric and notebook, and the examples."""

from __future__ import annotations

import base64
import io
import json
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from mkdocs.structure.files import File

import streammetrics as sm
from streammetrics.core.registry import catalogue
from streammetrics.show.formulas import entry, inherited, set_formula, set_letters
from streammetrics.show.pictures.canvas import Sheet

mpl.use("agg")
RNG = np.random.default_rng(0)
DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"
TYPED = re.compile(r"^Formula: `(.+?)`(?:, with (.+)\.)?$", re.MULTILINE)
LINKED = re.compile(r"\[([\w-]+)\.md\]\((?:\.\./)?\1\.md\)")  # a page that is called by its file
LIGHT = re.compile(r"!\[([^]]*)\]\((pictures/[\w-]+)-light\.png\)")
N = 1500
Y = RNG.integers(0, 2, N)
SCORES = np.clip(RNG.normal(0.4 + 0.2 * Y, 0.15), 0.0, 1.0)
T = RNG.normal(size=N)
ROWS = {
    ("y_true", "y_score"): (Y, SCORES),
    ("y_true", "y_pred"): (Y, (SCORES > 0.5).astype(int)),
    ("values",): (T,),
    ("query", "relevance", "score", "doc"): (np.repeat(np.arange(N // 10), 10), Y, SCORES),
}
ERRORS = (T, T + RNG.normal(size=N) / 2)


def on_files(files, config):
    """Add the pages of all metrics, the list of them, the notebooks, and the examples as files."""
    rooms = {}
    for name, metric in sorted(catalogue().items()):
        room = metric.__module__.split(".")[2].replace("_", " ")
        rooms.setdefault(room, []).append(name)
        picture = drawn(name, metric)
        if picture:
            files.append(_generated(config, f"reference/{name}.svg", picture))
        files.append(_generated(config, f"reference/{name}.md", page(name, metric, picture)))
    files.append(_generated(config, "reference/index.md", listed(rooms), in_nav=True))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = notebook(path)
        files.append(_generated(config, f"notebooks/{path.stem}.md", text, in_nav=True))
        for name, content in pictures.items():
            files.append(_generated(config, f"notebooks/{name}", content))
    for path in sorted(
        [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.toml"), *EXAMPLES.glob("*/*.md")]
    ):
        name = path.relative_to(EXAMPLES.parent).as_posix()
        files.append(_generated(config, name, path.read_text()))
    return files


def notebook(path):
    """Return a notebook as a page, with what its cells gave, and its pictures by name."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell draws]({name}){{ .drawn }}")
            elif "text/html" in data:
                shown = re.sub(r"\s*\n\s*", " ", "".join(data["text/html"]))
                parts.append(f'<div class="output" style="overflow-x: auto">{shown}</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain'])}\n```")
    where = f"This is `examples/notebooks/{path.name}` as it ran."
    return "\n\n".join([*parts, where]), pictures


def on_page_markdown(markdown, page, config, files):
    """Set formulas as mathematics, call other pages by their titles, and pair light with dark."""
    markdown = markdown.replace("](../examples/", "](examples/")  # where the site has them
    markdown = markdown.replace("](../../docs/", "](../../")  # from an example to a page
    return LIGHT.sub(_both, TYPED.sub(_mathematics, LINKED.sub(_titled, markdown)))


def _both(found):
    """Show a picture's dark twin, where it has one, on dark pages, as the theme tells them."""
    told, name = found.groups()
    if not (DOCS / f"{name}-dark.png").exists():
        return found[0]
    return f"![{told}]({name}-light.png#only-light)![{told}]({name}-dark.png#only-dark)"


def _titled(link):
    title = (DOCS / f"{link[1]}.md").read_text().partition("\n")[0].removeprefix("# ")
    return link[0].replace(f"{link[1]}.md", title, 1)


def _mathematics(found):
    box = f'<div class="formula" style="overflow-x: auto">{set_formula(found[1])}</div>'
    words = set_letters(found[2] or "")
    return f"{box}\n\n{f'with {words}.' if words else ''}"


def _generated(config, path, content, *, in_nav=False):
    found = File.generated(config, path, content=content)
    if not in_nav:
        found.inclusion = found.inclusion.__class__.NOT_IN_NAV
    return found


def page(name, metric, picture):
    """Return the page of a metric."""
    family = re.sub("``+", "`", inherited(metric))
    parts = [entry(metric), f"Parameters of its family:\n\n{family}" if family else ""]
    text = re.sub(r"\]\((\w+)\.md", r"](../\1.md", "\n\n".join(filter(None, parts)))
    shown = f"![{name}]({name}.svg){{ .drawn }}\n\n" if picture else ""
    shares = sharing(metric)
    told = f"It reads `{'`, `'.join(shares)}`: metrics of a set that read the same share it.\n\n"
    head = f"# {name}\n\n[All metrics](index.md)\n\n"
    return f"{head}{text}\n\n{shown}{told if shares else ''}"


def sharing(metric):
    """Return the statistics that a metric reads, where it needs no parameter to say so."""
    try:
        return [type(statistic).__name__ for statistic in metric().statistics()]
    except (TypeError, ValueError):
        return []


def drawn(name, metric):
    """Return the picture of a metric as SVG, nothing where it has none."""
    sheet = Sheet()
    try:
        one = metric()
        rows = ERRORS if "error" in name.lower() else ROWS[one.inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.update(*rows).plot(sheet)
    except (TypeError, ValueError, KeyError):
        return ""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        sheet.figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    return out.getvalue()


def listed(rooms):
    """Return the list of all metrics by room, each with its first line."""
    parts = ["# Reference\n\nEvery metric of the package; [all on one page](../metrics.md).\n"]
    for room, names in sorted(rooms.items()):
        parts.append(f"\n## {room.capitalize()}\n\n| metric | |\n| --- | --- |\n")
        for name in names:
            line = (getattr(sm, name).__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")
            parts.append(f"| [{name}]({name}.md) | {line.replace('``', '`')} |\n")
    return "".join(parts)
