"""The ledger: every shard counts once, whatever arrives how often and in which order."""

from __future__ import annotations

import pickle
import sys
import threading
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinning import some

import streammetrics as sm
from streammetrics import ledger as ledger_module
from streammetrics.core.state.container import packed, unpacked
from streammetrics.ledger import Known

IDS = (3, 10, "10", "a", "b")


def shard(name, attempt=1):
    """The state of a shard: of rows that only depend on its name and the attempt."""
    rng = np.random.default_rng([len(str(name)), IDS.index(name), attempt])
    n = int(rng.integers(0, 6))
    return suite().update(y_true=rng.integers(0, 2, n), y_score=rng.random(n).round(1))


def suite():
    return sm.MetricSet({"auc": sm.ROCAUC(max_bins=4), "acc": sm.Accuracy(threshold=0.5)})


def plain(*shards):
    return sm.merge([suite(), *(shard(name, attempt) for name, attempt in shards)])


def ledger_of(*shards, sealed=()):
    ledger = sm.Ledger()
    for name, attempt in shards:
        ledger.add(name, shard(name, attempt), attempt)
    return ledger.seal(sealed)


ENTRIES = st.lists(st.tuples(st.sampled_from(IDS), st.integers(1, 3)), max_size=8)


@st.composite
def ledgers(draw):
    """Ledgers that agree: what is sealed is sealed at the last attempt, in one order."""
    ledger = ledger_of(*draw(ENTRIES))
    if draw(st.booleans()):
        ledger = sm.Ledger(suite()).merge(ledger)
    count = draw(st.integers(0, len(IDS)))
    for name in IDS[:count]:
        ledger.add(name, shard(name, 3), 3)
    return ledger.seal(IDS[:count])


@given(ledgers(), ledgers(), ledgers())
def test_merge_is_idempotent_commutative_and_associative_to_the_byte(a, b, c):
    before = [x.to_bytes() for x in (a, b, c)]
    joined = sm.merge([a, b])
    assert sm.merge([a, a]) == a
    assert sm.merge([b, a]).to_bytes() == joined.to_bytes()
    assert sm.merge([joined, c]).to_bytes() == sm.merge([a, sm.merge([b, c])]).to_bytes()
    assert sm.merge([joined, a, b]) == joined
    assert sm.merge([sm.Ledger(), a]) == a == sm.merge([a, sm.Ledger()])
    assert before == [x.to_bytes() for x in (a, b, c)]


@given(ledgers(), ledgers())
def test_the_state_is_that_of_the_last_attempt_of_each_shard(a, b):
    joined = sm.merge([sm.Ledger(suite()), a, b])
    attempts = {
        name: max(x.attempts[name] for x in (a, b) if name in x) for name in IDS if name in joined
    }
    assert joined.attempts == attempts
    assert joined.merged() == plain(*attempts.items())
    assert joined.n_rows == plain(*attempts.items()).n_rows
    assert joined.missing(IDS) == [name for name in IDS if name not in attempts]


@given(ledgers())
def test_round_trips(ledger):
    blob = ledger.to_bytes()
    back = sm.from_bytes(blob)
    assert isinstance(back, sm.Ledger)
    assert back.to_bytes() == blob
    assert repr(back) == repr(ledger)
    assert pickle.loads(pickle.dumps(ledger)) == ledger == ledger.copy()
    assert (back.ids, back.sealed, len(back)) == (ledger.ids, ledger.sealed, len(ledger))


