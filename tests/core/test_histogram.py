"""SortedHistogram: one state for every history, against its definition in plain Python."""

import math
import struct
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from thinning import some

from streammetrics.core import tuning
from streammetrics.core.arithmetic import cells as cells_module
from streammetrics.core.arithmetic import histogram as histogram_module
from streammetrics.core.arithmetic import keys
from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError

HOSTILE = [
    *(0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, -1e-300),
    *(0.5, math.nextafter(0.5, 0), math.nextafter(0.5, 1), 0.75, 0.1, 0.9),
    *(1.0, 1 - 2**-53, 1 - 2**-52, math.nextafter(1, 2), 1.5, 2.0, 3.7),
    *(-0.5, -1.0, -2.0, 1e308, -1e308, math.inf, -math.inf),
]
SCORES = st.one_of(
    st.sampled_from(HOSTILE),
    st.floats(0, 1),
    st.floats(0, 1, width=16),
    st.floats(-20, 20),
    st.floats(allow_nan=False),
)
WEIGHTS = st.sampled_from([1.0, 2.0, 0.5, 0.1, 3.0, 5e-324, 1e16, 1e308])
ROWS = st.lists(st.tuples(SCORES, st.integers(0, 1)), max_size=60)
WEIGHTED = st.lists(st.tuples(SCORES, st.integers(0, 1), WEIGHTS), max_size=30)
BUDGETS = st.sampled_from([2, 3, 4, 7, 16, 40])


@pytest.fixture(scope="module", params=["as it is", "every part small"], autouse=True)
def sizes(request):
    """The constants that cut the work into parts, also so small that the parts meet."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "every part small":
            patch.setattr(tuning, "BUFFERED_ROWS", 6)
            patch.setattr(tuning, "BUFFERS", 3)
            patch.setattr(tuning, "PASS_ROWS", 4)
            patch.setattr(tuning, "CELLS_READ", 3)
            patch.setattr(histogram_module, "CALL_ROWS", 5)
            patch.setattr(cells_module, "CALL_ROWS", 5)
        yield


# --- the definition ------------------------------------------------------------------------------


def bits(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


def warped(s):
    """W(s) of the module's docstring, in unbounded integers."""
    s += 0.0  # -0.0 counts as 0.0
    u = bits(s) if s >= 0 else -bits(-s)
    if s <= 0.5:
        return u
    if s <= 1:
        return 2 * bits(0.5) - max(bits(1 - s), bits(2.0**-54))
    return u + 52 * 2**52


def cell_of(s, level):
    return s if level == 0 else (warped(s) >> 1) >> (level - 1)


def state_of(rows, max_cells):
    """Level and {cell: (score or None, exact weight of each class)} by definition."""
    rows = [(s + 0.0, code, Fraction(weight)) for s, code, weight in rows]
    level = next(k for k in range(65) if len({cell_of(s, k) for s, _, _ in rows}) <= max_cells)
    table = defaultdict(lambda: (set(), [Fraction(0), Fraction(0)]))
    for s, code, weight in rows:
        scores, mass = table[cell_of(s, level)]
        scores.add(s)
        mass[code] += weight
    return level, dict(sorted(table.items()))


def check_against(h, rows):
    level, table = state_of(rows, h.max_cells)
    assert h.level == level
    assert h.exact == all(len(scores) == 1 for scores, _ in table.values())
    blocks = list(h.cells())
    low = [x for b in blocks for x in b.low.tolist()]
    high = [x for b in blocks for x in b.high.tolist()]
    single = [x for b in blocks for x in b.single.tolist()]
    counts = [x for b in blocks for x in b.counts.T.tolist()]
    unit = Fraction(2) ** h.unit
    assert len(low) == len(table)
    total = [Fraction(0)] * h.classes
    integral = all(b.counts.dtype == np.int64 for b in blocks)
    for k, (cell, (scores, mass)) in enumerate(table.items()):
        assert single[k] == (len(scores) == 1)
        if single[k]:
            assert {low[k], high[k]} == scores
        else:
            assert low[k] <= min(scores) < max(scores) <= high[k]
            assert cell_of(low[k], level) == cell_of(high[k], level) == cell
            below, above = math.nextafter(low[k], -math.inf), math.nextafter(high[k], math.inf)
            assert below == low[k] or cell_of(below, level) < cell
            assert above == high[k] or cell_of(above, level) > cell
        assert counts[k] == [rounded(m / unit) for m in mass[: h.classes]]
        total = [a + b for a, b in zip(total, mass, strict=False)]
    assert all(a < b for a, b in pairwise(low))
    assert h.totals() == tuple(rounded(t) for t in total)
    masses = [m for _, mass in table.values() for m in mass]
    assert integral == (all(m.denominator == 1 for m in masses) and sum(masses) < 2**53)
    h.check()


