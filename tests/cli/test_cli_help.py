"""Help pages: short, in lines that fit, with three examples that parse."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.main import get_command

from streammetrics.cli.exit import app

ROOT = get_command(app)
COMMANDS = {
    **{(name,): command for name, command in ROOT.commands.items()},
    **{("live", name): command for name, command in ROOT.commands["live"].commands.items()},
}


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
@pytest.mark.parametrize("width", [80, 100])
def test_a_help_page_fits_two_screens_and_ends_with_examples(command, monkeypatch, path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = command(*path, "--help").out.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= width
    examples = "\n".join(lines[lines.index("Examples:") + 1 :])
    assert len(re.findall("^  streammetrics ", examples, re.MULTILINE)) == 3
    for example in examples.replace("\\\n", " ").splitlines():
        words = shlex.split(re.split(r"[|>]|&&", example)[0])[1:]
        if words == ["evaluate", "--help"]:
            continue
        name = tuple(words[:2]) if words[0] == "live" else tuple(words[:1])
        assert path in {(), name, name[:1]}
        assert COMMANDS[name].make_context(" ".join(name), words[len(name) :])