@given(ENTRIES, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(entries, random):
    again = entries * 2
    random.shuffle(again)
    assert ledger_of(*again).to_bytes() == ledger_of(*entries).to_bytes()


def test_sealing_changes_no_value_and_bounds_memory():
    ledger = ledger_of(("a", 1), ("b", 1), (3, 1))
    value, rows, size = ledger.compute(), ledger.n_rows, ledger.nbytes
    assert ledger.seal(["a", 3]) is ledger
    assert ledger.sealed == [3, "a"]
    assert ledger.seal(["a"]).seal([]) == ledger
    assert (ledger.compute(), ledger.n_rows) == (value, rows)
    assert ledger.seal(["b"]).nbytes < size
    many = sm.Ledger(sm.Sum())
    for index in range(200):
        many.add(index, sm.Sum().update([index])).seal([index])
    assert many.nbytes < 200 * (64 + 8 + 1 + 32) + 1000
    assert many.compute() == sum(range(200))


def test_a_stale_ledger_adds_nothing_to_one_that_sealed_its_shards():
    stale = ledger_of(("a", 1), ("b", 2))
    sealed = stale.copy().seal(["a"])
    more = sealed.copy().add(3, shard(3)).seal([3, "b"])
    for one, other in ((stale, sealed), (stale, more), (sealed, more)):
        assert sm.merge([one, other]) == sm.merge([other, one]) == other
    apart = ledger_of((10, 1), sealed=[10])
    assert sm.merge([apart, sealed]).sealed == [10, "a"]
    assert sm.merge([apart, sealed]).compute() == plain((10, 1), ("a", 1), ("b", 2)).compute()


def test_a_later_attempt_replaces_and_an_earlier_one_is_ignored():
    ledger = ledger_of(("a", 2))
    assert ledger.copy().add("a", shard("a", 1), 1) == ledger
    assert ledger.add("a", shard("a", 3), attempt=np.int64(3)).attempts == {"a": 3}
    assert ledger.compute() == plain(("a", 3)).compute()
    assert sm.Ledger().add("a", shard("a"), attempt=0).attempts == {"a": 0}


# --- what raises, and changes nothing ------------------------------------------------------------


def refused(ledger, error, match, call):
    before = ledger.to_bytes()
    with pytest.raises(error, match=match):
        call()
    assert ledger.to_bytes() == before


TWO = "shard 'a' has two different states at attempt 1: a retry needs a higher attempt"


def test_another_state_at_the_same_attempt_is_kept_until_a_later_one_comes():
    one, other = ledger_of(("a", 1)), sm.Ledger().add("a", shard("a", 2))
    both = one.copy().add("a", shard("a", 2))
    assert both == sm.merge([one, other]) == sm.merge([other, one]) == sm.merge([both, one])
    assert (both.contradicted, both.ids, both.sealed) == (["a"], ["a"], [])
    assert repr(both).endswith("<1 shard, 0 sealed, 1 contradicted>")
    for read in (both.compute, both.merged, both.bounds, lambda: both.n_rows):
        refused(both, sm.IncompatibleMetricsError, TWO, read)
    refused(both, sm.IncompatibleMetricsError, TWO, lambda: both.seal(["a"]))
    back = sm.from_bytes(both.to_bytes())
    assert back == both
    assert back.contradicted == ["a"]
    later = ledger_of(("a", 2))
    assert sm.merge([both, later]) == sm.merge([later, both]) == later
    assert both.add("a", shard("a", 2), 2) == later
    assert later.contradicted == []


def test_a_contradiction_of_a_sealed_shard_raises():
    sealed, other = ledger_of(("a", 1), sealed=["a"]), sm.Ledger().add("a", shard("a", 2))
    both = sm.merge([ledger_of(("a", 1)), other])
    for more in (other, both):
        refused(sealed, sm.IncompatibleMetricsError, TWO, lambda: sealed.merge(more))  # noqa: B023
        refused(more, sm.IncompatibleMetricsError, TWO, lambda: more.merge(sealed))  # noqa: B023


def outcome(one, two, three, merges):
    """The state of the first after copies have been merged into each other, or that it raised."""
    copies = {id(ledger): ledger.copy() for ledger in (one, two, three)}
    try:
        for into, other in merges:
            copies[id(into)].merge(copies[id(other)])
    except sm.IncompatibleMetricsError:
        return "refused"
    return copies[id(one)].to_bytes()


@pytest.mark.parametrize("seal", [None, 0, 2])
def test_what_raises_does_not_depend_on_the_order_of_merging(seal):
    parts = [ledger_of(("a", 1)), sm.Ledger().add("a", shard("a", 2)), ledger_of(("a", 2))]
    if seal is not None:
        parts[seal].seal(["a"])
    outcomes = set()
    for one, two, three in permutations(parts):
        for merges in ([(one, two), (one, three)], [(two, three), (one, two)]):
            outcomes.add(outcome(one, two, three, merges))
    assert outcomes == {"refused" if seal == 0 else parts[2].to_bytes()}


def test_sealed_shards_are_refused():
    ledger = ledger_of(("a", 1), sealed=["a"])
    for state, attempt in ((shard("a"), 1), (shard("a", 2), 2), (shard("a", 2), 0)):
        refused(
            ledger,
            sm.IncompatibleMetricsError,
            "shard 'a' is sealed: it takes no further state",
            lambda: ledger.add("a", state, attempt),  # noqa: B023
        )
    later = ledger_of(("b", 1), ("a", 2))
    for one, other in ((ledger, later), (later, ledger)):
        refused(
            one,
            sm.IncompatibleMetricsError,
            "shard 'a' is sealed at attempt 1: it takes no attempt 2",
            lambda: one.merge(other),  # noqa: B023
        )


def test_shards_that_were_sealed_apart_wait_for_one_who_sealed_them_all():
    one = ledger_of(("a", 1), ("b", 1), sealed=["a", "b"])
    other = ledger_of((3, 1), ("b", 1), sealed=[3, "b"])
    both = sm.merge([one, other])
    text = "shard 'b' was sealed in two places, each time with shards that the other lacks"
    for read in (both.compute, both.merged, both.bounds, lambda: both.seal(["a"])):
        refused(both, sm.IncompatibleMetricsError, text, read)
    assert sm.from_bytes(both.to_bytes()) == both == sm.merge([other, one])
    every = ledger_of(("a", 1), ("b", 1), (3, 1), sealed=["a", "b", 3])
    for parts in permutations([one, other, every]):
        assert sm.merge(parts) == every
    assert sm.merge([one, sm.merge([other, every])]).compute() == every.compute()


def test_shards_that_were_sealed_in_several_places_are_sealed_together_again():
    apart = sm.merge([ledger_of((name, 1), sealed=[name]) for name in IDS])
    assert sm.from_bytes(apart.to_bytes()) == apart
    whole = ledger_of(*((name, 1) for name in IDS), sealed=IDS)
    assert apart.compute() == whole.compute()
    assert apart.nbytes > whole.nbytes
    assert apart.seal([]) != whole
    assert apart.seal(IDS[:1]) == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update({"members": arrays["members"] + 9}),
        lambda arrays: arrays.update({"members": arrays["members"] - 9}),
        lambda arrays: arrays.update({"members": arrays["members"] * 0}),
        lambda arrays: arrays.update({"members/sizes": arrays["members/sizes"][:1]}),
        lambda arrays: arrays.update({"members/sizes": arrays["members/sizes"] + 1}),
        lambda arrays: arrays.update({"members/sizes": arrays["members/sizes"] * 0}),
        lambda arrays: arrays.update({"blocks/sizes": arrays["blocks/sizes"][:1]}),
        lambda arrays: arrays.update({"blocks/sizes": -arrays["blocks/sizes"]}),
        lambda arrays: arrays.pop("blocks"),
    ],
)
def test_blocks_that_are_not_written_are_refused(change):
    one, other = ledger_of(("a", 1), ("b", 1), sealed=["a", "b"]), ledger_of((3, 1), sealed=[3])
    blob = in_file(sm.merge([one, other]).to_bytes(), lambda _, arrays: change(arrays))
    with pytest.raises(sm.StateFormatError, match="blocks|members|shards|not the bytes|cut short"):
        sm.from_bytes(blob)


