"""States of many groups as arrays over all: each is what it is alone, and forged ones are none."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, plan_of, state_of, taken
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.plan import Plan, described, filled
from streammetrics.core.field import StateField
from streammetrics.core.fields.histograms import Histograms
from streammetrics.core.state.arrays import laid_out, narrowed, same, take_array, taken_apart
from streammetrics.core.statistic import GroupedStates, Statistic

N = 6
ODD = (0, 1, -1, 2, 3, 32, 1 << 31, 1 << 40, -(1 << 62))


def is_same(one, other):
    """Whether two states have the same bytes."""
    (told, arrays), (others, more) = described(one), described(other)
    return told == others and same(arrays, more)


def read(plan, arrays, size):
    """Return the table of arrays, or None where they are refused: read, or written again."""
    try:
        table = StateTable.restored(plan, arrays, size)
    except sm.StateFormatError:
        return None
    return table if same(table.arrays(), arrays) else None


def sample(oracle, weights=None, size=8):
    """Return states of an oracle's metric, of as many rows each or fewer, one without rows."""
    rows = plain_rows(oracle, N * size)
    plan, n = plan_of(oracle.metric), next(map(len, rows.values()))
    if weights and not any(schema.unweighted for schema in plan.schemas):
        rows["sample_weight"] = np.resize(weights, n)
    parts = [np.arange(k * size, k * size + (size if k % 2 else k)) % n for k in range(N)]
    return plan, [state_of(plan, taken(rows, part)) for part in parts]


WEIGHTS = {"none": None, "whole": (1.0, 2.0, 3.0), "halves": (0.5, 1.5)}


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_states_of_many_groups_are_those_alone(oracle, weights):
    plan, states = sample(oracle, WEIGHTS[weights])
    table = StateTable.of(plan, states)
    back = read(plan, table.arrays(), N)
    assert back is not None
    order = np.array([4, 1, 5])
    for each in (table, back, table.take(np.arange(N))):
        assert all(is_same(each.at(place), state) for place, state in enumerate(states))
        assert each.differing(table) == []
        some = each.take(order)
        assert same(some.arrays(), StateTable.of(plan, [states[k] for k in order]).arrays())
    assert is_same(back.total(), plan.merged(plan.start, states))


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_tables_are_put_together_whatever_the_order(oracle):
    plan, states = sample(oracle)
    expected = StateTable.of(plan, states).arrays()
    places = [np.array([5, 0, 3]), np.array([1, 4, 2])]
    one, two = (StateTable.of(plan, [states[k] for k in each]) for each in places)
    assert same(one.beside(places[0], two, places[1], N).arrays(), expected)
    assert same(two.beside(places[1], one, places[0], N).arrays(), expected)
    alone = one.beside(np.array([0, -1, 1]), two, np.full(3, -1), 2)
    assert same(alone.arrays(), StateTable.of(plan, [states[5], states[3]]).arrays())


def changed(arrays, rng):
    """Return the arrays with one entry changed, one dropped, or one of another type or shape."""
    name = sorted(arrays)[int(rng.integers(len(arrays)))]
    array, kind = arrays[name].copy(), int(rng.integers(8))
    if kind == 6:
        return {key: value for key, value in arrays.items() if key != name}
    if kind == 7 or not array.size:
        return arrays | {name: array.astype(np.float32) if rng.integers(2) else array[..., None]}
    place = int(rng.integers(array.size))
    odd = ODD[int(rng.integers(len(ODD)))]
    if array.dtype.kind == "f":
        array.reshape(-1)[place] = rng.choice([np.nan, -0.0, np.inf, -1.0, 0.5])
    elif array.dtype.kind == "b":
        array.reshape(-1)[place] ^= True
    elif array.dtype == np.uint8:
        array.reshape(-1)[place] ^= 1 + odd % 7
    else:
        array = array.astype(np.int64)
        with np.errstate(over="ignore"):
            array.reshape(-1)[place] += odd
    return narrowed(arrays | {name: array})


def sound(plan, arrays, size):
    """Whether forged arrays are refused; those that are not are of states that can be read."""
    table = read(plan, arrays, size)
    for place in range(0 if table is None else size):
        rows, held = described(table.at(place))
        again = filled(plan, tuple(map(tuple, rows)), held)
        assert same(described(again)[1], held)
    return table is None


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_what_is_taken_of_many_is_taken_of_one(oracle):
    rng = np.random.default_rng(5)
    plan, states = sample(oracle)
    arrays = StateTable.of(plan, states).arrays()
    assert sum(sound(plan, changed(arrays, rng), N) for _ in range(24)) > 4


