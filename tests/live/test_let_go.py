"""What is let go goes at once: cycles would keep streams until Python looks for such garbage."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from live.events import START, joined
from thinning import some

import streammetrics as sm
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.serialization import bytes_of

N = 500
RULES = [sm.Below("accuracy", 0.8, window="1min", min_rows=5, after="1min"), sm.Silence("10min")]


def take(state, number):
    """Bring predictions and their labels."""
    ids, times = np.arange(number * N, (number + 1) * N), np.full(N, START + number)
    state.predict(id=ids, time=times, y_score=ids % 10 / 10)
    state.label(id=ids, time=times, y_true=ids // 10 % 2)


def refused(state):
    with pytest.raises(InvalidBatchError, match="row 1"):
        state.predict(id=[1, 2], time=[START, START], y_score=[0.5, 2.0])


OPERATIONS = {
    "events": lambda state: take(state, 3),
    "events that are refused": refused,
    "what is folded in a store": lambda state: bytes_of(sm.Live, state._ingest.snapshot()),
    "bytes": lambda state: state.to_bytes(),
    "a state that is read": lambda state: sm.from_bytes(state.to_bytes()),
    "a copy": lambda state: state.copy(),
    "a merge": lambda state: joined().merge(state),
    "a window": lambda state: state.window("5min").compute(),
    "a series": lambda state: state.series("1min", every="1min"),
    "what labels could do": lambda state: state.possible("5min"),
    "coverage": lambda state: state.coverage("5min"),
    "alerts": lambda state: state.alerts(RULES),
}


@pytest.mark.parametrize("operation", some(OPERATIONS.values(), every=4), ids=OPERATIONS)
def test_nothing_is_left_that_only_a_collection_finds(operation):
    state = joined()
    for number in range(3):
        take(state, number)
    operation(state)  # what is loaded or kept from the first time on is no garbage
    gc.collect()
    gc.disable()
    try:
        operation(state)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(found) for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not [cls for cls in left if cls.__module__.startswith("streammetrics")]