def test_other_metrics():
    ledger = ledger_of(("a", 1))
    refused(
        ledger,
        sm.IncompatibleMetricsError,
        r"cannot merge ROCAUC\(\) into a ledger of MetricSet\(.*: the configurations differ",
        lambda: ledger.add("b", sm.ROCAUC()),
    )
    other = sm.Ledger(sm.ROCAUC())
    refused(ledger, sm.IncompatibleMetricsError, "differ", lambda: ledger.merge(other))
    refused(other, sm.IncompatibleMetricsError, "differ", lambda: other.merge(ledger))
    refused(other, sm.IncompatibleMetricsError, "by name", lambda: other.merge(sm.ROCAUC()))
    refused(other, TypeError, "a Ledger is not a metric", lambda: other.add("b", other))


def test_other_kinds_of_rows_are_told_with_the_shard():
    ledger = sm.Ledger(sm.Accuracy())
    ledger.add("a", sm.Accuracy().update([1], [1]))
    ledger.add("b", sm.Accuracy().update(["x"], ["x"]))
    text = "shard 'b': the states saw different kinds of rows: labels"
    refused(ledger, sm.IncompatibleMetricsError, text, ledger.compute)
    refused(ledger, sm.IncompatibleMetricsError, text, lambda: ledger.seal(["a", "b"]))
    ledger.add("b", sm.Accuracy().update([0], [1]), attempt=2)
    assert ledger.compute() == 0.5


