"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

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
