"""Debian's Chromium, looking at a page without a network."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


@contextmanager
def opened(path, *, width=1100, height=1400, dark=False, paper=False):
    """Open a page, and close the browser at last."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    for flag in _FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = {"features": [scheme], "media": "print" if paper else "screen"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.get(Path(path).resolve().as_uri())
        yield driver
    finally:
        driver.quit()


def requested(driver):
    """Return the addresses that a page asked for."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def violations(driver):
    """Return what axe finds: rule and the first element of each."""
    import axe_selenium_python

    script = Path(axe_selenium_python.__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
    driver.execute_script(script.read_text())
    driver.set_script_timeout(60)
    found = driver.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