def test_names_and_arguments():
    ledger = ledger_of(("a", 1), (3, 1))
    refused(ledger, ValueError, "no state was added for shard 'z'", lambda: ledger.seal(["a", "z"]))
    refused(ledger, TypeError, "'a' is one name", lambda: ledger.seal("a"))
    refused(ledger, TypeError, "a shard is named by", lambda: ledger.add(1.5, shard("a")))
    refused(ledger, TypeError, "a shard is named by", lambda: ledger.missing([None]))
    refused(ledger, ValueError, "attempt=-1", lambda: ledger.add("b", shard("b"), -1))
    refused(ledger, TypeError, "integer", lambda: ledger.add("b", shard("b"), 1.5))
    assert ledger.missing(np.arange(3, 5)) == [4]
    assert ("a" in ledger, "z" in ledger, np.int64(3) in ledger) == (True, False, True)
    with pytest.raises(
        ValueError, match=r"Mean\(\) has already seen 1 rows: add\(\) it as a shard"
    ):
        sm.Ledger(sm.Mean().update([1.0]))


def test_a_ledger_of_nothing():
    with pytest.raises(ValueError, match="has no shards and no metric"):
        sm.Ledger().compute()
    assert (sm.Ledger().n_rows, repr(sm.Ledger())) == (0, "Ledger() <0 shards, 0 sealed>")
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
        assert np.isnan(sm.Ledger(sm.Mean()).compute())
    assert sm.Ledger(sm.Mean()).merge(sm.Ledger()) == sm.Ledger().merge(sm.Ledger(sm.Mean()))
    assert sm.Ledger() != sm.Ledger(sm.Mean())


def test_what_is_handed_out_is_no_part_of_the_ledger():
    metric = sm.Mean().update([1.0])
    ledger = sm.Ledger().add("a", metric)
    before = ledger.to_bytes()
    metric.update([5.0])
    ledger.merged().update([7.0])
    ledger.copy().add("b", metric)
    assert ledger.to_bytes() == before
    assert ledger.compute() == 1.0
    assert ledger.bounds() == sm.Interval(1.0, 1.0)


def test_files_that_are_no_ledger():
    blob = ledger_of(("a", 1), ("b", 2), (3, 1), sealed=["b"]).to_bytes()
    for place in range(0, len(blob), 7):
        broken = bytearray(blob)
        broken[place] ^= 4
        with pytest.raises(sm.StateFormatError, match="checksum|cut short"):
            sm.from_bytes(bytes(broken))
        with pytest.raises(sm.StateFormatError, match="checksum|cut short"):
            sm.from_bytes(blob[:place])


# --- many shards ---------------------------------------------------------------------------------


def many(count, sealed=0):
    ledger = sm.Ledger(sm.Mean())
    for index in range(count):
        name = f"s{index}" if index % 3 else index
        ledger.add(name, sm.Mean().update([index / 7, 1.0]), attempt=index % 5)
    return ledger.seal(ledger.ids[:sealed])


@pytest.mark.parametrize(("count", "sealed"), some([(257, 100), (2, 1), (257, 0)], every=2))
def test_shards_of_every_kind_are_written_and_read(count, sealed):
    ledger = many(count, sealed).add("e\ud800", sm.Mean()).add(2**100, sm.Mean()).seal([2**100])
    one = sm.Mean().update([1.0])
    if count == 257:
        ledger.add("two", one).add("two", sm.Mean())
    blob = ledger.to_bytes()
    for now in (ledger.copy(), sm.from_bytes(blob), pickle.loads(pickle.dumps(ledger))):
        assert now.to_bytes() == blob
        assert (now.ids, now.sealed, now.attempts) == (ledger.ids, ledger.sealed, ledger.attempts)
        assert now.contradicted == ledger.contradicted == ["two"] * (count == 257)
        now.add("two", one, attempt=9)
        assert now.merged() == sm.merge([many(count).merged(), one])


