"""A sample of the attacks that `tests/fuzz/run.py` makes for as long as it is told."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from fuzz import ledgers, run, states
from fuzz.seedlings import seedlings
from streammetrics.core.registry import REGISTRY

grown = cache(seedlings)


@pytest.mark.parametrize("block", range(4))
def test_forged_states_are_refused_or_are_states(block):
    cases = range(40 * block, 40 * block + 40)
    became = Counter(run.one("states", 0, case, grown()) for case in cases)
    assert became["refused"] > became["taken"]


def test_all_that_has_bytes_is_forged():
    public = {getattr(sm, name) for name in sm.__all__} & set(REGISTRY.values()) - {sm.Metric}
    assert public - {type(one.filled) for one in grown()} == set()


def test_some_changes_make_another_state():
    one = next(s for s in grown() if type(s.filled).__name__ == "Count")
    became = {states.attempt(states.mutated(one.blobs[1], np.random.default_rng(i)), one)
              for i in range(40)}  # fmt: skip
    assert became == {True, False}


@pytest.mark.parametrize("block", some(range(2)))
def test_histories_of_ledgers_agree_with_the_model(block):
    refused = [ledgers.attempt(np.random.default_rng([1, block, case])) for case in range(15)]
    assert any(refused)
