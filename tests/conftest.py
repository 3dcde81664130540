"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import defaultdict
from zlib import crc32

# Hundreds of processes start, and twice as fast where the bytecode of the package is kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is started in the background ignores Ctrl-C, and so would the commands that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402 - after the lines above
from hypothesis import Phase, settings  # noqa: E402 - whose bytecode is kept too

MANY = 12  # parameters of a test

# Machines are noisy, so no example has a deadline; where a change is judged, examples are the same
# every time, and elsewhere every run explores new ones. Whoever asks with
# --hypothesis-profile=thorough tries more of them.
for name, examples in (("default", 10), ("thorough", 100)):
    settings.register_profile(
        name, deadline=None, max_examples=examples, derandomize="CI" in os.environ
    )
settings.register_profile(  # where it is enough to know that one example fails
    "mutants",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark two in three parameters of a test that has many, other ones for each test."""
    groups = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("long"):
            groups[item.nodeid.partition("[")[0]].append(item)
    for name, group in groups.items():
        if len(group) >= MANY:
            for place, item in enumerate(group, crc32(name.encode())):
                if place % 3:
                    item.add_marker("more")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests, which stay to the end: no collection of garbage need look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