def test_states_that_were_read_are_merged_sealed_and_compared_as_others():
    ledger = many(300)
    read = sm.from_bytes(ledger.to_bytes())
    assert sm.merge([ledger, read]) == sm.merge([read, ledger]) == ledger
    assert read.seal([0, "s1"]) == ledger.seal([0, "s1"])
    assert sm.merge([sm.from_bytes(many(300).to_bytes()), ledger]) == ledger
    other = sm.from_bytes(many(300).to_bytes()).merge(sm.Ledger().add(3, sm.Mean(), 3))
    assert other.contradicted == [3]


def test_states_that_differ_are_found_among_many_that_do_not():
    ledger, other = many(300), sm.Ledger()
    wrong = [0, 150, "s1", "s299"]
    for name, attempt in ledger.attempts.items():
        value = 99.0 if name in wrong else int(str(name).removeprefix("s")) / 7
        other.add(name, sm.Mean().update([value, 1.0]), attempt)
    assert sm.merge([ledger, other]).contradicted == wrong
    assert sm.merge([other, ledger]) == sm.merge([ledger, other])


def test_adding_a_shard_costs_the_same_however_many_there_are():
    ledger = many(2000)
    blob, table = ledger.to_bytes(), ledger._known.table
    ledger.add("new", sm.Mean().update([2.0]))
    assert ledger._known.table is table
    assert list(ledger._known.added) == ["new"]
    assert len(ledger) == 2001
    assert ledger.to_bytes() != blob
    assert not ledger._known.added


def of_many_kinds(count=260):
    """States of other lengths, labels of two kinds, weights, none at all, and counts past int64."""
    rng = np.random.default_rng(5)
    far = sm.Accuracy().update([1], [1])
    for _ in range(64):
        far.merge(far.copy())
    ledger = sm.Ledger(sm.Accuracy()).add("far", far).add("none", sm.Accuracy())
    for index in range(count):
        n = int(rng.integers(0, 9))
        labels, guesses = rng.integers(0, 4, (2, n))
        if index % 5 == 0:
            labels, guesses = labels.astype(str), guesses.astype(str)
        weight = rng.random(n) if index % 7 == 0 else None
        ledger.add(index, sm.Accuracy().update(labels, guesses, sample_weight=weight))
    return ledger


def state_of(ledger, name):
    return ledger._known.empty._at(ledger._known.get(name).state)


def test_states_of_many_kinds_are_the_same_in_columns():
    ledger = of_many_kinds()
    read = sm.from_bytes(ledger.to_bytes())
    assert sm.merge([read, sm.Ledger()]) == read == ledger
    assert all(state_of(read, name) == state_of(ledger, name) for name in ledger.ids)
    numbers = [name for name in ledger.ids if name != "far" and (name == "none" or name % 5)]
    part = sm.Ledger()
    for name in numbers:
        part.add(name, state_of(read, name))
    assert part.compute() == sm.from_bytes(part.to_bytes()).compute()
    assert state_of(read, "far").n_rows == 2**64
    text = "the states saw different kinds of rows: labels"
    refused(read, sm.IncompatibleMetricsError, text, read.compute)


def test_what_was_read_is_written_with_what_was_added_and_what_was_read_elsewhere():
    ledger, other = of_many_kinds(), of_many_kinds(600)
    for name in range(300, 320):
        other.add(name, sm.Accuracy().update([name], [3]), attempt=2)
    both = sm.merge([ledger, other])
    rows = sm.from_bytes(ledger.to_bytes()), sm.from_bytes(other.to_bytes())
    assert sm.merge([rows[0], other]) == sm.merge([ledger, rows[1]]) == sm.merge(rows) == both
    assert sm.from_bytes(ledger.to_bytes()).seal([2, 3]) == ledger.seal([2, 3])


def in_file(blob, change):
    """The bytes of a ledger after a change of its arrays or of what it says, with a checksum."""
    file = unpacked(blob)
    meta, arrays = dict(file.meta), {name: array.copy() for name, array in file.arrays.items()}
    change(meta, arrays)
    del meta["checksum"]
    return packed(meta, arrays)


def put(name, value):
    """One array replaced by what a function makes of it."""
    return lambda _, arrays: arrays.update({name: value(arrays[name])})


WRONG = (
    "ledger|lacks the array|of groups|counts of rows|not the bytes|digits|numbers of"
    "|text of a state|not an array of this state|the array|not the sums|are not those of"
)