def rounded(exact):
    try:
        return float(exact)
    except OverflowError:
        return math.inf


# --- histories -----------------------------------------------------------------------------------


def columns(rows, classes=2):
    scores = np.array([row[0] for row in rows], np.float64)
    codes = np.array([row[1] for row in rows], np.uint8) if classes == 2 else None
    weight = np.array([row[2] for row in rows]) if rows and len(rows[0]) == 3 else None
    return scores, codes, weight


def built(rows, max_cells, classes=2):
    h = SortedHistogram(max_cells, classes)
    h.add(*columns(rows, classes))
    return h


def image(h):
    return [(name, a.dtype, a.shape, a.tobytes()) for name, a in sorted(h.arrays().items())]


def history(rows, max_cells, data, classes=2):
    """A histogram of the rows by a drawn history: order, batches, shards, reads, merge tree."""
    rows = data.draw(st.permutations(rows))
    shards = [SortedHistogram(max_cells, classes) for _ in range(data.draw(st.integers(1, 9)))]
    while rows:
        size = data.draw(st.integers(1, len(rows)))
        part, rows = rows[:size], rows[size:]
        h = data.draw(st.sampled_from(shards))
        h.add(*columns(part, classes))
        if data.draw(st.booleans()):
            h.check()
    while len(shards) > 1:
        into = shards.pop(data.draw(st.integers(0, len(shards) - 1)))
        count = data.draw(st.integers(1, len(shards)))
        some, shards = shards[:count], [*shards[count:], into]
        before = [image(one.fork()) for one in some]
        into.merge(*some)
        assert [image(one) for one in some] == before
    return shards[0]


@given(rows=ROWS, max_cells=BUDGETS, data=st.data())
def test_state_is_its_definition_whatever_the_history(rows, max_cells, data):
    h = history(rows, max_cells, data)
    assert image(h) == image(built(rows, max_cells))
    check_against(h, [(s, code, 1) for s, code in rows])
    again = SortedHistogram.from_arrays(max_cells, 2, h.arrays())
    assert image(again) == image(h)


@given(rows=WEIGHTED, max_cells=BUDGETS, data=st.data())
def test_weighted_state_is_its_definition_whatever_the_history(rows, max_cells, data):
    h = history(rows, max_cells, data)
    assert image(h) == image(built(rows, max_cells))
    check_against(h, rows)
    again = SortedHistogram.from_arrays(max_cells, 2, h.arrays())
    assert image(again) == image(h)


@given(rows=ROWS, max_cells=BUDGETS, data=st.data())
def test_plain_values_have_one_class(rows, max_cells, data):
    h = history(rows, max_cells, data, classes=1)
    assert image(h) == image(built(rows, max_cells, classes=1))
    check_against(h, [(s, 0, 1) for s, _ in rows])


@given(rows=ROWS, max_cells=BUDGETS, weights=st.data())
def test_whole_weights_are_repeated_rows(rows, max_cells, weights):
    times = [weights.draw(st.integers(1, 3)) for _ in rows]
    repeated = [row for row, k in zip(rows, times, strict=True) for _ in range(k)]
    weighted = [(*row, float(k)) for row, k in zip(rows, times, strict=True)]
    assert image(built(weighted, max_cells)) == image(built(repeated, max_cells))
    ones = built([(*row, 1.0) for row in rows], max_cells)
    assert image(ones) == image(built(rows, max_cells))


def test_fractions_that_add_up_to_integers_are_counts_again():
    h = built([(0.5, 1, 0.5), (0.7, 0, 0.25)], 4)
    assert next(h.cells()).counts.dtype == np.float64
    h.merge(built([(0.5, 1, 0.5), (0.7, 0, 0.75)], 4))
    assert image(h) == image(built([(0.5, 1), (0.7, 0)], 4))


@given(rows=ROWS, max_cells=BUDGETS, more=ROWS)
def test_fork_is_a_snapshot(rows, max_cells, more):
    h = built(rows, max_cells)
    h.check()
    snapshot = h.fork()
    held = {name: a.copy() for name, a in h.arrays().items()}
    shown = h.arrays()
    h.add(*columns(more))
    h.check()
    h.merge(snapshot)
    assert image(snapshot) == image(built(rows, max_cells))
    assert all(np.array_equal(held[name], a, equal_nan=True) for name, a in shown.items())
    assert image(h) == image(built([*rows, *rows, *more], max_cells))


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("max_cells", [3, 16])
def test_many_that_were_counted_before_are_merged_at_once(max_cells, weight):
    rows = [[(k / 7, k % 2, weight), (0.5, 1, weight)] for k in range(9)]
    first, *others = [built(each, max_cells) for each in rows]
    for h in (first, *others):
        h.check()
    first.merge(*others)
    assert image(first) == image(built([row for each in rows for row in each], max_cells))
    first.check()


