"""States written by every released version are read, and give the value they gave then."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from processors import per_platform
from vectors.write import value

import streammetrics as sm
from streammetrics.core.registry import class_named

STATES = sorted((Path(__file__).parent / "states").glob("*/*.state"))


# Values are those that the version gave, but for Silhouette of 0.1.0: in exact arithmetic it is
# 0.64708096866527917..., of which 0.6470809686652792 is the nearest float; it gave the next one.
@pytest.mark.parametrize("path", STATES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_state(path):
    blob = path.read_bytes()
    metric = sm.from_bytes(blob)
    assert metric.to_bytes() == blob
    expected = json.loads((path.parent / "values.json").read_text("utf-8"))[path.stem]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        found = value(metric)
    if type(metric).__name__ in per_platform():
        told = expected.removeprefix("array([").removesuffix("])").split(",")
        digits = 1e-13 if told == [expected] else 1e-7  # arrays are printed with eight digits
        assert np.ravel(found) == pytest.approx(np.array(told, float), rel=digits)
    else:
        assert repr(found) == expected


def test_there_are_states_of_this_version():
    """Of all that it had: what comes after a release has its states with the next one."""
    names = {path.stem for path in STATES if path.parent.name == sm.__version__}
    assert len(names) > 80
    assert all(map(class_named, names))