def varied_histograms(rng):
    """Return states of scores of other numbers and levels, some of them with weights."""
    metric = sm.MetricSet({"auc": sm.ROCAUC(max_bins=16), "loss": sm.LogLoss()})
    plan, rows = (
        plan_of(metric),
        {"y_score": rng.random(400), "y_true": rng.integers(0, 2, 400)},
    )
    sizes = [3, 40, 1, 40, 7, 90, 16, 17, 3]
    parts = [np.arange(*ends) for ends in pairwise(np.cumsum([0, *sizes]))]
    states = [state_of(plan, taken(rows, part)) for part in parts]
    heavy = {**taken(rows, parts[1]), "sample_weight": rng.random(40)}
    return plan, [*states, state_of(plan, heavy)]


def test_histograms_of_any_sizes_levels_and_weights_are_written_together():
    rng = np.random.default_rng(8)
    plan, states = varied_histograms(rng)
    table = StateTable.of(plan, states)
    arrays = table.arrays()
    back = read(plan, arrays, len(states))
    assert all(is_same(back.at(place), state) for place, state in enumerate(states))
    assert is_same(back.total(), plan.merged(states[0], states[1:]))
    refused = [sound(plan, changed(arrays, rng), len(states)) for _ in range(120)]
    assert 40 < sum(refused) < 120


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "c"], ["a,", "b"]])
def test_states_of_texts_and_of_weights_are_written_together(labels):
    metrics = [sm.Accuracy(), sm.ROCAUC(pos_label=labels[0]), sm.LogLoss(pos_label=labels[0])]
    plan = plan_of(sm.MetricSet({type(metric).__name__: metric for metric in metrics}))
    rng = np.random.default_rng(6)
    rows = {
        "y_true": np.array([labels[0], labels[-1]])[rng.integers(0, 2, N * 8)],
        "y_pred": np.array(["a", "b"])[rng.integers(0, 2, N * 8)],
        "y_score": rng.random(N * 8),
        "sample_weight": rng.random(N * 8).round(2) + 0.01,
    }
    states = [state_of(plan, taken(rows, np.arange(k * 8, k * 8 + 8))) for k in range(N)]
    arrays = StateTable.of(plan, states).arrays()
    assert not sound(plan, arrays, N)
    assert sum(sound(plan, changed(arrays, rng), N) for _ in range(24)) > 4


def test_labels_of_several_kinds_and_outputs_of_several_numbers_are_held_beside_each_other():
    rng = np.random.default_rng(2)
    for metric, rows in (
        (sm.Accuracy(), [{"y_true": [1], "y_pred": [2]}, {"y_true": ["x"], "y_pred": ["y"]}]),
        (sm.MAE(), [{"y_true": rng.random((3, k)), "y_pred": rng.random((3, k))} for k in (2, 3)]),
    ):
        plan = plan_of(metric)
        states = [state_of(plan, each) for each in (*rows, rows[0])]
        table = StateTable.of(plan, states)
        back = read(plan, table.arrays(), 3)
        assert all(is_same(back.at(place), state) for place, state in enumerate(states))
        with pytest.raises(sm.IncompatibleMetricsError, match="kinds of rows"):
            back.total()
        alike = back.take(np.array([0, 2]))
        assert same(alike.arrays(), StateTable.of(plan, states[::2]).arrays())
        assert is_same(alike.total(), plan.merged(states[0], states[2:]))


class Longest(StateField[str]):
    """An author's own field, which knows nothing of groups."""

    def empty(self, of):
        """Return no text."""
        return ""

    def plus(self, mine, other):
        """Return the longer one, or the one that comes first."""
        return min(mine, other, key=lambda text: (-len(text), text))

    def arrays(self, value):
        """Return the characters."""
        return {"": np.array(list(map(ord, value)), np.int64)}

    def taken(self, arrays, of):
        """Return the text."""
        return "".join(map(chr, self.the_array(arrays, "int64").tolist()))


