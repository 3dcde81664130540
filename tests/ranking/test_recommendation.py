"""Recommended lists: a catalogue smaller than what was shown of it."""

from __future__ import annotations

import math

import pytest

import streammetrics as sm


@pytest.mark.parametrize("metric", [sm.CatalogueCoverage, sm.ExposureGini])
def test_more_items_than_the_catalogue_has_are_no_share_of_it(metric):
    lists = metric(n_items=2).update(["u", "u", "v"], ["a", "b", "a"])
    assert not math.isnan(lists.compute())
    lists.update(["v"], ["c"])
    with pytest.warns(
        sm.UndefinedMetricWarning, match="3 items were shown, of a catalogue of n_it"
    ):
        assert math.isnan(lists.compute())
