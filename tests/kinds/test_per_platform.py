"""States and values have the same bytes on every processor, but those that the docs name."""

from __future__ import annotations

import warnings

from processors import digests, digests_of_a_plain_processor, per_platform

import streammetrics as sm


def test_what_differs_on_a_plain_processor_is_named_by_the_docs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = digests()
    there = digests_of_a_plain_processor()
    assert here.keys() == there.keys()
    # Scores made of logits are exponentials, whatever the metric.
    differ = {key for key in here if here[key] != there[key] and "from_logits=True" not in key}
    assert {key.partition(" ")[0] for key in differ} <= per_platform()


def test_the_docs_name_metrics():
    assert per_platform()
    assert per_platform() <= set(sm.__all__)
