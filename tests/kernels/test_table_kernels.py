"""Counts, orders, inversions and tables of keys: every variant against the definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics.core.kernels import reference
from streammetrics.core.kernels.active import active

INTEGERS = "bBhHiIqQ?"


@pytest.fixture(params=["reference", *getattr(active, "variants", tuple)()])
def kernel(request: pytest.FixtureRequest) -> Any:
    """Return the kernels of one variant."""
    if request.param == "reference":
        yield reference
        return
    active.use(request.param)
    yield active
    active.use(active.variants()[-1])


def _refuses(kernel: Any) -> type[Exception] | tuple[type[Exception], ...]:
    return (ValueError, TypeError, BufferError)


@pytest.mark.parametrize("char", INTEGERS)
@pytest.mark.parametrize("n", [0, 1, 7, 1023, 1024, 5000])
def test_counts_of_every_type(kernel: Any, char: str, n: int) -> None:
    rng = np.random.default_rng(n)
    size = 2 if char == "?" else 100
    a, b = (rng.integers(0, size, n).astype(char) for _ in range(2))
    group = rng.integers(0, 7, n, dtype=np.uint8)
    for columns in ((a, size), (a, size, b, size), (group, 7, a, size, b, size)):
        shape = tuple(columns[1::2])
        found = np.full(shape, 5, np.int64)
        assert kernel.count(found, *columns) == n
        expected = np.full(shape, 5, np.int64)
        codes = tuple(c.astype(np.intp) for c in columns[::2])
        np.add.at(expected, codes, 1)
        assert np.array_equal(found, expected)
        times = rng.integers(0, 2**40, n)
        assert kernel.count(found, *columns, times) == n
        np.add.at(expected, codes, times)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("char", "bhiqBHIQ")
def test_codes_out_of_range_are_named(kernel: Any, char: str) -> None:
    limits = np.iinfo(char)
    for row in (0, 1000, 1024, 2999):
        for value in {int(limits.max), int(limits.min), 3, max(int(limits.min), -1)} - {0}:
            codes = np.zeros(3000, char)
            codes[row] = value
            codes[row + 1 :] = 2
            counts = np.zeros(3, np.int64)
            assert kernel.count(counts, codes, 3) == row
            assert kernel.group_rows(np.empty(4, np.int64), codes) == row


def test_counts_refuse_shapes(kernel: Any) -> None:
    codes = np.zeros(4, np.int64)
    for args in (
        (np.zeros(3, np.int64), codes, 4),
        (np.zeros(4, np.int64), codes, 2),
        (np.zeros(4, np.int64), codes, -4),
        (np.zeros(4, np.int64), codes, 2, codes[:3].copy(), 2),
        (np.zeros(4, np.int64),),
        (np.zeros(4, np.int64), codes, 4, codes[:3]),
        (np.zeros(1, np.int64), *(codes, 1) * 5),
    ):
        with pytest.raises(_refuses(kernel)):
            kernel.count(*args)


def test_counts_of_no_codes(kernel: Any) -> None:
    none = np.empty(0, np.int64)
    assert kernel.count(none, none, 0) == 0
    assert kernel.count(none, np.zeros(2, np.int64), 0) == 0  # row 0 is out of range


@pytest.mark.parametrize("size", [1, 2, 3, 4, 1024, 1025, 70000])
def test_counts_of_every_size(kernel: Any, size: int) -> None:
    codes = np.random.default_rng(size).integers(0, size, 20_000)
    counts = np.zeros(size, np.int64)
    assert kernel.count(counts, codes, size) == codes.size
    assert np.array_equal(counts, np.bincount(codes, minlength=size))


def test_counts_above_a_threshold(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 3000, dtype=np.uint8)
    group = rng.integers(0, 5, 3000, dtype=np.int16)
    score = rng.choice([0.5, np.nextafter(0.5, 0), -0.0, 5e-324, math.inf, -math.inf], 3000)
    for threshold in (0.5, 0.0, math.inf, math.nan, -math.inf):
        above = (score >= threshold).astype(np.intp)
        found, expected = np.zeros((5, 2, 2), np.int64), np.zeros((5, 2, 2), np.int64)
        assert kernel.count_above(found, score, threshold, group, 5, truth, 2) == 3000
        np.add.at(expected, (group, truth, above), 1)
        assert np.array_equal(found, expected)
        four = np.zeros(4, np.int64)
        assert kernel.count_above(four, score, threshold, truth, 2) == 3000
        assert np.array_equal(four.reshape(2, 2), expected.sum(axis=0))
        assert kernel.count_above(four, score, threshold, truth, 2, np.full(3000, 7)) == 3000
        assert np.array_equal(four.reshape(2, 2), 8 * expected.sum(axis=0))
    score[2500] = math.nan
    assert kernel.count_above(four, score, 0.5, truth, 2) == 2500


@pytest.mark.parametrize("char", [*INTEGERS, "f", "d"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_extent(kernel: Any, char: str, n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(0, 256, n * np.dtype(char).itemsize, dtype=np.uint8)
    values = (values & 1 if char == "?" else values).view(char)
    if values.dtype.kind == "f":
        values[np.isnan(values)] = -math.inf
    low, high = kernel.extent(values)
    assert (low, high) == (values.min(), values.max())
    if values.dtype.kind == "f":
        for row in {0, n // 2, n - 1}:
            other = values.copy()
            other[row] = math.nan
            assert all(map(math.isnan, kernel.extent(other)))


def test_extent_of_nothing(kernel: Any) -> None:
    assert kernel.extent(np.empty(0)) == (math.inf, -math.inf)


@pytest.mark.parametrize("char", INTEGERS)
def test_bits(kernel: Any, char: str) -> None:
    for n in (0, 1, 1024, 3000):
        values = np.random.default_rng(n).integers(0, 2, n).astype(char)
        out = np.full(n, 7, np.uint8)
        assert kernel.bits(out, values) == int(values.sum())
        assert np.array_equal(out, values.astype(np.uint8))
        if n and char != "?":
            for wrong in (2, np.iinfo(char).max, np.iinfo(char).min):
                values[-1] = wrong
                assert kernel.bits(out, values) == (-1 if wrong else int(values.sum()))


@pytest.mark.parametrize("groups", [1, 2, 2048, 2049, 1 << 20, 1 << 23])
def test_rows_in_order_of_their_groups(kernel: Any, groups: int) -> None:
    for n in (0, 1, 4097):
        codes = np.random.default_rng(n).integers(0, groups, n, dtype=np.int32)
        order, starts = np.empty(n, np.int64), np.empty(groups + 1, np.int64)
        assert kernel.group_rows(starts, codes, np.arange(n), order) == n
        assert np.array_equal(order, np.argsort(codes, kind="stable"))
        assert np.array_equal(starts, np.searchsorted(codes[order], np.arange(groups + 1)))


@pytest.mark.parametrize("groups", [1, 3, 2049])
def test_rows_are_moved_to_their_groups(kernel: Any, groups: int) -> None:
    rng = np.random.default_rng(groups)
    for n in (0, 1, 5000):
        codes, wide = rng.integers(0, groups, n, dtype=np.int16), rng.random((n, 3))
        bits = np.empty(8 * n + 1, np.uint8)[1:].view(np.float64)  # not aligned
        bits[:] = wide[:, 0]
        columns = [codes, wide, wide[:, 0].astype(np.float32), codes.astype(np.uint8), bits]
        moved = [np.empty_like(column) for column in columns]
        starts, order = np.empty(groups + 1, np.int64), np.argsort(codes, kind="stable")
        pairs = [array for pair in zip(columns, moved, strict=True) for array in pair]
        assert kernel.group_rows(starts, codes, *pairs) == n
        assert np.array_equal(starts, np.searchsorted(codes[order], np.arange(groups + 1)))
        for column, found in zip(columns, moved, strict=True):
            assert np.array_equal(found, column[order])
        if n > 1:
            codes[n // 2] = groups
            assert kernel.group_rows(starts, codes, *pairs) == n // 2
            with pytest.raises(_refuses(kernel)):
                kernel.group_rows(starts, codes, wide[:-1], wide[:-1].copy())


def test_orders_refuse_shapes(kernel: Any) -> None:
    codes, order = np.zeros(4, np.int64), np.empty(4, np.int64)
    with pytest.raises(_refuses(kernel)):
        kernel.group_rows(np.empty(2, np.int64), codes, order, order[:3])
    with pytest.raises(_refuses(kernel)):
        kernel.group_rows(np.empty(0, np.int64), codes, order, order.copy())


def _brute(ranks: Any, first: Any, second: Any) -> int:
    total = 0
    for j in range(len(ranks)):
        above = ranks[:j] > ranks[j]
        total += sum(first[:j][above].tolist()) * int(second[j])
    return total


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 33, 300])
@pytest.mark.parametrize("most", [1, 3, 1 << 30])
def test_inversions_against_all_pairs(kernel: Any, n: int, most: int) -> None:
    rng = np.random.default_rng(n)
    ranks = rng.integers(-most, most, n, dtype=np.int32)
    ones = np.ones(n, np.int64)
    assert kernel.inversions(ranks) == _brute(ranks, ones, ones)
    first, second = rng.integers(0, (1 << 60) // max(n, 1), (2, n))
    assert kernel.inversions(ranks, first, second) == _brute(ranks, first, second)


def test_inversions_beyond_64_bits(kernel: Any) -> None:
    ranks = np.arange(3, dtype=np.int32)[::-1].copy()
    many = np.array([1 << 60, (1 << 60) - 1, 1 << 60])
    expected = many[0] * 1.0 * many[1] > 2**64
    assert expected
    a, b, c = many.tolist()
    assert kernel.inversions(ranks, many, many) == a * b + a * c + b * c


def test_inversions_refuse_counts(kernel: Any) -> None:
    ranks, fine = np.zeros(2, np.int32), np.ones(2, np.int64)
    for wrong in ([-1, 1], [1 << 61, 1 << 61], [(1 << 63) - 1, 0]):
        for pair in ((np.array(wrong), fine), (fine, np.array(wrong))):
            with pytest.raises(ValueError, match="counts are negative"):
                kernel.inversions(ranks, *pair)
    with pytest.raises(ValueError, match="differ in length"):
        kernel.inversions(ranks, fine[:1].copy(), fine)


@pytest.mark.parametrize("n", [50_000, pytest.param(300_001, marks=pytest.mark.long)])
def test_inversions_of_a_large_permutation(kernel: Any, n: int) -> None:
    """Two threads share the larger one."""
    ranks = np.random.default_rng(5).permutation(n).astype(np.int32)
    ones = np.ones(ranks.size, np.int64)
    found = kernel.inversions(ranks)
    assert found == kernel.inversions(ranks, ones, ones)
    assert kernel.inversions(ranks[::-1].copy()) == math.comb(ranks.size, 2) - found


def _numbered(kernel: Any, keys: Any, width: int) -> tuple[list[int], list[bytes], list[int]]:
    """Number keys in a table that grows."""
    n = keys.size * keys.itemsize // width
    raw = keys.reshape(-1).view(np.uint8).reshape(n, width)
    slots, stored = np.zeros(8, np.uint32), np.zeros((4, width), np.uint8)
    codes, firsts, used, at = np.full(n, -9), np.full(4, -9), 0, 0
    while True:
        new = np.full(len(stored), -9)
        done, used_now = kernel.factorize(
            slots, stored, width, used, raw[at:], codes[at:], True, new
        )
        grown = np.flatnonzero(new >= 0)
        assert np.array_equal(grown, np.arange(used, used_now))
        firsts[grown] = new[grown] + at
        used, at = used_now, at + done
        if at == n:
            break
        slots = np.zeros(2 * slots.size, np.uint32)
        stored = np.concatenate([stored, np.zeros_like(stored)])
        firsts = np.concatenate([firsts, np.full_like(firsts, -9)])
        kernel.table_put(slots, stored, width, 0, used)
    found = np.empty(n, np.int64)
    assert kernel.factorize(slots, stored, width, used, raw, found, False, None) == (n, used)
    assert np.array_equal(found, codes)
    other = np.full((3, width), 255, np.uint8)
    found = np.empty(3, np.int64)
    kernel.factorize(slots, stored, width, used, other, found, False, None)
    assert found.tolist() == [-1] * 3
    return codes.tolist(), [row.tobytes() for row in stored[:used]], firsts[:used].tolist()


@pytest.mark.parametrize("width", [1, 4, 7, 8, 12, 16, 40])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 3000])
def test_keys_are_numbered_as_they_come(kernel: Any, width: int, n: int) -> None:
    rng = np.random.default_rng(n)
    some = rng.integers(0, 255, (max(n // 3, 1), width), dtype=np.uint8)
    keys = some[rng.integers(0, len(some), n)]
    codes, stored, firsts = _numbered(kernel, keys, width)
    numbers: dict[bytes, int] = {}
    assert codes == [numbers.setdefault(row.tobytes(), len(numbers)) for row in keys]
    assert stored == list(numbers)
    assert firsts == [codes.index(k) for k in range(len(numbers))]


def test_words_that_look_alike(kernel: Any) -> None:
    for words in [np.arange(4000) << shift for shift in (0, 20, 40, 52)]:
        assert _numbered(kernel, words.astype(np.uint64), 8)[0] == list(range(4000))


def test_keys_are_forgotten_and_moved(kernel: Any) -> None:
    rng = np.random.default_rng(3)
    stored = rng.permutation(4000).astype(np.uint64)
    slots, used = np.zeros(4096, np.uint32), 3000
    kernel.table_put(slots, stored, 8, 0, used)
    alive = {int(key): number for number, key in enumerate(stored[:used])}
    for _ in range(20):
        gone = np.sort(rng.choice(used, 100, replace=False))
        left = used - gone.size
        last = np.setdiff1d(np.arange(left, used), gone)
        kernel.table_move(slots, stored, 8, used, gone, None)
        kernel.table_move(slots, stored, 8, used, last, gone[: last.size].copy())
        for number in gone.tolist():
            del alive[int(stored[number])]
        stored[gone[: last.size]] = stored[last]
        used = left
        alive = {int(key): number for number, key in enumerate(stored[:used])}
        keys, codes = np.arange(4000, dtype=np.uint64), np.empty(4000, np.int64)
        kernel.factorize(slots, stored, 8, used, keys, codes, False, None)
        assert codes.tolist() == [alive.get(key, -1) for key in range(4000)]


TEXTS = ["", "a", "question-17", "\x7f\x80", "Zoë", "日本", "\ud800", "😀" * 9, "a\0b", "x" * 40]


@pytest.mark.parametrize("start", [0, -1, 12345678901234567])
def test_texts_have_one_hash_in_arrays_and_lists(kernel: Any, start: int) -> None:
    factors = np.random.default_rng(0).integers(-(2**63), 2**63, 256)
    texts, mask = TEXTS * 700, (1 << 64) - 1
    letters, found, listed = np.array(texts), *np.zeros((2, len(texts)), np.int64)
    width = letters.itemsize // 4
    assert kernel.hash_texts(found, letters.view(np.int32), factors[:width], start) == len(texts)
    assert kernel.hash_texts(listed, texts, factors, start) == len(texts)
    assert np.array_equal(found, listed)

    def mixed(bits: int) -> int:
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & mask
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
        return bits ^ bits >> 31

    for text, value in zip(TEXTS, found.tolist(), strict=False):
        pairs = zip(text, factors.tolist(), strict=False)
        assert mixed(start + sum(mixed(ord(c)) * f for c, f in pairs) & mask) == value & mask


@pytest.mark.parametrize("bad", [None, 3, np.str_("a"), b"a", "ends\0", "long" * 65, float("nan")])
def test_lists_are_hashed_up_to_what_is_no_short_string(kernel: Any, bad: Any) -> None:
    factors, hashes = np.arange(300), np.full(5, 7)
    for row in range(5):
        texts = ["a", "b", "c", "d", "e"]
        texts[row] = bad
        assert kernel.hash_texts(hashes, texts, factors, 1) == row
    assert kernel.hash_texts(hashes, ["abc"] * 5, factors[:2], 1) == 0
    with pytest.raises(_refuses(kernel)):
        kernel.hash_texts(hashes, ["a"] * 4, factors, 1)
    with pytest.raises(_refuses(kernel)):
        kernel.hash_texts(hashes, np.zeros(4, np.int32), np.arange(1), 1)


def test_tables_refuse_what_does_not_fit(kernel: Any) -> None:
    keys, codes = np.arange(4, dtype=np.uint64), np.empty(4, np.int64)
    stored = np.zeros(4, np.uint64)
    for slots, width, used in ((7, 8, 0), (8, 8, 5), (8, 8, -1)):
        with pytest.raises(_refuses(kernel)):
            kernel.factorize(
                np.zeros(slots, np.uint32), stored, width, used, keys, codes, False, None
            )
    with pytest.raises(_refuses(kernel)):
        kernel.table_move(np.zeros(8, np.uint32), stored, 8, 0, np.zeros(1, np.int64), None)


@pytest.mark.skipif(active is reference, reason="nothing is compiled")
def test_forged_slots_reach_nothing() -> None:
    rng = np.random.default_rng(7)
    keys, codes = np.arange(2000, dtype=np.uint64), np.empty(2000, np.int64)
    for _ in range(200):
        slots = rng.integers(0, 1 << 32, 64, dtype=np.uint32)
        stored, numbers = np.zeros(20, np.uint64), np.arange(10)
        active.factorize(slots, stored, 8, 10, keys, codes, True, np.empty(20, np.int64))
        for others in (None, np.array([1 << 40] * 10), -numbers):
            try:
                active.table_move(slots, stored, 8, 10, numbers - 3, others)
                active.table_put(slots, stored, 8, 0, 20)
            except ValueError:
                continue


@pytest.mark.skipif(active is reference, reason="nothing is compiled")
def test_arrays_of_other_forms_are_refused() -> None:
    counts = np.zeros(3, np.int64)
    codes = np.zeros(16, np.int64)
    for wrong in (codes[::2], np.zeros(3), np.zeros(3, "M8[s]"), np.zeros(3, ">i8"), [0]):
        with pytest.raises((BufferError, TypeError, ValueError)):
            active.count(counts, wrong, 3)
    misaligned = np.zeros(17, np.uint8)[1:].view(np.int64)
    with pytest.raises(BufferError, match="aligned"):
        active.count(counts, misaligned, 3)
    frozen = np.zeros(3, np.int64)
    frozen.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        active.count(frozen, codes, 3)


def test_no_rows_of_no_groups_are_ordered(kernel: Any) -> None:
    starts = np.ones(1, np.int64)
    nothing = np.empty(0, np.int64)
    assert kernel.group_rows(starts, nothing) == 0
    assert starts.tolist() == [0]
