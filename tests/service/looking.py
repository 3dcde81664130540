"""Debian's Chromium, which looks at the page of a service."""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib import resources
from urllib.parse import urlsplit

from selenium import webdriver

# Whatever the browser would ask of others on its own is off.
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@contextmanager
def browser(profile):
    """Open a browser with a profile of its own, and close it at last."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        driver.set_script_timeout(120)  # axe takes its time over the marks of charts
        yield driver
    finally:
        driver.quit()


def look(driver, url, *, width=1600, height=1000, dark=False):
    """Open a page in a window of this size, by day or by night."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)


def text(driver, selector):
    """Return the text of the first element of a kind, or nothing."""
    script = "return document.querySelector(arguments[0])?.textContent ?? ''"
    return driver.execute_script(script, selector)


def is_drawn(driver, charts=0):
    """Whether the page has heard from its service and drawn so many charts."""
    script = "return document.querySelectorAll('.chart .scatterlayer .js-line').length"
    return text(driver, "#status") == "live" and driver.execute_script(script) >= charts


def hosts(driver):
    """Return whom the browser asked for anything since this was last called."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return {
        urlsplit(event["params"]["request"]["url"]).netloc
        for event in events
        if event["method"] == "Network.requestWillBeSent"
        and event["params"]["request"]["url"].startswith(("http", "ws"))
    }


def violations(driver):
    """Return what axe finds against WCAG 2, level A and AA: the rules and their elements."""
    script = resources.files("axe_selenium_python") / "node_modules" / "axe-core" / "axe.min.js"
    driver.execute_script(script.read_text(encoding="utf-8"))
    found = driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const which = {runOnly: ['wcag2a', 'wcag2aa'], resultTypes: ['violations']};"
        "axe.run(document, {...which, preload: false}).then(done, (error) =>"
        " done({violations: [{id: String(error), nodes: []}]}))"
    )
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]
