"""Writes docs/coverage.md: what the metrics of other libraries are called here, or why not.

The package has those names too, for the suggestions in its errors: `core/elsewhere.py`.

    python tests/peers/write.py

Every public metric of the libraries that are installed has to stand in coverage.toml, and every
name of ours there has to exist: what does not is told, and nothing is written.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import streammetrics as sm
from streammetrics.core.names import letters

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "coverage.md"
MODULE = Path(sm.__file__).parent / "core" / "elsewhere.py"
SHORT = "short names"  # the section of what many say, and no library in particular
TITLES = {
    "scikit-learn": "scikit-learn",
    "torchmetrics.classification": "torchmetrics",
    "torchmetrics.regression": "torchmetrics",
    "torchmetrics.retrieval": "torchmetrics",
    "torchmetrics.clustering": "torchmetrics",
    "torchmetrics.nominal": "torchmetrics",
    "torchmetrics.detection": "torchmetrics",
    "torchmetrics.segmentation": "torchmetrics",
    "torchmetrics.text": "torchmetrics",
    "seqeval": "seqeval",
    "river": "river",
    "ranx": "ranx",
    "ir_measures": "ir_measures",
}  # the section, and whose distribution it is of
OPENING = """\
# Beside other libraries

Every public metric of other libraries, and ours beside it, or why there is none. The page is
written by `python tests/peers/write.py` from the libraries that are installed, and fails where one
of their names is missing from it. How to call ours so that it gives their value stands in
[migrating.md](migrating.md), and here where it is another one.

Of torchmetrics, names stand once for `Binary`, `Multiclass` and `Multilabel` alike. Its metrics of
images, sound and video measure signals and need models or transforms: they are no part of this
library, whose business is labels, scores, numbers, rankings, clusters, boxes and text.

What has no twin, and why:

- `empty_target_action="error"` of rankings: `compute` does not raise, as one query would take the
  values of a whole set away. `no_relevant="skip"` and `n_queries` show how many there are.
- A function as `aggregation` of rankings: a state holds no code. Apply it to `per_query()`.
- `top_k` above 1 of precision, recall and F of classes: it replaces a prediction by the truth where
  that is among the first k, which is one line before `update`, see [migrating.md](migrating.md).
- `ignore_index` of label rankings, reports and `"samples"` averages of several labels a row: these
  compare the labels of a row, of which some would not be known.
- `ignore_index` among the `labels`: a class whose rows are left out has no value. With
  `labels=None` it is a class where it is predicted.
- The p-value of Kendall's tau: it is of one hypothesis, and `confidence` has limits.
- One-vs-rest hinge loss: it is `HingeLoss` of `y_true == k` and column k, class by class.
- Stemming in ROUGE: of English alone, and a library of its own. Stem texts before `update`.
- Generalised Dice and Hausdorff distance: see the table of torchmetrics.segmentation.
- The p-value of a chi-squared test of drift: with many rows any difference is significant.
  `CramersV` of samples and categories has the size of the effect.
- Row groups of Parquet are not skipped by `--where`: a filter of the command line reads all rows,
  so that text, numbers and missing values follow the same rules in every format.
