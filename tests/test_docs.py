"""Every code block of the README and the docs runs, and prints what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What is not installed with the tests: engines, and the frameworks of the extra "training".
OPTIONAL = re.compile(
    r"\b(?:from|import) (streammetrics\.engines\.\w+|torchmetrics|river|fairlearn|matplotlib"
    r"|jinja2|mlflow|wandb|tensorboardX|huggingface_hub|prometheus_client)\b"
    r"|\b(torch|lightning|transformers|accelerate|xgboost|lightgbm)\.\w"
)
# One needs an extra; the other checks metrics that tests/test_own_metrics.py checks too.
LONG = {"training.md", "extending.md"}
READ = [
    pytest.param(page, id=page.name, marks=[pytest.mark.long] * (page.name in LONG))
    for page in PAGES
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """Return the line and the text of a page's blocks in a language."""
    text = page.read_text("utf-8")
    return [
        (text.count("\n", 0, found.start()) + 1, found[2])
        for found in BLOCK.finditer(text)
        if found[1] == language
    ]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_to_files_that_the_site_has(page):
    text = re.sub(
        r"^```.*?^```$|`[^`]*`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" in target or target.startswith(("notebooks/", "reference/")):  # made by its hook
            continue
        path = (page.parent / target).resolve()
        assert path.exists(), target
        if page.parent.name == "docs" and path.parents[0] != page.parent:
            inside = path.relative_to(ROOT).as_posix()  # what tests/pictures/site_hook.py adds
            assert re.fullmatch(r"docs/.+|examples/\w+\.(py|toml)|examples/\w+/\w+\.md", inside)


# Of Dask, Spark and Ray, which warn of what they do themselves.
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:Warning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:::mlflow")
@pytest.mark.filterwarnings("ignore:::wandb")
@pytest.mark.filterwarnings("ignore:::lightning")
@pytest.mark.filterwarnings("ignore:::transformers")
@pytest.mark.parametrize("page", READ)
def test_python_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # A module of its own, so that what a page defines can be pickled.
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    left_out = 0
    for line, text in blocks(page, "python"):
        if not all(map(importable, asked_for(text))):
            left_out += 1
        elif text.lstrip().startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
            test.globs = names
            assert runner.run(test, clear_globs=False).failed == 0, f"{page.name}, line {line}"
        else:
            exec(compile("\n" * line + text, str(page), "exec"), names)
    if left_out:
        pytest.skip(f"{left_out} blocks: pip install '.[engines]' --group training")


def asked_for(text):
    """Return the optional modules that a block uses."""
    return {name for found in OPTIONAL.findall(text) for name in found if name}


def importable(module):
    """Whether an engine or a framework is installed."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


@pytest.fixture
def folder(tmp_path):
    """A folder as the pages assume it: the examples, and predictions in two files."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")  # a store may be made beside them
    (tmp_path / "predictions").mkdir()
    for day in ("monday", "tuesday"):
        data = ROOT / "examples" / "data" / "adult_income_predictions.parquet"
        shutil.copy(data, tmp_path / "predictions" / f"{day}.parquet")
    return tmp_path


# All but the first page's take long, as each command starts an interpreter.
EACH_PAGE = [
    pytest.param(page, id=page.name, marks=[pytest.mark.long] * (page.name != "README.md"))
    for page in PAGES
]


@pytest.mark.parametrize("page", EACH_PAGE)
def test_shell_commands(page, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line, text in blocks(page, "sh"):
        for command in text.replace("\\\n", "").splitlines():
            # Installing is what .ci/run does with the same words; what they then call runs here.
            last = command.rpartition("&&")[2].strip().replace(".venv/bin/", "")
            if last.startswith("streammetrics live serve"):
                served(last, folder, path)
                continue
            if shlex.split(last)[0] != "streammetrics":
                assert shlex.split(last)[0] in {"pip", "python"}, f"{page.name}, line {line}"
                continue
            done = subprocess.run(
                ["bash", "-c", last],
                cwd=folder,
                env={**os.environ, "PATH": path, "COLUMNS": "100"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{page.name}, line {line}: {command}\n{done.stderr}"


def served(command, folder, path):
    """Start a service as a page says, and end it: what it wrote is no error."""
    if not importable("uvicorn"):
        return  # tests/service has it
    process = subprocess.Popen(
        shlex.split(command), cwd=folder, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE
    )
    assert process.stdout.readline().startswith(b"serving on http://127.0.0.1:8000/")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode in {0, -signal.SIGTERM}  # it may not have begun to listen


def test_authors_need_one_import_and_few_lines():
    page = ROOT / "docs" / "extending.md"
    trees = [ast.parse(text) for _, text in blocks(page, "python")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    assert modules == {"numpy", "streammetrics", "streammetrics.authoring", "typing"}
    lines = {n.name: n.end_lineno - n.lineno + 1 for n in nodes if isinstance(n, ast.ClassDef)}
    assert lines["Skill"] <= 15
    assert lines["LogSum"] <= 30
