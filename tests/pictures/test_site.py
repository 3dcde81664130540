"""The documentation site builds without a warning, and fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import opened, requested
from selenium.webdriver.support.ui import WebDriverWait

import streammetrics as sm
from streammetrics import authoring, testing
from streammetrics.core.registry import catalogue

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe)[^>]*\b(?:src|href)=["']?(?:https?:)?//|url\(["']?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # Strict: a link or an anchor that leads nowhere is an error, and so is a page in no menu.
    # Not `-q`, which leaves warnings out of what `--strict` counts.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    # A proxy that nobody answers: what asked another host would fail.
    alone = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [*command, "-f", ".mkdocs.yml"],
        cwd=ROOT,
        env={**os.environ, **alone, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_metric_has_its_page(site):
    for name in catalogue():
        page = (site / "reference" / f"{name}.html").read_text()
        assert f'<h1 id="{name.lower()}">{name}' in page
        assert '<div class="formula"' in page or "<p>Algorithm: " in page, name
        assert "Formula: " not in page, name
    assert (site / "reference" / "ROCAUC.svg").stat().st_size < 40_000
    assert "ScoreHistogram" in (site / "reference" / "ROCAUC.html").read_text()


def test_every_public_name_is_documented(site):
    text = "".join((site / f"{page}.html").read_text() for page in ("api", "authoring"))
    found = set(re.findall(r'<h[23] id="streammetrics\.([\w.]+)"', text))
    public = set(sm.__all__) - set(catalogue())
    public |= {f"testing.{name}" for name in testing.__all__}
    public |= {
        f"authoring.{name}"
        for name in authoring.__all__
        if not any(getattr(authoring, name) is getattr(room, name, None) for room in (sm, testing))
    }
    assert public - found == set()


def test_nothing_is_fetched_from_elsewhere(site):
    found = {
        str(path.relative_to(site)): match[0]
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"} and (match := FETCHED.search(path.read_text()))
    }
    assert found == {}


def test_pages_can_be_searched_from_files(site):
    with opened(site / "index.html", width=1400) as driver:
        box = driver.find_element("css selector", "input.md-search__input")
        box.click()
        box.send_keys("earth mover")
        found = "a.md-search-result__link[href*='reference/Wasserstein.html']"
        WebDriverWait(driver, 60).until(lambda page: page.find_elements("css selector", found))
        assert all(url.startswith(("file:", "data:", "about:")) for url in requested(driver))


@pytest.mark.parametrize(
    ("page", "picture"), [("live", "live-1600"), ("live", "live-360"), ("reports", "report")]
)
def test_dark_pages_have_dark_pictures(site, page, picture):
    for dark, shown, other in [(False, "light", "dark"), (True, "dark", "light")]:
        with opened(site / f"{page}.html", width=1400, dark=dark) as driver:
            images = f"img[src*='{picture}-{{}}.png']"
            one, none = (
                driver.find_element("css selector", images.format(x)) for x in (shown, other)
            )
            assert one.is_displayed()
            assert int(one.get_property("naturalWidth")) > 0
            assert not none.is_displayed()


@pytest.mark.parametrize("name", ["in_training", "at_scale", "live"])
def test_notebooks_are_pages_with_what_they_gave(site, name):
    page = (site / "notebooks" / f"{name}.html").read_text()
    assert '<div class="output"' in page
    assert f'src="{name}-0.png"' in page
    assert (site / "notebooks" / f"{name}-0.png").read_bytes().startswith(b"\x89PNG")
