"""docs/coverage.md: every metric of the libraries beside ours, or why there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from write import MODULE, PAGE, SHORT, TITLES, known, missing, module, rows, theirs

MODULES = {"scikit-learn": "sklearn.metrics", "river": "river.metrics"}


def test_what_the_page_names_is_there():
    assert not missing()


def test_the_page_is_that_of_the_table():
    lines = PAGE.read_text().splitlines()
    told = {line.split("`")[1] for line in lines if line.startswith("| `")}
    assert told == {name for names in known().values() for name in names}


def test_the_page_has_the_short_names_and_the_package_has_all():
    assert rows(known()[SHORT]) in PAGE.read_text()
    assert MODULE.read_text() == module()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of libraries while they load
@pytest.mark.parametrize("section", TITLES)
def test_no_metric_of_theirs_is_left_out(section):
    pytest.importorskip(MODULES.get(section, section), reason="pip install --group peers")
    assert theirs(section) == known()[section].keys()
