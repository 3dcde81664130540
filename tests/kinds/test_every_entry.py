"""Of every array of every kind of state, which changes are taken for a state, and which refused.

Some changes make the state of other rows, and no rule but the states' own says which. So what is
taken is written down, and a check that lets go of what it refused, or the other way round, shows.
"""

from __future__ import annotations

import json

import pytest
from thinning import some

from kinds.verdicts import TAKEN, WRITTEN, kinds, verdicts

KNOWN = json.loads(WRITTEN.read_text("utf-8"))


def test_every_kind_of_state_is_written_down():
    assert set(kinds()) == set(KNOWN)
    assert all(TAKEN in "".join(told.values()) for told in KNOWN.values())


@pytest.mark.parametrize("name", some(KNOWN, every=5))
def test_what_is_taken_of_forged_states_is_what_was_taken(name):
    assert verdicts(kinds()[name]) == KNOWN[name]