class Wording(Statistic):
    """The longest text, and all its lengths."""

    longest = Longest()
    lengths = Histograms(lambda _: 8, 1, "columns")

    @property
    def schema(self):
        """The schema of any metric."""
        return sm.Accuracy()._plan.schemas[0]

    def update(self, text, *, weight=None):
        """Take one text."""
        self.longest = type(self).longest.plus(self.longest, text)
        (forked,) = type(self).lengths.forks(self.lengths, 1, self)
        forked.add(np.array([float(len(text))]))
        self.lengths = (forked,)


def test_a_field_of_an_author_has_groups_without_a_line_for_them():
    of, texts = Wording(), ["a", "abc", "b", "x" * 9]
    states = [of.fork() for _ in range(5)]
    for state, text in zip(states, texts, strict=False):
        state.update(text)
    groups = GroupedStates.of_states(of, states)
    back = GroupedStates.restored(of, groups.arrays(), 5)
    assert [back.at(k).longest for k in range(5)] == [*texts, ""]
    whole = back.regrouped(np.array([0, 0, 1, -1, 1]), 2)
    assert [whole.at(k).longest for k in range(2)] == ["abc", "b"]
    assert whole.at(0).is_same(states[0].fork()) is False
    states[0].merge(states[1])
    assert whole.at(0).is_same(states[0])
    assert back.put(np.array([3]), [states[0]]).at(3).is_same(states[0])
    assert groups.nbytes > 0
    assert isinstance(Plan([of]).start.statistics[0], Wording)


class Nothing(Wording):
    """A statistic that remembers nothing."""

    longest = lengths = None


def test_a_statistic_without_fields_has_as_many_states_as_there_are_groups():
    groups = GroupedStates.empty(Nothing(), 3)
    assert len(list(groups.each())) == len(list(GroupedStates.empty(Wording(), 3).each())) == 3


@pytest.mark.parametrize("largest", [0, 100, 2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**62])
def test_integers_of_many_states_are_written_as_narrow_as_they_are(largest):
    every = [{"n": np.array([largest, -1]), "x": np.array([0.5])}, {"n": np.array([3, 4, 5])}]
    wide = laid_out(every)
    written = narrowed(wide)
    narrow = np.result_type(np.min_scalar_type(-largest - 1), np.int8)
    assert written["0/values"].dtype == narrow
    back = taken_apart(wide, 2)
    assert [part["n"].tolist() for part in back] == [[largest, -1], [3, 4, 5]]
    assert back[0]["n"].dtype == np.int64
    with pytest.raises(sm.StateFormatError, match="cut short"):
        taken_apart({**wide, "0/values": wide["0/values"][:-1]}, 2)


def test_numbers_of_another_type_are_not_taken_for_integers():
    written = laid_out([{"n": np.array([1, 2], np.int16)}])
    (back,) = taken_apart({**written, "0/values": np.array([1, 2])}, 1)
    assert take_array(back, "n", "int16").tolist() == [1, 2]
    for wrong in (np.array([1.0, 2.0]), np.array([1, 1 << 20]), np.array([1, 2], np.int32)):
        with pytest.raises(sm.StateFormatError, match="do not lie end to end"):
            taken_apart({**written, "0/values": wrong}, 1)


def test_truths_are_written_in_one_way():
    plan = plan_of(sm.Mean())
    arrays = StateTable.of(plan, [state_of(plan, {"values": [1.0]})]).arrays()
    odd = np.array([33], np.uint8).view(np.bool_)
    with pytest.raises(sm.StateFormatError, match="neither 0 nor 1"):
        StateTable.restored(plan, {**arrays, "0/seen": odd}, 1)


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_what_a_worker_hands_over_is_the_state(oracle, spread):
    """Workers failed with slices of what keeps a sample of its rows."""
    config = oracle.metric.config
    if spread and "spread" not in config:
        return
    metric = type(oracle.metric)(**{**config, **({"spread": True} if spread else {})})
    rows = plain_rows(oracle, 24)
    rows["key"] = np.arange(next(map(len, rows.values()))) % 3
    suite = sm.MetricSet({"m": metric})
    plain = {name: column for name, column in rows.items() if name != "key"}
    for whole, given in (
        (suite.copy(), plain),
        (sm.Slices(suite, by="key"), rows),
        (sm.MetricSet({"m": metric}, unit="key"), rows),
    ):
        whole.update(given)
        again = whole._over(pickle.loads(pickle.dumps(whole._alone())))
        assert again.to_bytes() == whole.to_bytes()
