"""Ratios of a commit beside those of earlier ones: python tests/benchmarks/by_commit.py [FILE].

Runs the benchmarks of `CHOSEN` on a tenth of the rows, appends a line to FILE (by default
build/benchmarks.jsonl) and draws all lines in FILE.svg. Ratios are of processor time, which other
work on the machine disturbs less. The exit status is 1 if one is more than a quarter below the
median of the last lines of the same machine and versions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Line = dict[str, Any]
    Ratios = dict[str, dict[str, float]]  # by title of a benchmark, then case and peer

CHOSEN = {
    "classification": ("F1 at a threshold", "confusion matrix", "F1 small batch"),
    "scores": ("ROC AUC exact", "ROC AUC certified", "ROC AUC weighted"),
    "regression": ("MAE + MSE + R2",),
    "ranking": ("ranking top ten", "Kendall's tau"),
    "clustering": ("ARI + NMI", "Calinski-Harabasz"),
    "reads": ("MSE, MAE and R2 after every batch", "F1 after every batch"),
    "slices": ("F1 and accuracy by slices",),
    "compare": ("DeLong of two models",),
    "texts": ("spans of tags",),
}
SCALE = 0.1
ROUNDS = 7  # at least, of which the best counts
LONG = 0.5  # seconds from which one round is enough
BEFORE = 5  # lines whose median a ratio is compared with
WORSE = 0.75  # of this median: a regression
AGAIN = 2  # times that it is measured again, of which the best counts: a busy machine is none


def main() -> int:
    """Measure, append, draw, and return 1 if there are regressions."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("file", nargs="?", type=Path, default=Path("build/benchmarks.jsonl"))
    file = parser.parse_args().file
    warnings.simplefilter("ignore")
    start = time.monotonic()
    try:
        import_module("matplotlib")  # before minutes of measuring
        from tables import machine

        ratios = measured_ratios([title for titles in CHOSEN.values() for title in titles])
    except ModuleNotFoundError as error:
        parser.error(f"{error}: pip install -e '.[test,plot]' --group bench")
    line = {"commit": commit(), "machine": machine().partition(" on ")[2]}
    worse = record(file, line, ratios, measured_ratios)
    print(f"{len(lines_of(file))} lines in {file}, {time.monotonic() - start:.0f} s")
    for message in worse:
        print(message, file=sys.stderr)
    return bool(worse)


def measured_ratios(titles: Iterable[str]) -> Ratios:
    """Return the peers' times divided by ours, each pair measured in turns in this process."""
    from measuring import Case, measured

    found: Ratios = {title: {} for title in titles}
    for module, names in CHOSEN.items():
        for title in (name for name in names if name in found):
            result = import_module(f"bench_{module}").BENCHMARKS[title](SCALE)
            for case in result if isinstance(result, list) else [result]:
                if not isinstance(case, Case):
                    continue
                case.repeats = max(case.repeats, ROUNDS)
                ours, peers, _ = measured(case, LONG, time.process_time)
                for peer, seconds in peers.items():
                    if not isinstance(seconds, str):  # why the peer is missing
                        found[title][f"{case.title}, {peer}"] = seconds / ours
    return found


def commit() -> str:
    """Return the short hash of the commit, with a plus sign if files differ from it."""
    git = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def record(
    file: Path, line: Line, ratios: Ratios, again: Callable[[Iterable[str]], Ratios]
) -> list[str]:
    """Append a line to a file, draw its lines, and return a message for each regression.

    Args:
        file: Lines of JSON, the oldest first.
        line: What identifies the new line: `commit` and `machine`.
        ratios: The ratios measured.
        again: Measures benchmarks once more; called where there seem to be regressions.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    before = [each for each in lines_of(file) if each["machine"] == line["machine"]][-BEFORE:]
    for _ in range(AGAIN):
        if titles := [title for title, found in ratios.items() if regressions(before, found)]:
            for title, found in again(titles).items():
                ratios[title] = {name: max(ratios[title][name], found[name]) for name in found}
    flat = {name: ratio for found in ratios.values() for name, ratio in found.items()}
    with file.open("a") as lines:
        lines.write(
            json.dumps({**line, "ratios": {n: round(r, 3) for n, r in flat.items()}}) + "\n"
        )
    draw(lines_of(file), file.with_suffix(".svg"))
    return regressions(before, flat)


def lines_of(file: Path) -> list[Line]:
    """Return the lines of a file, none if it is not there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def regressions(before: Sequence[Line], ratios: dict[str, float]) -> list[str]:
    """Return a message for each ratio that is more than a quarter below its median before."""
    messages = []
    for name, ratio in ratios.items():
        known = [line["ratios"][name] for line in before if name in line["ratios"]]
        if known and ratio < WORSE * median(known):
            messages.append(f"regression: {name}: {ratio:.3g}x, {median(known):.3g}x before")
    return messages


def draw(lines: Sequence[Line], file: Path) -> None:
    """Draw each ratio over the commits, on a logarithmic axis."""
    from matplotlib.figure import Figure

    names = sorted({name for line in lines for name in line["ratios"]})
    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        values = [line["ratios"].get(name) for line in lines]
        style = ("-", "--", ":")[number // 10 % 3]
        axes.plot(range(len(lines)), values, style, marker=".", label=name)
    axes.set(yscale="log", ylabel="peer's time / ours", xlabel="commit")
    axes.set_xticks(range(len(lines)), [line["commit"] for line in lines], rotation=90)
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(file)


if __name__ == "__main__":
    raise SystemExit(main())
