"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Machines are noisy, so no example has a deadline; where a change is judged, examples are the same
# every time, and elsewhere every run explores new ones.
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("default")