@pytest.mark.parametrize("weight", [1.0, 2.0**22, 2.0**44])
@pytest.mark.parametrize("classes", [1, 2])
def test_many_past_level_0_are_added_up_in_a_table(classes, weight):
    """At several levels; counts may need 64 bits, or exact sums, once they are added."""
    rng = np.random.default_rng(8)
    shards = [
        [(s, k % 2) for k, s in enumerate(rng.choice([0.5, *rng.random(3000)], n).tolist())]
        for n in [0, 1, 60, 90, 200, 300, 300] * 9
    ]
    whole = built([row for rows in shards for row in rows], 64, classes)
    states = [built(rows, 64, classes).scaled(weight) for rows in shards]
    assert len({state.level for state in states}) > 2
    summed = cells_module._tabulated([state._state.cells for state in states])
    assert (summed is None) == (weight > 2.0**40)
    before = [image(state) for state in states]
    first = states[0].fork()
    first.merge(*states[1:])
    assert image(first) == image(whole.scaled(weight))
    assert [image(state) for state in states] == before
    first.check()


def test_many_at_level_0_are_added_up_once_they_are_past_it():
    rng = np.random.default_rng(9)
    shards = [[(s, 1) for s in rng.random(40).tolist()] for _ in range(50)]
    first, *others = [built(rows, 64) for rows in shards]
    for state in (first, *others):
        assert state.level == 0
    first.merge(*others)
    assert image(first) == image(built([row for rows in shards for row in rows], 64))


def test_large_buffers_are_counted_where_they_are(monkeypatch):
    """So they are never joined, and not counted again by the next merge."""
    monkeypatch.setattr(tuning, "BUFFERED_ROWS", 1 << 18)
    monkeypatch.setattr(tuning, "BUFFERS", 1 << 13)
    monkeypatch.setattr(tuning, "PASS_ROWS", 20)
    rows = [[((k * n) % 17 / 17, k % 2) for k in range(n)] for n in (19, 20, 30, 25)]
    small, *large = [built(each, 8) for each in rows]
    weighted = built([(0.3, 1, 0.5)] * 24, 8)
    merged = SortedHistogram(8, 2)
    merged.merge(small, weighted, *large)
    assert [len(state._state.pending) for state in (small, weighted, *large)] == [1, 1, 0, 0, 0]
    whole = built([row for each in rows for row in each], 8)
    whole.merge(weighted)
    assert image(merged) == image(whole)


@pytest.mark.parametrize("most", [1, 4, 5, 100])
def test_batches_hold_all_rows_in_order(most):
    sizes = [3, 1, 12, 2, 2, 4, 1]
    scores = np.split(np.arange(25.0), np.cumsum(sizes)[:-1])
    every = [cells_module.ScoredRows(s, None, s + 1) for s in scores]
    found = list(cells_module.batches(every, most))
    assert np.concatenate([rows.scores for rows in found]).tolist() == list(range(25))
    assert all((rows.weight == rows.scores + 1).all() for rows in found)
    sizes = [rows.scores.size for rows in found]
    assert all(1 <= size <= most or size in {3, 12, 2, 4} for size in sizes)
    assert all(a + b > most for a, b in pairwise(sizes))


def test_rows_that_nothing_validated_are_added_whole_or_not():
    rng = np.random.default_rng(4)
    for n in (1, 50, 5000):
        scores, codes = rng.random(n), rng.integers(0, 2, n)
        h = SortedHistogram(64, 2)
        assert h.add_unchecked(scores, codes)
        before = image(h)
        for place in (0, n // 2, n - 1):
            wrong = scores.copy(), codes.copy()
            wrong[0][place], wrong[1][place] = np.nan, 2
            assert not h.add_unchecked(wrong[0], codes)
            assert not h.add_unchecked(scores, wrong[1])
        assert image(h) == before
        other = built(list(zip(scores, codes, strict=True)), 64)
        assert image(other) == before


def test_merging_with_itself_doubles_the_rows():
    h = built([(0.1, 0), (0.2, 1)], 8)
    h.merge(h)
    assert image(h) == image(built([(0.1, 0), (0.2, 1)] * 2, 8))


def test_arguments_are_neither_kept_nor_changed():
    scores, codes = np.array([-0.0, 0.3, 0.9]), np.array([0, 1, 1], np.uint8)
    for rows in (3, tuning.BUFFERED_ROWS + 50):
        s, c = np.resize(scores, rows), np.resize(codes, rows)
        h = SortedHistogram(4, 2)
        h.add(s, c)
        assert s.tobytes() == np.resize(scores, rows).tobytes()
        assert c.tobytes() == np.resize(codes, rows).tobytes()
        s[:], c[:] = 0.7, 0
        other = SortedHistogram(4, 2)
        other.add(np.resize(scores, rows), np.resize(codes, rows))
        assert image(h) == image(other)


# --- integers beyond 2**53 -----------------------------------------------------------------------

LONG = st.one_of(
    st.integers(2**60, 2**60 + 4),
    st.integers(-(2**60) - 4, -(2**60)),
    st.sampled_from([-(2**63), 1 - 2**63, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2, 2**53 + 1]),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-3, 3),
)
MIXED = st.one_of(LONG, st.sampled_from([0.5, -0.0, 2.0**60, 1e300, -math.inf]))
LONG_ROWS = st.lists(
    st.tuples(MIXED, st.integers(0, 1), st.sampled_from([1.0, 1.0, 2.0, 0.1])), max_size=40
)


