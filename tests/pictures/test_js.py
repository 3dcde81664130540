"""examples/js: the page that merges states, in a browser."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("selenium", reason="pip install --group pictures")

from browser import opened, requested, violations
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from vectors.write import HERE

PAGE = HERE.parent.parent / "examples" / "js" / "index.html"
# Hands files to the page as a drop does; they come from its own file input.
DROP = """
const data = new DataTransfer();
for (const file of document.getElementById('files').files) data.items.add(file);
document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data}));
"""


def cells(driver):
    """Return the texts of the table."""
    rows = driver.find_elements(By.CSS_SELECTOR, "tbody tr")
    return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]


@pytest.mark.parametrize("name", ["f1", "roc-auc", "mse", "mean", "quantile"])
def test_page_merges_dropped_files(name):
    told = json.loads((HERE / "vectors.json").read_text())
    parts = told["merges"][name]
    with opened(PAGE) as driver:
        field = driver.find_element(By.ID, "files")
        field.send_keys("\n".join(str(HERE / f"{part}.state") for part in parts))
        wait = WebDriverWait(driver, 20)
        wait.until(lambda _: len(cells(driver)) == 3)
        driver.execute_script("document.getElementById('rows').replaceChildren()")
        driver.execute_script(DROP)
        wait.until(lambda _: len(cells(driver)) == 3)
        found = {row[0]: float(row[3]) for row in cells(driver)}
        assert found["merged"] == told["vectors"][name]["value"]
        assert [found[f"{part}.state"] for part in parts] == [
            told["vectors"][part]["value"] for part in parts
        ]
        assert all(address.startswith("file:") for address in requested(driver))
        assert not violations(driver)


def test_page_tells_what_does_not_merge():
    with opened(PAGE, dark=True) as driver:
        paths = [HERE / "mse.state", HERE / "mean.state"]
        driver.find_element(By.ID, "files").send_keys("\n".join(map(str, paths)))
        message = driver.find_element(By.ID, "message")
        WebDriverWait(driver, 20).until(lambda _: message.text)
        assert message.text == "the states have different configurations"
        assert not violations(driver)


def test_page_clears_its_table_when_files_do_not_merge():
    with opened(PAGE) as driver:
        field = driver.find_element(By.ID, "files")
        field.send_keys(str(HERE / "mse.state"))
        wait = WebDriverWait(driver, 20)
        wait.until(lambda _: len(cells(driver)) == 1)
        field.send_keys(str(HERE / "Ledger.state"))
        message = driver.find_element(By.ID, "message")
        wait.until(lambda _: message.text)
        assert message.text.startswith("this reader reads and merges single metrics, not a Ledger")
        assert not cells(driver)
        assert not driver.find_element(By.TAG_NAME, "table").is_displayed()


def test_page_fits_a_phone():
    with opened(PAGE, width=390, height=700) as driver:
        paths = [HERE / f"roc-auc-past-{part}.state" for part in (1, 2, 3)]
        driver.find_element(By.ID, "files").send_keys("\n".join(map(str, paths)))
        WebDriverWait(driver, 20).until(lambda _: len(cells(driver)) == 4)
        assert driver.execute_script("return document.documentElement.scrollWidth") == 390
