"""The notebooks run, and what they keep of a run is what a run gives."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path):
    """Return a notebook after a run, with the outputs that do not differ from run to run."""
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(book, timeout=120, kernel_name="python3")
    client.execute(cwd=str(path.parent))
    for cell in book.cells:
        cell.get("metadata", {}).pop("execution", None)
    book.metadata.pop("language_info", None)  # which is of one machine
    return book


def shown(book):
    """Return the tables and texts of a notebook."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return [output["data"]["text/html"] for output in outputs if "text/html" in output["data"]]


def test_there_is_one_for_each_use():
    assert [path.stem for path in BOOKS] == ["at_scale", "in_training", "live"]


@pytest.mark.filterwarnings("ignore")  # of the kernel and its sockets, at their end
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_a_run_gives(path):
    tables = shown(nbformat.read(path, as_version=4))
    assert tables
    assert all("<td>" in table for table in tables)  # one of no rows shows nothing
    assert shown(executed(path)) == tables


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        nbformat.write(executed(each), each)