def add_long(h, rows):
    numbers = [row[0] for row in rows]
    heads = np.array([float(x) for x in numbers])
    tails = [0 if isinstance(x, float) else x - int(float(x)) for x in numbers]
    _, codes, weight = columns(rows)
    h.add(heads, codes, weight, np.array(tails, float))


def long_table(rows):
    """Exact numbers in order and the exact weight of each class."""
    table = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for x, code, weight in rows:
        key = x if math.isinf(x) else Fraction(x)
        table[key][code] += Fraction(weight)
    return sorted(table.items())


@given(rows=LONG_ROWS, max_cells=BUDGETS, data=st.data())
def test_long_integers_are_told_apart_whatever_the_history(rows, max_cells, data):
    whole = SortedHistogram(max_cells, 2)
    add_long(whole, rows)
    order = data.draw(st.permutations(rows))
    shards = [SortedHistogram(max_cells, 2) for _ in range(data.draw(st.integers(1, 4)))]
    while order:
        size = data.draw(st.integers(1, len(order)))
        h = data.draw(st.sampled_from(shards))
        add_long(h, order[:size])
        order = order[size:]
        if data.draw(st.booleans()):
            h.check()
    while len(shards) > 1:
        other = shards.pop()
        before = image(other.fork())
        shards[data.draw(st.integers(0, len(shards) - 1))].merge(other)
        assert image(other) == before
    assert image(shards[0]) == image(whole)
    again = SortedHistogram.from_arrays(max_cells, 2, whole.arrays())
    assert image(again) == image(whole)
    again.merge(whole)
    doubled = SortedHistogram(max_cells, 2)
    add_long(doubled, [*rows, *rows])
    assert image(again) == image(doubled)
    table = long_table(rows)
    blocks = list(whole.cells())
    counts = [x for b in blocks for x in b.counts.T.tolist()]
    assert whole.totals() == tuple(rounded(sum(mass[k] for _, mass in table)) for k in (0, 1))
    if len(table) <= max_cells:
        assert whole.exact
        assert [x for b in blocks for x in b.low.tolist()] == [float(x) for x, _ in table]
        assert counts == [[rounded(m) for m in mass] for _, mass in table]
        return
    heads = [(float(x) + 0.0, code, weight) for x, code, weight in rows]
    tailed = any(x != float(x) for x, _, _ in rows)
    ids = {k: {cell_of(s, k) for s, _, _ in heads} for k in range(65)}
    fits = next(k for k in range(int(tailed), 65) if len(ids[k]) <= max_cells)
    assert whole.level == fits
    told = defaultdict(set)
    for x, _, _ in rows:
        told[cell_of(float(x) + 0.0, fits)].add(x)
    single = [x for b in blocks for x in b.single.tolist()]
    assert single == [
        len(told[cell]) == 1 and all(x == float(x) for x in told[cell]) for cell in sorted(told)
    ]
    assert whole.exact == all(single)


# --- large ---------------------------------------------------------------------------------------

SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "crowded ends": lambda rng, n: rng.beta(0.05, 0.05, n),
    "logits": lambda rng, n: rng.normal(0, 3, n),
    "few": lambda rng, n: rng.integers(0, 50, n) / 50,
    "one half": lambda rng, n: np.where(rng.random(n) < 0.5, 0.25, rng.random(n)),
    "wide": lambda rng, n: np.exp(rng.uniform(-700, 700, n)) * rng.choice([-1, 1], n),
    "with infinities": lambda rng, n: np.where(
        rng.random(n) < 0.01, np.inf, rng.standard_cauchy(n)
    ),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
}


