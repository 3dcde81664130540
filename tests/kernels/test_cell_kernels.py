"""Cells counted and merged by every compiled kernel, against the reference, to the byte."""

import math
from itertools import chain, product

import numpy as np
import pytest
from thinning import some

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.kernels import kernels, reference

VARIANTS = getattr(kernels, "variants", tuple)()

HOSTILE = [
    *(0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, -1e-300, 2.0**53, 2.0**53 + 2),
    *(0.5, math.nextafter(0.5, 0), math.nextafter(0.5, 1), 0.75, 0.1, 0.9, 1e308, -1e308),
    *(1.0, 1 - 2**-53, 1 - 2**-52, math.nextafter(1, 2), 1.5, 2.0, math.inf, -math.inf),
]

SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "hostile": lambda rng, n: rng.choice(HOSTILE, n),
    "few": lambda rng, n: rng.integers(0, 7, n) / 7,
    "one": lambda rng, n: np.full(n, 0.3),
    "signs": lambda rng, n: rng.normal(size=n),
    "every exponent": lambda rng, n: np.ldexp(rng.normal(size=n), rng.integers(-1080, 1023, n)),
    "near one": lambda rng, n: 1 - rng.random(n) ** 9,
    "ties of long runs": lambda rng, n: np.repeat(rng.random(n // 50 + 1), 50)[:n],
    "close": lambda rng, n: 1 + np.finfo(float).eps * rng.integers(0, n, n) * 2.0**20,
    "ascending": lambda rng, n: np.sort(rng.random(n)),
    "widening": lambda rng, n: np.ldexp(rng.random(n), np.arange(n) // 50 % 300),
    "bits": lambda rng, n: np.nan_to_num(rng.integers(0, 2**64, n, np.uint64).view(float)),
}


NONE = [pytest.param("", marks=pytest.mark.skip("none compiled"))]


@pytest.fixture(params=VARIANTS or NONE)
def compiled(request):
    before = VARIANTS[-1]
    kernels.use(request.param)
    yield kernels
    kernels.use(before)


# The reference is slow, so that one test compares all variants with it.
of_each = pytest.mark.parametrize("compiled", VARIANTS[:1] or NONE, ids=["each"], indirect=True)


def each_in_turn():
    """Yield the kernels with each variant in use."""
    for variant in VARIANTS:
        kernels.use(variant)
        yield kernels


def counted(module, scores, codes, most, level=0, *, index=False, times=None):
    room, classes = min(scores.size, most), 1 if codes is None else 2
    needed = level or scores.size > most
    ids, found = np.full(room, -7) if needed else None, np.full(room, -7.0)
    counts = None if index else np.full((room, classes), -7, np.int32)
    places = np.full(scores.size, -7) if index else None
    weight = np.arange(scores.size) / 7 if index else times
    at, size, _ = module.cells_count(
        scores, codes, weight, places, most, level, ids, found, counts, 0, 1
    )
    if index:  # rows may change their order
        places = places[np.argsort(weight)]
    return (
        at,
        size,
        ids[:size].tobytes() if at else None,
        found[:size].tobytes(),
        None if counts is None else counts[:size].tolist(),
        None if places is None else places.tolist(),
    )


WEIGHTS = {
    "exponential": lambda rng, n: rng.exponential(size=n) + 1e-9,
    "whole": lambda rng, n: rng.integers(1, 2**31, n).astype(float),
    "every exponent": lambda rng, n: np.ldexp(1 + rng.random(n), rng.integers(-1070, 1000, n)),
    "one": lambda rng, n: np.ones(n),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(1, 9, n),
    "large": lambda rng, n: rng.uniform(0.9, 1.0, n) * 2.0**64,  # sums go beyond the highest digit
}


def summed(module, scores, codes, weight, power, most, level=0):
    room, classes = min(scores.size, most), 1 if codes is None else 2
    ids, found = np.full(room, -7), np.full(room, -7.0)
    low, width = ExactSum.window(weight, power)
    sums = np.full((room, classes, width), -7)
    at, size, canonical = module.cells_count(
        scores, codes, weight.copy(), None, most, level, ids, found, sums, low, power
    )
    return (
        (at, size, canonical, ids[:size].tobytes() if at else None),
        (found[:size].tobytes(), sums[:size].tobytes()),
    )


@of_each
@pytest.mark.parametrize(
    ("name", "n"), some([*product(WEIGHTS, [1, 2, 25, 300, 3000]), ("exponential", 300_000)])
)
def test_weights_are_summed_as_by_the_reference(compiled, name, n):
    """By sorting, by two threads, and in a table of neighbours."""
    rng = np.random.default_rng(n)
    weight, codes = WEIGHTS[name](rng, n), rng.integers(0, 2, n).astype(np.uint8)
    powers = (1, 2) if weight.max() < 2**500 else (1,)
    if n > 3000:
        cases = [("signs", 1 << 17, 1, codes, 0), ("few", 61, 2, codes, 0)]
    else:
        cases = product(("signs", "few"), (2, 61, 1 << 17), powers, (codes, None), (0, 50))
    for scores, most, power, mine, level in cases:
        arguments = (SCORES[scores](rng, n), mine, weight, power, most, level)
        expected = summed(reference, *arguments)
        assert all(summed(module, *arguments) == expected for module in each_in_turn())


@pytest.mark.parametrize("n", [8, 3000])
def test_weights_that_do_not_fit_are_refused(compiled, n):
    scores, codes = np.random.default_rng(1).random(n), np.zeros(n, np.uint8)
    for most in (2, 4096):
        out = np.empty(n, int), np.empty(n), np.empty((n, 2, 3), np.int64)
        for wrong in (-1.0, np.nan, np.inf, 2.0**80, 2.0**-80, 1e308, 1e-308):
            weight = np.ones(n)
            weight[n // 2] = wrong
            with pytest.raises(ValueError, match="fit"):
                compiled.cells_count(scores, codes, weight, None, most, 0, *out, -64, 1)


@of_each
@pytest.mark.parametrize(("name", "n"), some(product(SCORES, [0, 1, 2, 25, 300, 5000]), every=5))
def test_rows_are_counted_as_by_the_reference(compiled, name, n):
    rng = np.random.default_rng(n)
    scores = SCORES[name](rng, n)
    codes = rng.integers(0, 2, n).astype(np.uint8)
    for most in (2, 61, 700, 6000):
        for level in (0, 40) if n > 99 else (0, 1, 40, 64):
            for mine in (codes, None):
                times = rng.integers(1, 2**31 // (n + 1), n)
                for index, often in ((False, None), (True, None), (False, times)):
                    expected = counted(
                        reference, scores, mine, most, level, index=index, times=often
                    )
                    for module in each_in_turn():
                        found = counted(module, scores, mine, most, level, index=index, times=often)
                        assert found == expected


def _often(rng, n):
    """Half of the scores are 0.5, and few of the others are alike."""
    return np.where(rng.random(n) < 0.5, 0.5, rng.random(n))


REPEATED = {"a hundred": lambda rng, n: rng.integers(-50, 50, n) / 8, "half of them": _often}


@of_each
@pytest.mark.parametrize("name", some(REPEATED))
def test_rows_that_repeat_scores_are_counted_as_by_the_reference(compiled, name):
    """They are looked up; the budget is too small for half of them, so that a table is raised."""
    rng = np.random.default_rng(6)
    scores, codes = REPEATED[name](rng, 150_000), rng.integers(0, 2, 150_000).astype(np.uint8)
    times = rng.integers(1, 9, 150_000)
    ways = ((False, None), (True, None), (False, times))
    for most, (index, often) in product((1 << 18, 40_000), ways):
        expected = counted(reference, scores, codes, most, index=index, times=often)
        for module in each_in_turn():
            assert counted(module, scores, codes, most, index=index, times=often) == expected


@of_each
@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("uniform", "runs", "signs", "every exponent", "bits")
        ),
    ],
)
def test_sorts_of_many_rows_are_those_of_the_reference(compiled, name):
    """So many that several threads share them, and that digits of the sort are as wide as they get.

    Neighbours that share a cell may be on both sides of where the rows of two threads meet.
    """
    rng, n = np.random.default_rng(5), 300_000
    several = {"pairs": 2, "runs": n // 5}.get(name, 1)
    scores = np.repeat(SCORES.get(name, SCORES["signs"])(rng, n // several), several)
    codes = rng.integers(0, 2, n).astype(np.uint8)
    for most, index in product((1 << 19, 80_000, 3), (False, True)):
        expected = counted(reference, scores, codes, most, index=index)
        for module in each_in_turn():
            assert counted(module, scores, codes, most, index=index) == expected


def cells_of(scores, codes, most, classes, dtype):
    room = min(scores.size, most)
    ids, found, counts = (
        np.empty(room, np.int64),
        np.empty(room),
        np.empty((room, classes), np.int32),
    )
    level, size, _ = reference.cells_count(
        scores, codes if classes == 2 else None, None, None, most, 0, ids, found, counts, 0, 1
    )
    return level, ids[:size] if level else None, found[:size], counts[:size].astype(dtype)


def raised(cells, level):
    before, ids, scores, counts = cells
    if level and not before:
        ids = np.empty(scores.size, np.int64)
        reference.cells_ids(ids, scores, level)
    elif level:
        ids = ids >> (level - before)
    return ids, scores, counts


@of_each
@pytest.mark.parametrize(
    ("name", "dtype", "classes"), some(product(SCORES, [np.int32, np.int64], [1, 2]))
)
def test_cells_are_merged_as_by_the_reference(compiled, name, dtype, classes):
    rng = np.random.default_rng(1)
    for n, m in ((0, 0), (0, 40), (40, 0), (1, 1), (500, 30), (900, 2000)):
        for most in (2, 61, 5000):
            a, b = (
                cells_of(SCORES[name](rng, k), rng.integers(0, 2, k), most, classes, dtype)
                for k in (n, m)
            )
            level = max(a[0], b[0])
            a, b = raised(a, level), raised(b, level)
            room = min(a[1].size + b[1].size, most)
            for exact in (False, True):
                found = []
                for module in chain([reference], each_in_turn()):
                    parts = [
                        (*part[:2], *_digits(part[2], k, exact)) for k, part in enumerate((a, b))
                    ]
                    out = np.zeros(room, np.int64), np.zeros(room)
                    shape = (room, classes, 5) if exact else (room, classes)
                    counts = np.zeros(shape, np.int64 if exact else dtype)
                    told = module.cells_merge(level, *parts[0], *parts[1], most, *out, counts)
                    arrays = (out[0] if told[0] else out[0][:0], out[1], counts)
                    found.append((told, *(array[: told[1]].tobytes() for array in arrays)))
                assert all(each == found[0] for each in found)


def _digits(counts, shift, exact):
    """Return counts, or digits of sums of which some borrow from those above."""
    if not exact:
        return counts, 0
    low = counts.astype(np.int64)
    return np.stack([-low & 0xFFFFFFFF, low, low // 2 - 3, -low][: 4 - shift], axis=2), shift


def test_cells_that_share_an_id_are_united(compiled):
    for module in (reference, compiled):
        ids, scores, counts = np.zeros(9, int), np.zeros(9), np.zeros((9, 1), np.int32)
        a = (np.array([4, 4, 9]), np.array([np.nan, 0.5, 0.7]), np.ones((3, 1), np.int32), 0)
        b = (np.array([4, 8, 8]), np.array([0.5, 0.6, 0.6]), np.ones((3, 1), np.int32), 0)
        assert module.cells_merge(3, *a, *b, 9, ids, scores, counts) == (3, 3, True)
        assert ids[:3].tolist() == [4, 8, 9]
        assert np.array_equal(scores[:3], [np.nan, 0.6, 0.7], equal_nan=True)
        assert counts[:3].tolist() == [[3], [2], [1]]


@pytest.mark.parametrize(
    ("name", "dtype", "classes"), some(product(SCORES, [np.int32, np.int64], [1, 2]))
)
def test_cells_are_added_to_a_table_as_they_are_merged(compiled, name, dtype, classes):
    """Many parts of several levels, some of them empty and some of 32 bits in a table of 64."""
    rng = np.random.default_rng(4)
    parts = [
        cells_of(SCORES[name](rng, n), rng.integers(0, 2, n), most, classes, kind)
        for n in (0, 1, 90, 700, 2000)
        for most in (2, 9, 61, 5000)
        for kind in {np.int32, dtype}
    ]
    level = max(52, *(part[0] for part in parts))
    ids = np.concatenate([raised(part, level)[0] for part in parts])
    low, span = int(ids.min()) - 3, int(np.ptp(ids)) + 9
    found = []
    for module in (reference, compiled):
        totals, scores = np.zeros((span, classes), dtype), np.full(span, -7.0)
        for part in parts:
            weight = module.cells_add(totals, scores, low, level, *part)
            assert weight == part[3].sum()
        found.append((totals.tobytes(), scores.tobytes()))
    assert found[0] == found[1]
    order = np.argsort(ids, kind="stable")
    every = [np.concatenate([part[k] for part in parts])[order] for k in (2, 3)]
    none = (np.empty(0, int), np.empty(0), np.empty((0, classes), dtype), 0)
    out = np.empty(ids.size, int), np.empty(ids.size), np.empty((ids.size, classes), dtype)
    merged = (ids[order], every[0], every[1].astype(dtype), 0)
    _, size, _ = reference.cells_merge(level, *merged, *none, max(ids.size, 2), *out)
    at = np.flatnonzero(totals.any(axis=1))
    assert (at + low).tobytes() == out[0][:size].tobytes()
    assert scores[at].tobytes() == out[1][:size].tobytes()
    assert totals[at].tobytes() == out[2][:size].tobytes()
    assert (np.delete(scores, at) == -7.0).all()


def test_ids_beyond_a_table_are_refused_before_anything_is_written(compiled):
    scores, counts = np.full(600, 0.25), np.ones((600, 2), np.int32)
    for module in (reference, compiled):
        totals, found = np.zeros((8, 2), np.int32), np.full(8, -7.0)
        for wrong in (-1, 8, -(2**63), 2**63 - 1):
            for place in (0, 599):
                ids = np.full(600, 20)
                ids[place] = 20 + wrong if abs(wrong) < 9 else wrong
                with pytest.raises(ValueError, match="fit"):
                    module.cells_add(totals, found, 20, 3, 3, ids, scores, counts)
        with pytest.raises(ValueError, match="fit"):
            module.cells_add(totals, found, 20, 3, 0, None, scores, counts)
        assert not totals.any()
        assert (found == -7.0).all()
        ids = np.repeat(np.arange(20, 28), 75)
        assert module.cells_add(totals, found, 20, 3, 3, ids, scores, counts) == 1200
        assert (totals == 75).all()
        assert (found == 0.25).all()


@pytest.mark.parametrize("name", SCORES)
def test_ids_are_those_of_the_reference(compiled, name):
    scores = SCORES[name](np.random.default_rng(2), 3000)
    for level in range(65):
        mine, theirs = np.empty((2, 3000), np.int64)
        compiled.cells_ids(mine, scores, level)
        reference.cells_ids(theirs, scores, level)
        assert mine.tobytes() == theirs.tobytes()


def test_more_rows_than_are_sorted_at_once_are_those_of_parts(compiled):
    """The first part is sorted; the others are counted in a table of its level."""
    rng, n, part = np.random.default_rng(4), (1 << 22) + (1 << 20) + 9, 1 << 20
    scores, codes = rng.random(n), rng.integers(0, 2, n)
    out = np.empty(1 << 19, int), np.empty(1 << 19), np.empty((1 << 19, 2), np.int32)
    assert compiled.cells_count(scores, codes, None, None, 1 << 19, 0, *out, 0, 1)[0] == -1
    whole, parts = SortedHistogram(1 << 19, 2), SortedHistogram(1 << 19, 2)
    assert whole.add_unchecked(scores, codes)
    for start in range(0, n, part):
        parts.add(scores[start : start + part], codes[start : start + part])
    assert whole.is_same(parts)


@pytest.mark.parametrize("n", [1, 300, 5000])
def test_rows_that_are_none_are_refused(compiled, n):
    """By sorting and by a table, at both ends, of codes of every type."""
    rng = np.random.default_rng(n)
    for module, most, name in product((compiled, reference), (2, 6000), ("uniform", "few")):
        scores, codes = SCORES[name](rng, n), rng.integers(0, 2, n)
        expected = counted(module, scores, codes.astype(np.uint8), most)
        for dtype in "bBhHiIlL?":
            assert counted(module, scores, codes.astype(dtype), most) == expected
        for place in (0, n // 2, n - 1):
            for wrong in (np.nan, -np.nan, *np.array([0x7FF0000000000001]).view(float)):
                others = scores.copy()
                others[place] = wrong
                with pytest.raises(ValueError, match="nan"):
                    counted(module, others, codes, most)
            for dtype, wrong in product("bBhHiIlL", (2, -1)):
                others = codes.copy()
                others[place] = wrong
                with pytest.raises(ValueError, match="nan"):
                    counted(module, scores, others.astype(dtype), most)


@pytest.mark.parametrize("name", ["uniform", "few", "one", "signs"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_area_is_that_of_all_pairs(compiled, name, dtype):
    rng = np.random.default_rng(7)
    scores, codes = SCORES[name](rng, 400), rng.integers(0, 2, 400).astype(np.uint8)
    for most in (3, 50, 400):
        _, _, found, counts = cells_of(scores, codes, most, 2, dtype)
        above, slack = 0, 0
        for k, (n, p) in enumerate(counts.tolist()):
            above += 2 * p * int(counts[:k, 0].sum()) + p * n
            slack += p * n * math.isnan(found[k])
        for module in (reference, compiled):
            assert module.cells_area(found, counts) == (above, slack)
            assert module.cells_area(None, counts) == (above, 0)
    with pytest.raises(ValueError, match="fit"):
        compiled.cells_area(found, counts[1:])


def test_arrays_of_other_kinds_are_refused(compiled):
    scores, codes = np.linspace(0, 1, 8), np.zeros(8, np.uint8)
    ids, found, counts = np.empty(4, int), np.empty(4), np.empty((4, 2), np.int32)
    good = (scores, codes, None, None, 4, 0, ids, found, counts, 0, 1)
    compiled.cells_count(*good)
    misaligned = np.frombuffer(b"\0" * 65, np.uint8)[1:].view(float)
    frozen = counts.copy()
    frozen.flags.writeable = False
    for place, wrong in (
        *((0, scores[::2]), (0, scores.astype(">f8")), (0, scores.astype("f4")), (0, misaligned)),
        *((1, codes[::2]), (1, codes.astype(float)), (7, found.astype("f4")), (8, frozen)),
        *((8, counts.astype(np.int16)), (6, ids.astype(np.int32)), (8, counts.astype(float))),
    ):
        with pytest.raises((BufferError, ValueError), match="contiguous|expected|read-only"):
            compiled.cells_count(*(wrong if k == place else each for k, each in enumerate(good)))


def test_lengths_and_levels_that_do_not_fit_are_refused(compiled):
    scores, codes = np.linspace(0, 1, 8), np.zeros(8, np.uint8)
    ids, found, counts = np.empty(4, int), np.empty(4), np.empty((4, 2), np.int32)
    good = (scores, codes, None, None, 4, 0, ids, found, counts, 0, 1)
    for place, wrong in (
        *((0, scores[:7]), (0, None), (1, codes[:7]), (1, None), (3, np.empty(8, int))),
        *((2, np.empty(8)), (4, 1), (4, 0), (4, -5), (4, 1 << 40), (4, 7), (5, -1), (5, 65)),
        *((6, ids[:3]), (6, None), (7, found[:3]), (8, counts[:3]), (8, counts[:, 0].copy())),
        *((8, None), (8, counts.astype(np.int64)), (9, 1 << 40), (10, 0), (10, 3)),
    ):
        arguments = [wrong if k == place else each for k, each in enumerate(good)]
        with pytest.raises((TypeError, ValueError), match="length|expected|fit|counts|bytes-like"):
            compiled.cells_count(*arguments)
    one = (ids, found, counts, 0)
    with pytest.raises(ValueError, match="fit"):
        compiled.cells_ids(ids, scores, 3)
    for part in (
        (None, *one[1:]), (ids[:3], *one[1:]), (*one[:2], counts[:2], 0), (*one[:2], None, 0),
        (*one[:3], -1), (*one[:3], 1), (ids, None, counts, 0),
    ):  # fmt: skip
        for parts in ((part, one), (one, part)):
            with pytest.raises((TypeError, ValueError), match="fit|length|bytes-like"):
                compiled.cells_merge(1, *parts[0], *parts[1], 4, ids, found, counts)
    totals, table = np.zeros((50, 2), np.int32), np.empty(50)
    good = (totals, table, 0, 3, 3, np.arange(4), np.empty(4), np.ones((4, 2), np.int32))
    compiled.cells_add(*good)
    for place, wrong in (
        *((0, totals[:9]), (0, None), (0, np.zeros((50, 3), np.int32)), (1, table[:9])),
        *((3, 0), (3, 65), (3, 2), (4, -1), (4, 4), (5, None), (5, np.arange(3))),
        *((6, np.empty(3)), (7, None), (7, np.ones((4, 1), np.int32)), (7, np.ones((4, 2), int))),
    ):
        arguments = [wrong if k == place else each for k, each in enumerate(good)]
        with pytest.raises((TypeError, ValueError), match="fit|bytes-like"):
            compiled.cells_add(*arguments)
    for level, most in ((65, 4), (-1, 4), (1, 1)):
        with pytest.raises(ValueError, match="fit"):
            compiled.cells_merge(level, *one, *one, most, ids, found, counts)


def test_ids_in_no_order_never_write_out_of_bounds(compiled):
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, most = int(rng.integers(0, 60)), int(rng.integers(2, 30))
        level = int(rng.integers(0, 65))
        ids = rng.integers(-(2**63), 2**63 - 1, n)
        scores = np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n))
        counts = rng.integers(-5, 5, (n, 2)).astype(np.int32)
        room = int(rng.integers(0, most + 1))
        out = np.empty(room, np.int64), np.empty(room), np.empty((room, 2), np.int32)
        part = (ids, scores, counts, 0)
        try:
            at, size, _ = compiled.cells_merge(level, *part, *part, most, *out)
        except ValueError:
            continue
        assert 0 <= size <= room
        assert level <= at <= 64


def _segments(module, starts, scores, codes, most, levels=None):
    """Return levels and sizes, and the cells of all segments, ids where they are past level 0."""
    sizes, room = np.full(starts.size - 1, -7), scores.size
    levels = np.zeros(starts.size - 1, np.int64) if levels is None else levels.copy()
    ids, found = np.full(room, -7), np.full(room, -7.0)
    counts = np.full((room, 1 if codes is None else 2), -7, np.int32)
    total = module.segments_count(starts, scores, codes, most, levels, sizes, ids, found, counts)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    assert total == ends[-1]
    return ends, levels, ids[:total], found[:total], counts[:total]


def _bytes(ends, levels, ids, *cells):
    past = np.repeat(levels > 0, np.diff(ends))
    return [array.tobytes() for array in (ends, levels, ids[past], *cells)]


def _starts(rng, n, groups):
    return np.concatenate([[0], np.sort(rng.integers(0, n + 1, groups - 1)), [n]])


@pytest.mark.parametrize(("name", "most"), some(product(SCORES, [2, 30, 400]), every=4))
def test_segments_are_counted_and_merged_as_by_the_reference(compiled, name, most):
    rng = np.random.default_rng(most)
    for n, groups in ((0, 1), (50, 20), (3000, 7), (9000, 3)):
        sides, areas = [], []
        for classes in (1, 2):
            starts, scores = _starts(rng, n, groups), SCORES[name](rng, n)
            codes = rng.integers(0, 2, n).astype(np.uint8) if classes == 2 else None
            for levels in (None, rng.integers(0, 50, groups)):
                given = starts, scores, codes, most, levels
                mine, theirs = (_segments(module, *given) for module in (compiled, reference))
                assert _bytes(*mine) == _bytes(*theirs)
                sides.append(mine)
        for one, other in ((sides[0], sides[1]), (sides[2], sides[3]), (sides[2], sides[2])):
            merged = []
            for module in (compiled, reference):
                room = one[3].size + other[3].size
                levels, sizes = np.empty((2, groups), np.int64)
                ids, scores = np.full(room, -7), np.empty(room)
                counts = np.empty((room, one[4].shape[1]), np.int32)
                total = module.segments_merge(
                    *one, *other, most, levels, sizes, ids, scores, counts
                )
                ends = np.concatenate([[0], np.cumsum(sizes)])
                merged.append(_bytes(ends, levels, ids[:total], scores[:total], counts[:total]))
            assert merged[0] == merged[1]
        for module in (compiled, reference):
            found = np.empty((2, groups), np.int64)
            assert module.segments_area(*found, sides[3][0], *sides[3][3:]) == groups
            areas.append(found.tolist())
        assert areas[0] == areas[1]


def test_segments_of_few_rows_need_no_ids(compiled):
    rng = np.random.default_rng(0)
    starts, scores = _starts(rng, 90, 5), rng.random(90)
    for module in (compiled, reference):
        levels, sizes = np.zeros((2, 5), np.int64)
        found, counts = np.empty(90), np.empty((90, 1), np.int32)
        given = levels, sizes, None, found, counts
        assert module.segments_count(starts, scores, None, 90, *given) == 90
        merged = np.zeros((2, 5), np.int64)
        out = np.empty(180), np.empty((180, 1), np.int32)
        side = starts, levels, None, found, counts
        assert module.segments_merge(*side, *side, 90, *merged, None, *out) == 90
        with pytest.raises(ValueError, match="fit"):
            module.segments_count(starts, scores, None, 2, *given)
        with pytest.raises(ValueError, match="fit"):
            module.segments_merge(*side, *side, 2, *merged, None, *out)


@pytest.mark.parametrize("starts", [[0, 5, 3, 8], [-1, 3, 5, 8], [0, 3, 5, 9]])
def test_segments_out_of_range_are_refused(compiled, starts):
    scores, counts = np.arange(8.0), np.ones((8, 2), np.int32)
    starts, zeros = np.array(starts), np.zeros((2, 3), np.int64)
    out = np.empty(16, np.int64), np.empty(16), np.empty((16, 2), np.int32)
    side = starts, np.zeros(3, np.int64), None, scores, counts
    for module in (compiled, reference):
        with pytest.raises(ValueError, match="fit"):
            module.segments_count(starts, scores, np.zeros(8, np.uint8), 8, *zeros, *out)
        with pytest.raises(ValueError, match="fit"):
            module.segments_merge(*side, *side, 8, *zeros, *out)
        with pytest.raises(ValueError, match=r"fit|range"):
            module.segments_area(*zeros, starts, scores, counts)
    for levels in (-1, 65):
        given = np.array([0, 8]), scores, None, 8, np.array([levels]), np.zeros(1, np.int64)
        with pytest.raises(ValueError, match="fit"):
            compiled.segments_count(*given, out[0], out[1], np.empty((16, 1), np.int32))


def test_arguments_of_segments_are_checked(compiled):
    scores, codes, zeros = np.arange(8.0), np.zeros(8, np.uint8), np.zeros((2, 2), np.int64)
    out = np.empty(8, np.int64), np.empty(8), np.empty((8, 2), np.int32)
    starts, wide = np.array([0, 4, 8]), np.empty((8, 2), np.int64)
    for args in (
        (starts[:2], scores, codes, 8, *zeros, *out),
        (starts, scores, codes[:5], 8, *zeros, *out),
        (starts, scores, None, 8, *zeros, *out),
        (starts, scores, codes, 1, *zeros, *out),
        (starts, scores, codes, 8, *zeros, *out[:2], wide),
        (starts, scores, codes, 8, *zeros),
    ):
        with pytest.raises(ValueError, match=r"shapes|arguments|length"):
            compiled.segments_count(*args)
    side = starts, zeros[0], None, scores, out[2]
    for args in (
        (*side, starts[:2], zeros[0, :1], None, scores, out[2], 8, *zeros, *out),
        (*side, *side[:4], wide, 8, *zeros, *out),
        (*side, *side, 1, *zeros, *out),
        (*side, *side, 8, *zeros, *out[:2], np.empty((8, 1), np.int32)),
    ):
        with pytest.raises(ValueError, match="shapes"):
            compiled.segments_merge(*args)