@pytest.mark.parametrize(
    "change",
    [
        put("attempts", lambda a: -a),
        put("attempts", lambda a: a[:-1]),
        put("kinds", lambda a: a + 1),
        put("kinds", lambda a: a + 3),
        put("digests", lambda a: np.zeros((1, 32), np.uint8)),
        put("names", lambda a: a[::-1].copy()),
        put("names", lambda a: np.frombuffer(b"[1.5]", np.uint8)),
        put("names", lambda a: np.frombuffer(b"{}", np.uint8)),
        put("names", lambda a: np.frombuffer(a.tobytes().replace(b"0,1,", b"0,0,"), np.uint8)),
        put("names", lambda a: np.frombuffer(a.tobytes().replace(b"0,1,", b"1,0,"), np.uint8)),
        put("states/rows/digits", lambda a: -a),
        put("states/rows/digits", lambda a: a[:-1]),
        put("states/rows/exponent", lambda a: np.array(-32, np.int8)),
        put("states/0/x/digits", lambda a: a[:-1]),
        put("states/0/width", lambda a: a.reshape(-1)[:1].reshape(())),
        put("states/0/width", lambda a: a + 1),
        put("states/0/width", lambda a: a.astype(np.int64)),
        put("states/0/seen", lambda a: ~a),
        put("states/kinds/0/facts", lambda a: a[:-1]),
        lambda _, arrays: arrays.update({"states/0/more": np.zeros(260)}),
        lambda _, arrays: arrays.update({"states/1/width": np.zeros(260)}),
        lambda _, arrays: arrays.update({"more": np.zeros(260)}),
        lambda _, arrays: arrays.pop("states/0/width"),
        lambda _, arrays: arrays.pop("empty"),
        lambda _, arrays: arrays.pop("blocks"),
    ],
)
def test_columns_in_no_form_that_is_written_are_refused_at_once(change):
    ledger = sm.Ledger()
    for index in range(260):
        ledger.add(index, sm.Mean().update([index + 1.0] if index % 9 != 8 else []))
    blob = ledger.to_bytes()
    assert in_file(blob, lambda *_: None) == blob
    with pytest.raises(sm.StateFormatError, match=WRONG):
        sm.from_bytes(in_file(blob, change))


SIZES = {
    "none": lambda a: a * 0,
    "backwards": lambda a: a[::-1],
    "huge": lambda a: np.append(a[:-1], 2**62),
    "negative": lambda a: -a,
    "fewer": lambda a: a[1:],
}


@pytest.mark.parametrize("kind", SIZES)
def test_sizes_that_do_not_fit_their_column_are_refused(kind):
    ledger = sm.Ledger()
    for index in range(260):
        ledger.add(index, sm.Accuracy().update(np.arange(index % 5 + 1), np.arange(index % 5 + 1)))
    blob = in_file(ledger.to_bytes(), put("states/0/sizes", SIZES[kind]))
    with pytest.raises(sm.StateFormatError, match="sizes of groups|out of order|in no pair|bytes"):
        sm.from_bytes(blob)


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_million_sealed_shards_can_be_written(count):
    few = many(1, sealed=1)
    shards = dict.fromkeys(range(count), few._known.get(0))
    known = Known.of(sm.Mean())._replace(added=shards, blocks=few._known.blocks)
    blob = sm.Ledger._of(known).to_bytes()
    assert len(blob) < 60 * count + 2000
    assert len(sm.Ledger._of(known).sealed) == count


def test_names_and_attempts_have_limits():
    ledger = sm.Ledger()
    with pytest.raises(ValueError, match="the name of a shard has 4,097 characters, of 4,096"):
        ledger.add("x" * 4097, sm.Mean())
    with pytest.raises(ValueError, match="takes more than 128 bits"):
        ledger.add(-(10**4000), sm.Mean())
    with pytest.raises(ValueError, match="takes more than 63 bits"):
        ledger.add("x", sm.Mean(), attempt=2**63)
    ledger.add("x" * 4096, sm.Mean(), 2**63 - 1).add(1 - 2**128, sm.Mean())
    assert sm.from_bytes(ledger.to_bytes()) == ledger


# --- threads -------------------------------------------------------------------------------------


def together(*calls):
    """Run calls in threads that switch as often as they can; raise what one of them raised."""
    before, failed = sys.getswitchinterval(), []

    def run(call):
        try:
            call()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    for error in failed:
        raise error