- Concordance of censored data by inverse probability weights: a pair has the weight of its first
  event, and counts of pairs have none. AUC and Brier score at a time are those of weighted rows:
  see [migrating](migrating-tools.md#scikit-survival).
"""

SAID = "What is said in papers and tables, whatever the library."
MODULE_OPENING = '''\
"""What metrics are called elsewhere, in small letters: written by `tests/peers/write.py`."""
'''


def theirs(section: str) -> set[str]:
    """Return the names of the metrics of an installed library."""
    if section == "scikit-learn":
        module = importlib.import_module("sklearn.metrics")
        return {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    if section == "river":
        module = importlib.import_module("river.metrics")
        return {name for name in module.__all__ if inspect.isclass(getattr(module, name, None))}
    if section == "ranx":
        module = importlib.import_module("ranx.metrics")
        found = {name for name, thing in vars(module).items() if callable(thing)}
        tools = {"metric_switch"} | {name for name in found if name.startswith(("get_", "_"))}
        return found - tools
    if section == "ir_measures":
        registry = importlib.import_module("ir_measures").measures.registry
        return {name for m in registry.values() if (name := m.NAME).isascii()}  # alpha is one too
    if section == "seqeval":
        module = importlib.import_module("seqeval.metrics.sequence_labeling")
        ends = ("_score", "_report", "_measure")
        return {name for name in vars(module) if name.endswith(ends)}
    module = importlib.import_module(section)
    if section == "torchmetrics.detection":  # most of whose names need torchvision
        listed = inspect.getsource(module).partition("__all__")[2]
        return set(re.findall(r"\"(\w+)\"", listed))
    return {re.sub("^(Binary|Multiclass|Multilabel)", "", name) for name in module.__all__}


def known() -> dict[str, dict[str, str]]:
    """Return what coverage.toml says, by section."""
    found: dict[str, dict[str, str]] = tomllib.loads((HERE / "coverage.toml").read_text())
    return found


def missing() -> list[str]:
    """Return names of ours that the table tells of and the package does not have."""
    told = {
        name
        for names in known().values()
        for ours in names.values()
        if not ours.startswith("no: ")
        for name in ours.partition(": ")[0].split(", ")
    }
    return sorted(told - set(sm.__all__))


def page() -> str:
    """Return the page, of the libraries that are installed.

    Raises:
        ValueError: A name of theirs is not in the table, or one of the table is not theirs.
    """
    parts = [OPENING]
    for section, names in known().items():
        have = names.keys() if section == SHORT else theirs(section)
        if have != names.keys():
            raise ValueError(
                f"{section}: not in the table: {sorted(have - names.keys())}; "
                f"not in the library: {sorted(names.keys() - have)}"
            )
        of = sum(not ours.startswith("no: ") for ours in names.values())
        told = f"{version(TITLES[section])}: {of} of {len(names)}." if section != SHORT else SAID
        parts.append(f"## {section.capitalize() if section == SHORT else section}\n\n{told}\n\n")
        parts[-1] += rows(names)
    return "\n".join(parts)


def rows(names: dict[str, str]) -> str:
    """Return a section's table."""
    lines = "".join(f"| `{name}` | {_cell(ours)} |\n" for name, ours in sorted(names.items()))
    return f"| there | here |\n| --- | --- |\n{lines}"


def module() -> str:
    """Return the text of the package's own table: our names by the letters of theirs."""
    mine = {letters(name) for name in sm.__all__}
    found: dict[str, dict[str, None]] = {}
    for _, names in sorted(known().items(), key=lambda section: section[0] != SHORT):
        for name, ours in names.items():
            key = letters(name).removesuffix("score")
            if not ours.startswith("no: ") and not mine & {key, letters(name)}:
                each = ours.partition(": ")[0].split(", ")
                found.setdefault(key, {}).update(dict.fromkeys(each))
    lines = "".join(f'    "{key}": "{", ".join(each)}",\n' for key, each in sorted(found.items()))
    return f"{MODULE_OPENING}\nELSEWHERE = {{\n{lines}}}\n"


def _cell(ours: str) -> str:
    if ours.startswith("no: "):
        return f"none: {ours.removeprefix('no: ')}"
    names, _, how = ours.partition(": ")
    links = ", ".join(f"[`{name}`](metrics.md#{name.lower()})" for name in names.split(", "))
    return f"{links}: {how}" if how else links


def main() -> int:
    """Write the page; return 1 where the table is not whole."""
    if lacking := missing():
        print("coverage.toml names what is not there:", ", ".join(lacking))
        return 1
    try:
        text = page()
    except ValueError as error:
        print(error)
        return 1
    PAGE.write_text(text)
    MODULE.write_text(module())
    return 0


if __name__ == "__main__":
    sys.exit(main())
