"""The picture of the idea is what its script makes, and what it says is computed there."""

from __future__ import annotations

from pathlib import Path

from idea import idea

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
SCHEMES = ("light", "dark")


def test_picture_of_the_idea_is_that_of_the_script():
    assert (DOCS / "idea.svg").read_text() == idea()


def test_pictures_of_the_docs_are_small():
    made = {path.name for path in DOCS.iterdir()}
    names = ("live-1600", "live-360", "report")
    assert made == {"idea.svg", *(f"{name}-{scheme}.png" for name in names for scheme in SCHEMES)}
    assert sum(path.stat().st_size for path in DOCS.iterdir()) < 1_200_000
