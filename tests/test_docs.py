"""Every code block of the README and the docs runs, and prints what it says."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """Return the line and the text of a page's blocks in a language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, found.start()) + 1, found[2])
        for found in BLOCK.finditer(text)
        if found[1] == language
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # A module of its own, so that what a page defines can be pickled.
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for line, text in blocks(page, "python"):
        if ">>> " in text:
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
            test.globs = names
            assert runner.run(test, clear_globs=False).failed == 0, f"{page.name}, line {line}"
        else:
            exec(compile("\n" * line + text, str(page), "exec"), names)


@pytest.mark.parametrize(
    ("page", "line", "command"),
    [
        (page, line + offset, command)
        for page in PAGES
        for line, text in blocks(page, "sh")
        for offset, command in enumerate(text.replace("\\\n", "").splitlines())
    ],
    ids=lambda value: value.name if isinstance(value, Path) else str(value),
)
def test_shell_commands(page, line, command, tmp_path):
    # Installing is what .ci/run does with the same words; what they then call is tried here.
    last = command.rpartition("&&")[2].strip().replace(".venv/bin/", "")
    words = shlex.split(last)
    if words[0] != "streammetrics":
        assert words[:2] in (
            ["pip", "install"],
            ["python", "-m"],
            ["python", "tests/benchmarks/run.py"],
        )
        return
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", last],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
