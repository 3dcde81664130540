"""The law kit itself: it accepts what keeps the laws, and names the law that something breaks."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.fields.weights import Weight
from streammetrics.statistics.tables import ThresholdTable
from streammetrics.testing import check_laws, same_value
from streammetrics.testing.laws import broken_groups


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


class CountedTwice(ThresholdTable):
    """Its rule for groups is another than that for rows."""

    def lift(self, columns, weight, group=None):
        """Return every row twice, of groups alone."""
        (amount,) = super().lift(columns, weight, group).values()
        return {"amount": amount if group is None else amount + amount}


class Forgetful(Weight):
    """A field that loses a group where all are united."""

    def regrouped(self, value, places, size, of):
        """Return the groups at their places, but for one."""
        if size == 1:
            places = np.where(np.arange(len(places)) == 0, -1, places)
        return super().regrouped(value, places, size, of)


class LosesAGroup(ThresholdTable):
    """Counts in such a field."""

    amount = Forgetful((4,), squared=True)


class Swapped(Weight):
    """A field that mixes its groups up where it joins them."""

    def of_groups(self, values, of):
        """Return the groups in the other order."""
        return super().of_groups(values[::-1], of)


class MixedUp(ThresholdTable):
    """Counts in such a field."""

    amount = Swapped((4,), squared=True)


@pytest.mark.parametrize(
    ("statistic", "law"),
    [
        (CountedTwice, "rows with the codes of their groups make what the rows of each group make"),
        (LosesAGroup, "groups that are united are their states merged"),
        (MixedUp, "a state among others is what it is alone"),
    ],
)
def test_laws_over_groups_are_checked(statistic, law):
    class Hits(sm.Metric):
        """The rows of a threshold."""

        def statistics(self):
            """Return the table."""
            return (statistic(),)

        def readout(self, table):
            """Return the number of rows."""
            return float(table.amount.counts.sum())

        def update(self, y_true, y_score):
            """Take rows."""
            return self.feed({"y_true": y_true, "y_score": y_score})

    rng = np.random.default_rng(0)
    rows = {"y_true": rng.integers(0, 2, 60), "y_score": rng.random(60)}
    assert law in list(broken_groups(Hits(), rows, rng))
    assert not list(broken_groups(sm.F1(threshold=0.5), rows, rng))