@pytest.mark.parametrize(
    ("max_cells", "shape"), some(product([64, 5000, 1 << 20], SHAPES), every=8)
)
def test_many_rows_in_any_batches(shape, max_cells, sizes):
    rng = np.random.default_rng(3)
    n = 300_000
    scores = SHAPES[shape](rng, n)
    codes = rng.integers(0, 2, n).astype(np.uint8)
    if tuning.BUFFERED_ROWS < 100:
        scores, codes = scores[:3000], codes[:3000]
        n = 3000
    whole = SortedHistogram(max_cells, 2)
    whole.add(scores, codes)
    whole.check()
    order = rng.permutation(n)
    shards = [SortedHistogram(max_cells, 2) for _ in range(2)]
    for k, part in enumerate(np.array_split(order, 11)):
        shards[k % 2].add(scores[part], codes[part])
        if k % 3 == 0:
            shards[k % 2].check()
    shards[0].merge(shards[1])
    assert image(whole) == image(shards[0])
    many = [SortedHistogram(max_cells, 2) for _ in range(13)]
    for shard, part in zip(many, np.array_split(order, 13), strict=True):
        shard.add(scores[part], codes[part])
        shard.check()
    many[5].merge(*many[:5], *many[6:])
    assert image(whole) == image(many[5])
    distinct = np.unique(scores).size
    assert (whole.level == 0) == (distinct <= max_cells)
    assert whole.totals() == (n - int(codes.sum()), int(codes.sum()))
    # Minimality: one level less would not fit.
    if whole.level > 1:
        assert np.unique(keys.cell_ids(scores, whole.level - 1)).size > max_cells
    if whole.level:
        ids, counts = np.unique(keys.cell_ids(scores, whole.level), return_counts=True)
        assert np.array_equal(whole.arrays()["cells"], ids)
        assert np.array_equal(whole.arrays()["counts"].sum(axis=1), counts)


WEIGHT_SHAPES = {
    "ordinary": lambda rng, n: rng.exponential(size=n),
    "short": lambda rng, n: rng.exponential(size=n).astype(np.float32).astype(float),
    "whole": lambda rng, n: rng.integers(1, 10, n).astype(float),
    "wide": lambda rng, n: np.exp(rng.uniform(-300, 300, n)),
}


@pytest.mark.parametrize(
    ("weights", "max_cells"), some(product(WEIGHT_SHAPES, [64, 5000]), every=5)
)
def test_many_weighted_rows_in_any_batches(weights, max_cells, sizes):
    rng = np.random.default_rng(4)
    n = 3000 if tuning.BUFFERED_ROWS < 100 else 150_000
    scores, codes = rng.normal(0, 3, n), rng.integers(0, 2, n).astype(np.uint8)
    weight = WEIGHT_SHAPES[weights](rng, n)
    weight[::3] = 1.0  # which counts as no weight where a whole batch has it
    whole = SortedHistogram(max_cells, 2)
    whole.add(scores, codes, weight)
    order = np.concatenate([rng.permutation(np.arange(0, n, 3)), rng.permutation(n)])
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    shards = [SortedHistogram(max_cells, 2) for _ in range(2)]
    for k, part in enumerate(np.array_split(order, 11)):
        shards[k % 2].add(scores[part], codes[part], weight[part])
        if k % 3 == 0:
            shards[k % 2].check()
    shards[0].merge(shards[1])
    assert image(whole) == image(shards[0])
    ids = keys.cell_ids(scores, whole.level) if whole.level else scores
    cells, place = np.unique(ids, return_inverse=True)
    assert np.array_equal(whole.arrays()["cells" if whole.level else "scores"], cells)
    # The heaviest cell, row by row.
    here = place == np.argmax(np.bincount(place, weight))
    counts = np.concatenate([block.counts for block in whole.cells()], axis=1)
    exact = [sum(map(Fraction, weight[here & (codes == code)])) for code in (0, 1)]
    assert counts[:, place[here][0]].tolist() == [rounded(mass) for mass in exact]


@given(scores=st.lists(SCORES, min_size=1, max_size=30), level=st.integers(1, 64))
def test_keys_and_edges(scores, level):
    ids = keys.cell_ids(np.array(scores), level)
    assert ids.tolist() == [cell_of(s, level) for s in scores]
    low, high = keys.cell_edges(ids, level)
    for s, first, last, cell in zip(scores, low.tolist(), high.tolist(), ids.tolist(), strict=True):
        assert first <= s <= last
        assert cell_of(first, level) == cell_of(last, level) == cell
        if first > -math.inf:
            assert cell_of(math.nextafter(first, -math.inf), level) < cell
        if last < math.inf:
            assert cell_of(math.nextafter(last, math.inf), level) > cell


def test_the_warp_has_no_jump():
    for s in (0.5, 1.0, 0.0, 2.0, 0.75):
        around = [math.nextafter(s, -math.inf), s, math.nextafter(s, math.inf)]
        values = [warped(x) for x in around]
        assert values == sorted(set(values))
    assert warped(1.0) == bits(1.0) + 52 * 2**52
    assert keys.cell_id_range(1) == (warped(-math.inf) >> 1, warped(math.inf) >> 1)


