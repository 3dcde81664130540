"""States have the same bytes on every processor, and values but those that the docs name."""

from __future__ import annotations

import warnings

import pytest
from processors import digests, digests_of_a_plain_processor, per_platform

import streammetrics as sm


@pytest.mark.long
def test_values_that_differ_on_a_plain_processor_are_named_by_the_docs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = digests()
    there = digests_of_a_plain_processor()
    assert here.keys() == there.keys()
    assert [key for key in here if here[key][0] != there[key][0]] == []  # states
    differ = {key.partition(" ")[0] for key in here if here[key][1] != there[key][1]}
    assert differ <= per_platform()


def test_the_docs_name_metrics():
    assert per_platform()
    assert per_platform() <= set(sm.__all__)