def adding(ledger, start, step=1, count=60):
    states = [
        sm.Count().update([1.0] * (i % 3 + 1)) for i in range(start, start + count * step, step)
    ]

    def call():
        for i, state in zip(range(start, start + count * step, step), states, strict=True):
            ledger.add(i, state)

    return call


def counted(ids):
    return sum(i % 3 + 1 for i in ids)


def test_a_total_that_is_read_while_shards_come_is_not_kept():
    for _ in range(5):
        ledger = sm.Ledger(sm.Count())
        seen = []
        reading = lambda: seen.extend(ledger.compute() for _ in range(60))  # noqa: B023, E731
        together(adding(ledger, 0), reading, reading)
        assert ledger.compute() == counted(range(60))
        assert all(0 <= value <= counted(range(60)) for value in seen)


def test_shards_that_come_while_ledgers_merge_are_kept():
    one = sm.Count().update([1.0])
    others = [sm.Ledger().add(start, one) for start in range(1000, 1060)]
    ledger, twin = sm.Ledger(sm.Count()), sm.Ledger(sm.Count())
    together(
        adding(ledger, 0, 2),
        adding(twin, 1, 2),
        lambda: [ledger.merge(other) for other in others],
        lambda: [ledger.merge(twin) for _ in range(20)],
        lambda: [twin.merge(ledger) for _ in range(20)],
    )
    ledger.merge(twin)
    assert ledger.ids == [*range(120), *range(1000, 1060)]
    assert ledger.compute() == counted(range(120)) + 60


def test_what_is_written_copied_and_sealed_while_shards_come_was_a_state():
    ledger = sm.Ledger()
    written, copies = [], []
    together(
        adding(ledger, 0),
        lambda: [written.append(ledger.to_bytes()) for _ in range(20)],
        lambda: [copies.append(ledger.copy()) for _ in range(20)],
        lambda: [ledger.seal(ledger.ids[::2]) for _ in range(20)],
        lambda: [(ledger.n_rows, ledger.nbytes, ledger.attempts, repr(ledger)) for _ in range(20)],
    )
    assert ledger.compute() == counted(range(60))
    for state in [*map(sm.from_bytes, written), *copies]:
        assert state.ids == list(range(len(state)))
        assert state.n_rows == counted(state.ids)


def test_any_thread_may_be_the_first():
    for _ in range(5):
        ledger = sm.Ledger()
        together(*(adding(ledger, start, 4, 5) for start in range(4)))
        assert ledger.compute() == counted(range(20))


@pytest.mark.parametrize("attempt", [True, np.True_, 1.5, "1", None])
def test_an_attempt_is_an_integer(attempt):
    ledger = sm.Ledger()
    with pytest.raises(TypeError, match=r"attempt=.* is not an integer"):
        ledger.add("a", shard("a"), attempt=attempt)
    assert ledger == sm.Ledger()


@pytest.mark.parametrize("operation", ["add", "merge", "seal"])
def test_what_a_signal_adds_in_the_middle_of_a_change_stays(monkeypatch, operation):
    """A handler may come at any call: here at the one that does the work."""
    names = {"add": "later", "merge": "known_to_both", "seal": "total"}
    led = sm.Ledger().add("a", sm.Mean().update([1.0])).add("b", sm.Mean().update([2.0]))
    work = getattr(ledger_module, names[operation])

    def interrupted(*args):
        done = work(*args)
        monkeypatch.setattr(ledger_module, names[operation], work)
        led.add("c", sm.Mean().update([3.0])).merge(
            sm.Ledger().add("d", sm.Mean().update([4.0])).add("a", sm.Mean().update([9.0]), 3)
        )
        return done

    monkeypatch.setattr(ledger_module, names[operation], interrupted)
    if operation == "add":
        led.add("a", sm.Mean().update([5.0]), attempt=2)
    elif operation == "merge":
        led.merge(sm.Ledger().add("e", sm.Mean().update([5.0])))
    else:
        led.seal(["b"])
    assert led.ids == ["a", "b", "c", "d", *(["e"] if operation == "merge" else [])]
    assert led.attempts["a"] == 3
    assert led.sealed == (["b"] if operation == "seal" else [])
    assert led.compute() == pytest.approx((9 + 2 + 3 + 4 + 5 * (operation == "merge")) / led.n_rows)