@pytest.mark.long
def test_resolution_near_one_is_that_near_zero():
    rng = np.random.default_rng(0)
    near = np.exp(-rng.exponential(8, 50_000)) / 2
    widths = []
    for scores in (near, 1 - near):
        h = SortedHistogram(1024, 1)
        h.add(scores)
        widths.append(max(float((b.high - b.low).max()) for b in h.cells()))
    assert widths[1] <= 2 * widths[0]


@pytest.mark.parametrize("max_cells", [16, 1 << 12])
def test_rows_of_a_column_of_weights_weigh_their_squares(max_cells):
    """Which float64 does not hold."""
    rng = np.random.default_rng(3)
    n = 5000 if tuning.BUFFERED_ROWS < 100 else 150_000
    scores, codes = rng.normal(size=n).round(5), rng.integers(0, 2, n).astype(np.uint8)
    column = rng.integers(1 << 29, 1 << 30, (n, 1)) | 1
    product = column[:, 0] ** 2
    halves = [half.astype(float) for half in (product >> 30 << 30, product & (1 << 30) - 1)]
    both, apart = SortedHistogram(max_cells, 2), SortedHistogram(max_cells, 2)
    for part in np.split(np.arange(n), [n // 150, n // 2, n - n // 15]):
        both.add(scores[part], codes[part], column[part].astype(float))
        for half in halves:
            apart.add(scores[part], codes[part], half[part])
    assert image(both) == image(apart)
    both.check()


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["of", "merged"])
def test_a_failure_on_the_way_changes_nothing(place, monkeypatch):
    rng = np.random.default_rng(1)
    scores, codes = rng.random(40_000), rng.integers(0, 2, 40_000).astype(np.uint8)
    h = SortedHistogram(100, 2)
    h.add(scores[:20_000], codes[:20_000])
    h.check()
    h.add(scores[:2], codes[:2])
    before = image(h.fork())

    def fail(*args, **kwargs):
        raise MemoryError("none left")

    owner = cells_module.Cells if place == "of" else histogram_module
    monkeypatch.setattr(owner, place, fail)
    for change in (lambda: h.add(1000 * scores, codes), h.arrays):
        with pytest.raises(MemoryError, match="none left"):
            change()
    monkeypatch.undo()
    assert image(h) == before


def test_configurations():
    for max_cells, classes in ((1, 2), (2**29 + 1, 2), (4, 0), (4, 3)):
        with pytest.raises(ValueError, match="must be"):
            SortedHistogram(max_cells, classes)
    h = SortedHistogram(4, 2)
    for other in (SortedHistogram(5, 2), SortedHistogram(4, 1)):
        with pytest.raises(IncompatibleMetricsError, match="max_cells"):
            h.merge(other)


def test_empty():
    h = SortedHistogram(4, 2)
    h.add(np.empty(0), np.empty(0, np.uint8))
    h.merge(SortedHistogram(4, 2))
    assert h.level == 0
    assert h.exact
    assert h.nbytes == 0
    assert list(h.cells()) == []
    assert h.totals() == (0, 0)
    assert image(SortedHistogram.from_arrays(4, 2, h.arrays())) == image(h)


def test_nbytes_counts_rows_and_cells():
    h = SortedHistogram(4, 2)
    h.add(np.array([0.1, 0.2]), np.array([0, 1], np.uint8))
    assert h.nbytes == 2 * 9
    h = built([(k / 8, k % 2) for k in range(9)], 4)
    h.check()
    assert 0 < h.nbytes <= 4 * 32


# --- hostile states ------------------------------------------------------------------------------


def collapsed():
    rows = [(k / 37 + 0.001, k % 2) for k in range(30)]
    return built(rows, 8).arrays()


def weighted():
    return built([(k / 37, k % 2, 0.1) for k in range(30)], 8).arrays()


def exact():
    return built([(0.1, 0), (0.2, 1), (0.9, 1)], 8).arrays()


def changed(arrays, name, place, value):
    array = arrays[name].copy()
    array[place] = value
    return arrays | {name: array}


def test_the_hostile_states_are_made_of_good_ones():
    for arrays in (collapsed(), weighted(), exact()):
        SortedHistogram.from_arrays(8, 2, arrays).check()
    assert collapsed()["level"][0] > 1
    assert np.isnan(collapsed()["scores"]).any()
    assert not np.isnan(collapsed()["scores"]).all()


def long_rows(max_cells):
    h = SortedHistogram(max_cells, 2)
    add_long(h, [(2**60 + k, k % 2, 1.0) for k in range(7)] + [(0.5, 1, 1.0)])
    return h.arrays()


def test_states_of_long_integers():
    told_apart, widened = long_rows(8), long_rows(6)
    assert told_apart["tails"].tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert widened["level"].tolist() == [1]
    assert widened["tails"].size == 0
    assert built([(0.5, 1), (2.0**60, 0)], 2).arrays().keys() == exact().keys()


def single_place():
    return int(np.flatnonzero(~np.isnan(collapsed()["scores"]))[0])


def mixed_place():
    return int(np.flatnonzero(np.isnan(collapsed()["scores"]))[0])


def integers_as_weights():
    arrays = exact()
    mass = {"mass.digits": arrays.pop("counts").reshape(6, 1), "mass.exponent": np.array(0)}
    return arrays | mass


OTHER_NAN = np.array([0x7FF8000000000001]).view(np.float64)[0]


def near_two_to_the_53():
    """A cell at level 1 whose doubles stand for at most 6 integers, of a budget of 8."""
    return {
        "level": np.array([1]),
        "cells": keys.cell_ids(np.array([2.0**53]), 1),
        "scores": np.array([np.nan]),
        "tails": np.empty(0),
        "counts": np.array([[9, 9]]),
    }


STATES = {
    "nothing": dict,
    "no level": lambda: {k: v for k, v in exact().items() if k != "level"},
    "more arrays": lambda: exact() | {"more": np.zeros(1)},
    "counts and mass": lambda: exact() | {"mass.digits": np.zeros((6, 1), np.int64)},
    "two levels": lambda: exact() | {"level": np.array([0, 0])},
    "negative level": lambda: exact() | {"level": np.array([-1])},
    "high level": lambda: collapsed() | {"level": np.array([65])},
    "small level": lambda: changed(collapsed(), "level", 0, collapsed()["level"][0] - 1),
    "large level": lambda: changed(collapsed(), "level", 0, collapsed()["level"][0] + 1),
    "level 0 with nan": lambda: collapsed() | {"level": np.array([0]), "cells": np.empty(0, int)},
    "level without cells": lambda: exact() | {"level": np.array([1])},
    "float32 scores": lambda: exact() | {"scores": exact()["scores"].astype(np.float32)},
    "big-endian scores": lambda: exact() | {"scores": exact()["scores"].astype(">f8")},
    "scores in a matrix": lambda: exact() | {"scores": exact()["scores"][None]},
    "descending scores": lambda: exact() | {"scores": exact()["scores"][::-1]},
    "equal scores": lambda: changed(exact(), "scores", 1, 0.1),
    "negative zero": lambda: changed(exact(), "scores", 0, -0.0),
    "nan at level 0": lambda: changed(exact(), "scores", 2, np.nan),
    "another nan": lambda: changed(collapsed(), "scores", mixed_place(), OTHER_NAN),
    "score of another cell": lambda: changed(collapsed(), "scores", single_place(), 1e300),
    "equal cells": lambda: changed(collapsed(), "cells", 1, collapsed()["cells"][0]),
    "cell too low": lambda: changed(collapsed(), "cells", 0, -(2**62)),
    "cell too high": lambda: changed(collapsed(), "cells", -1, 2**62),
    "negative count": lambda: changed(exact(), "counts", (0, 1), -1),
    "empty cell": lambda: changed(exact(), "counts", 0, 0),
    "huge counts": lambda: exact() | {"counts": np.full((3, 2), 2**62)},
    "too many counts": lambda: exact() | {"counts": np.ones((4, 2), np.int64)},
    "one class": lambda: exact() | {"counts": np.ones((3, 1), np.int64)},
    "float counts": lambda: exact() | {"counts": np.ones((3, 2))},
    "uint8 codes": lambda: exact() | {"counts": np.ones((3, 2), np.uint8)},
    "too many cells": lambda: built([(k / 37, 0) for k in range(9)], 9).arrays(),
    "level not needed": lambda: built([(k / 37, 0) for k in range(20)], 4).arrays(),
    "negative weight": lambda: changed(weighted(), "mass.digits", (0, -1), -1),
    "weightless cell": lambda: changed(weighted(), "mass.digits", slice(0, 2), 0),
    "digit out of range": lambda: changed(weighted(), "mass.digits", (0, 0), 2**40),
    "integers as weights": integers_as_weights,
    "tails of no scores": lambda: exact() | {"tails": np.zeros(3)},
    "too few tails": lambda: long_rows(8) | {"tails": np.ones(1)},
    "float32 tails": lambda: long_rows(8) | {"tails": np.ones(8, np.float32)},
    "tails past level 0": lambda: long_rows(6) | {"tails": np.ones(3)},
    "tails of small scores past level 0": lambda: collapsed() | {"tails": np.empty(0)},
    "tails that fit level 0": near_two_to_the_53,
    "no tails at level 1": lambda: {k: v for k, v in long_rows(6).items() if k != "tails"},
    "tail too long": lambda: changed(long_rows(8), "tails", 7, 2000.0),
    "tail of another head": lambda: changed(long_rows(8), "tails", 7, 200.0),
    "broken tail": lambda: changed(long_rows(8), "tails", 7, 5.5),
    "tail of a small score": lambda: changed(long_rows(8), "tails", 0, 1e-20),
    "nan as a tail": lambda: changed(long_rows(8), "tails", 7, np.nan),
    "negative zero as a tail": lambda: changed(long_rows(8), "tails", 1, -0.0),
    "equal tails": lambda: changed(long_rows(8), "tails", 3, 1.0),
    "tail beyond 64 bits": lambda: changed(long_rows(8), "scores", 7, 2.0**70),
    "too few weights": lambda: weighted() | {"mass.digits": weighted()["mass.digits"][1:]},
}


@pytest.mark.parametrize("name", STATES)
def test_hostile_states_are_refused(name):
    with pytest.raises(StateFormatError, match="cell|histogram|score|exact sums|array|count|tail"):
        SortedHistogram.from_arrays(8, 2, STATES[name]())


def test_a_cell_of_one_double_cannot_hold_several_scores():
    # Near 1 the doubles are further apart than the keys, so that level 1 has cells of one double.
    top = [1 - k * 2.0**-53 for k in range(4, 9)]
    arrays = built([(s, 0) for s in [*top, 0.1, math.nextafter(0.1, 1)]], 6).arrays()
    assert arrays["level"][0] == 1
    scores = arrays["scores"].copy()
    scores[-1] = np.nan
    assert np.isnan(scores).sum() <= 2
    with pytest.raises(StateFormatError, match="single double"):
        SortedHistogram.from_arrays(6, 2, arrays | {"scores": scores})


@given(data=st.data(), name=st.sampled_from(["collapsed", "weighted", "exact"]))
def test_a_flipped_bit_is_refused_or_gives_a_valid_state(data, name):
    arrays = {"collapsed": collapsed, "weighted": weighted, "exact": exact}[name]()
    which = data.draw(st.sampled_from([k for k, v in arrays.items() if v.size]))
    raw = bytearray(arrays[which].tobytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    array = np.frombuffer(bytes(raw), arrays[which].dtype).reshape(arrays[which].shape)
    try:
        h = SortedHistogram.from_arrays(8, 2, arrays | {which: array})
    except StateFormatError:
        assume(False)
    assert image(h) == image(SortedHistogram.from_arrays(8, 2, h.arrays()))
    assert {k: v.tobytes() for k, v in h.arrays().items()} == {
        k: v.tobytes() for k, v in (arrays | {which: array}).items()
    }


# --- threads -------------------------------------------------------------------------------------


def test_many_threads_read_what_has_not_been_counted_yet():
    rng = np.random.default_rng(2)
    rows = [(s, k % 2, 1.0 + k % 3) for k, s in enumerate(rng.random(300).tolist())]
    rows += [(2**60 + k, k % 2, 0.1) for k in range(40)]
    expected = SortedHistogram(64, 2)
    add_long(expected, rows)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(10):
                shared = SortedHistogram(64, 2)
                for k in range(0, len(rows), 50):
                    add_long(shared, rows[k : k + 50])
                found = list(pool.map(lambda h: (image(h), h.totals(), h.level), [shared] * 8))
                assert found == [(image(expected), expected.totals(), expected.level)] * 8
    finally:
        sys.setswitchinterval(before)


# --- merges without end --------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 16)], ids=["plain", "weighted"])
def test_a_state_that_is_merged_with_itself_holds_its_rows_as_often(weight):
    scores, codes = np.linspace(-1.0, 1.0, 16), np.arange(16, dtype=np.uint8) % 2
    h = SortedHistogram(1 << 20, 2)
    h.add(scores, codes, weight)
    h.add(scores[:3], codes[:3])
    for doublings in range(1, 12):
        h.merge(h)
        whole = SortedHistogram(1 << 20, 2)
        whole.add(scores, codes, (np.ones(16) if weight is None else weight) * 2**doublings)
        whole.add(scores[:3], codes[:3], np.full(3, 2.0**doublings))
        assert image(h.fork()) == image(whole)
    assert len(h._state.pending) <= tuning.BUFFERS


def test_counts_of_many_histograms_are_added_beyond_32_bits():
    one = SortedHistogram(4, 2)
    one.add(np.array([0.5]), np.array([1], np.uint8))
    for _ in range(30):
        one.merge(one.fork())
    whole = SortedHistogram(4, 2)
    whole.merge(*[one] * 5)
    assert whole.totals() == (0, 5 * 2**30)
    for _ in range(24):
        whole.merge(*[whole.fork()] * 2)
    assert whole.totals() == (0.0, float(5 * 2**30 * 3**24))
