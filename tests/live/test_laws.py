"""The law: the state is a function of the events, and every window that of its rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.events import START, fresh, live, observe, observed, rows

import streammetrics as sm


@given(st.lists(observed, max_size=40), st.randoms(use_true_random=False))
def test_any_order_batching_and_merge_tree_gives_one_state(events, random):
    whole = live()
    for event in sorted(events):
        observe(whole, event)
    shuffled = random.sample(events, len(events))
    states = [live() for _ in range(random.randint(1, 4))]
    for event in shuffled:
        into = random.choice(states)
        if random.random() < 0.3:
            second, label, score = event
            into.observe(time=[START + second], y_true=[label], y_score=[score])
        else:
            observe(into, event)
        if random.random() < 0.1:
            into.window("5min")
        if random.random() < 0.1:
            states[states.index(into)] = sm.from_bytes(into.to_bytes())
    while len(states) > 1:
        random.shuffle(states)
        first, second = states.pop(), states.pop()
        untouched = second.to_bytes()
        states.append(first.merge(second))
        assert second.to_bytes() == untouched
    assert states[0].to_bytes() == whole.to_bytes()
    assert sm.from_bytes(whole.to_bytes()) == whole
    newest = max((START + second for second, *_ in events), default=0)
    for minutes in (1, 5, 6):
        first = (newest // 60 + 1 - minutes) * 60
        inside = [event for event in events if START + event[0] >= first]
        assert states[0].window(f"{minutes}min").to_bytes() == fresh(inside).to_bytes()


def test_identity_copies_and_reset():
    state = live().observe(**rows(500))
    assert state.copy().merge(live()) == state == live().merge(state)
    twin = state.copy()
    twin.observe(time=START + 1800, y_true=1, y_score=0.5)
    assert twin != state
    assert twin.reset() == live()
    assert state.n_rows > 0
    assert state.nbytes > 0


def test_merging_another_configuration_names_what_differs():
    state = live().observe(**rows(50))
    before = state.to_bytes()
    for other, message in [
        (live(tiers=[("1min", "5min")]), "tiers is panes of 1min for 5min there"),
        (live(label_ttl="2h"), "label_ttl is 2h there and 1d here"),
        (sm.Live(sm.Mean(), tiers=[("1min", "6min"), ("5min", "20min")]), "Mean"),
        (sm.Mean(), "cannot merge a Mean into a Live"),
    ]:
        with pytest.raises(sm.IncompatibleMetricsError, match=message):
            state.merge(other)
    other = live(labels=[-1, 1]).observe(time=[START + 1799] * 2, y_true=[-1, 1], y_score=[0.5] * 2)
    with pytest.raises(
        sm.IncompatibleMetricsError, match=r"labels is \[-1, 1\] there and \[0, 1\] here"
    ):
        state.merge(other)
    assert state.to_bytes() == before


def test_bytes_that_are_altered_are_refused():
    blob = live().observe(**rows(50)).to_bytes()
    for place in range(0, len(blob), 97):
        wrong = bytearray(blob)
        wrong[place] ^= 1
        with pytest.raises(sm.StateFormatError, match="."):
            sm.from_bytes(bytes(wrong))
    for end in range(0, len(blob), 211):
        with pytest.raises(sm.StateFormatError, match="."):
            sm.from_bytes(blob[:end])
