"""What was measured as tables: for the terminal, and in the page of benchmarks."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from peers import versions
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

BEGIN, END = "<!-- figures: written by tests/benchmarks/run.py -->", "<!-- end of figures -->"
RATIOS = ("work", "ours", "peer", "time", "ratio", "goal", "memory")
FIGURES = ("figure", "measured", "goal")


class Row(NamedTuple):
    """One line: of a case beside a peer, or a figure, which has neither peer nor ratio."""

    title: str
    ours: str
    peer: str = ""
    time: str = ""
    ratio: str = ""
    goal: str = ""
    memory: str = ""
    missed: bool = False
    is_figure: bool = False


def show(console: Console, rows: list[Row]) -> None:
    """Print all rows; what missed its goal is red."""
    table = Table(title="streammetrics benchmarks")
    for name in RATIOS:
        table.add_column(name, justify="left" if name in {"work", "peer"} else "right")
    for row in rows:
        table.add_row(*row[:7], style="red" if row.missed else None)
    console.print(table)


def machine() -> str:
    """Return what was measured with, in a sentence."""
    import streammetrics as sm

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = named[0].partition(":")[2].strip() if named else cpu
    with_these = ", ".join([f"NumPy {np.__version__}", *versions()])
    return (
        f"streammetrics {sm.__version__} on {os.cpu_count()} cores of {cpu}, "
        f"{platform.system()}, Python {platform.python_version()}; {with_these}."
    )


def markdown(rows: list[Row], seconds: float) -> str:
    """Return a table of ratios and one of figures, goals that were missed in bold."""
    lines = [machine(), "", f"One run of the command, {seconds / 60:.1f} minutes.", ""]
    for names, are_figures in ((RATIOS, False), (FIGURES, True)):
        lines += [_line(names), _line(["---"] * len(names))]
        for row in rows:
            if row.is_figure != are_figures:
                continue
            goal = f"**{row.goal}**" if row.missed and row.goal else row.goal
            cells = (row.title, row.ours, goal) if are_figures else (*row[:5], goal, row.memory)
            lines.append(_line(cells))
        lines.append("")
    return "\n".join(lines)


def _line(cells: tuple[str, ...] | list[str]) -> str:
    # What is indented is beside the line above.
    told = ["… " + cell.strip() if cell.startswith("  ") else cell for cell in cells]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in told) + " |"


def write(page: Path, text: str) -> None:
    """Put the text between the two marks of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page} does not have the lines {BEGIN!r} and {END!r}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
