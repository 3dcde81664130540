"""Make the pictures of docs/live.md: python tests/service/make.py docs/pictures."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from looking import browser, is_drawn, look
from PIL import Image
from serving import Service, until

from streammetrics.cli import main as command

EXAMPLES = Path(__file__).parents[2] / "examples"


def replayed(folder):
    """Return the example's configuration in a folder, its two weeks in the store beside it."""
    config = shutil.copy(EXAMPLES / "live.toml", folder / "live.toml")
    data = EXAMPLES / "data"
    served, labels = data / "adult_served.parquet", data / "adult_labels.parquet"
    if command(["live", "replay", str(config), str(served), "--labels", str(labels)]):
        raise SystemExit("the example's two weeks were not taken")
    return config


def judged(service):
    """Return the alerts as they stood when they were judged last, of which it takes a while."""
    return service.get("/api/alerts")["alerts"]


def main(folder):
    with tempfile.TemporaryDirectory() as scratch:
        config = replayed(Path(scratch))
        with Service(config) as service, browser(Path(scratch) / "profile") as driver:
            until(lambda: all(alert["state"] != "no data" for alert in judged(service)))
            for width, dark in [(1600, False), (1600, True), (360, False), (360, True)]:
                look(driver, service.url, width=width, dark=dark)
                until(lambda: is_drawn(driver, 4))
                scheme = "dark" if dark else "light"
                height = driver.execute_script("return document.documentElement.scrollHeight")
                look(driver, service.url, width=width, height=height, dark=dark)
                until(lambda: is_drawn(driver, 4))
                picture = folder / f"live-{width}-{scheme}.png"
                driver.save_screenshot(str(picture))
                with Image.open(picture) as whole:
                    few = whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
                few.save(picture, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
