"""The law kit itself: it accepts what keeps the laws, and names the law that something breaks."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.testing import check_laws, same_value


@pytest.mark.parametrize("value", [-1, 0, 10**12, -1.5, float("nan"), True, "a", 2**70])
def test_a_single_value_is_itself(value):
    assert same_value(value, value)
    assert same_value({"a": (value, [value])}, {"a": (value, [value])})


@pytest.mark.parametrize(
    ("one", "other"),
    [(-1, 1), (1, 1.0), (0.0, -0.0), (True, 1), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ((1,), (2,))],
)
def test_values_that_differ_in_a_bit_differ(one, other):
    assert not same_value(one, other)


def test_laws_of_a_count_with_large_weights():
    check_laws(sm.Count(), {"values": np.ones(20), "sample_weight": np.full(20, 1e12)})
