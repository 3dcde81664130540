"""Exact sums of every compiled variant against their definition, byte for byte."""

from __future__ import annotations

import threading
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from thinning import some

from streammetrics.core.kernels import reference

compiled = pytest.importorskip(
    "streammetrics.core.kernels._kernels", reason="no compiled kernels in this checkout"
)
LOW, WIDTH = -3328, 210  # holds products of any three float64
ENDS = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**53 + 2]


VARIANTS = compiled.variants()


@pytest.fixture(params=VARIANTS, autouse=True)
def variant(request):
    compiled.use(request.param)
    yield request.param
    compiled.use(VARIANTS[-1])


def each_in_turn():
    """Yield the definition, and each variant while it is in use."""
    yield reference
    for variant in VARIANTS:
        compiled.use(variant)
        yield compiled


def hostile(rng, n, reach):
    """Numbers whose exponents differ by up to 2 * reach, or of any bits, some at the ends."""
    if reach is None:
        column = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
        column[~np.isfinite(column)] = 1.0
    else:
        column = rng.normal(size=n) * np.exp2(rng.uniform(-reach, reach, n))
    return np.where(rng.random(n) < 0.05, rng.choice(ENDS, n), column)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 64, 1023, 1025, 3000])
@pytest.mark.parametrize("reach", [0, 1, 30, 300, None])
def test_sums(n, reach):
    rng = np.random.default_rng(n)
    x, y, w = (hostile(rng, n, reach) for _ in range(3))
    few, many = rng.integers(0, 9, n), rng.integers(0, 2**53, n)
    for columns in ((x,), (x, y), (x, y, w), (x, None, w), (x, x), (x, None, few), (x, y, many)):
        assert compiled.exact_sum(*columns) == reference.exact_sum(*columns)
    for powers in range(1, 8):
        assert compiled.exact_powers(x, powers) == reference.exact_powers(x, powers)
    for weight in (few, many, w):
        assert compiled.exact_powers(x, 127, weight) == reference.exact_powers(x, 127, weight)
    assert compiled.exact_extent(x) == reference.exact_extent(x)


def test_the_definition_is_the_sum_of_fractions():
    rng = np.random.default_rng(1)
    for reach in (0, 30, None):
        x, y, w = (hostile(rng, 40, reach) for _ in range(3))
        integer, unit = reference.exact_sum(x, y, w)
        rows = zip(x.tolist(), y.tolist(), w.tolist(), strict=True)
        exact = sum((Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in rows), Fraction(0))
        assert Fraction(integer) * Fraction(2) ** unit == exact


def by_group(kernels, size, *columns):
    """Return all that kernels make of rows: digits of sums, and sums rounded."""
    table = np.zeros((size * columns[-1], WIDTH), np.int64)
    rows = kernels.exact_add(table, WIDTH, LOW, *columns)
    first, last = kernels.exact_carry(table, WIDTH)
    digits = np.ascontiguousarray(table[:, first:last])
    if 0 < last < WIDTH:
        digits[:, -1] -= digits[:, -1] >> 31 << 32
    rounded = []
    for exponent in (LOW + 32 * first, -1074, -1500, 0, 900):
        out = np.full(len(digits), np.nan)
        kernels.exact_round(out, digits, exponent)
        rounded.append(out.tobytes())
    return rows, first, last, table.tobytes(), rounded


# The definition is slow, so that one test compares all variants with it.
@pytest.mark.parametrize("variant", VARIANTS[:1], ids=["each"], indirect=True)
@pytest.mark.parametrize(
    ("n", "columns", "groups", "reach"),
    some(product([0, 1, 64, 1500], [1, 3], [1, 5, 30, 400, 700], [3, 300, None]), every=4),
)
def test_sums_by_group(n, columns, groups, reach):
    rng = np.random.default_rng(n)
    x, y = (hostile(rng, n * columns, reach) for _ in range(2))
    w, group = hostile(rng, n, reach), rng.integers(0, groups, n)
    for others in product((None, y), (None, w), (group, np.sort(group), None)):
        size = 1 if others[2] is None else groups
        expected, *found = (by_group(each, size, x, *others, columns) for each in each_in_turn())
        assert expected[0] == n
        assert found == [expected] * len(VARIANTS)


@pytest.mark.parametrize(("n", "groups"), [*product([0, 64, 1500], [1, 30, 700])])
@pytest.mark.parametrize("reach", [3, 300, None])
def test_sums_and_sums_of_squares_by_group(n, groups, reach):
    rng = np.random.default_rng(n)
    x, group = hostile(rng, n, reach), rng.integers(0, groups, n)
    for index in (group, np.sort(group)):
        tables = [np.zeros((2, groups, WIDTH), np.int64) for _ in range(2)]
        for table, kernels in zip(tables, (compiled, reference), strict=True):
            given = [part for digits in table for part in (digits, WIDTH, LOW)]
            assert kernels.exact_add_squares(*given, x, index) == n
            for digits in table:
                reference.exact_carry(digits, WIDTH)
        assert tables[0].tobytes() == tables[1].tobytes()


def test_sums_of_squares_refuse_what_does_not_fit():
    table, x, group = np.zeros((3, 8), np.int64), np.array([1.0, 2.0, 4.0]), np.array([0, 1, 2])

    def added(kernels, x, group, low=-64):
        return kernels.exact_add_squares(table.copy(), 8, -64, table.copy(), 8, low, x, group)

    for kernels in (compiled, reference):
        assert added(kernels, x, group) == 3
        assert added(kernels, x, np.array([0, 3, 1])) == 1
        assert added(kernels, np.array([1.0, np.inf, 1.0]), group) == 1
        assert added(kernels, x, group, low=-32) == 0  # has bits down to 2**-52
    for args in (
        (table, 3, 0, table, 8, 0, x, group),
        (table, 8, 0, table[:2].copy(), 8, 0, x, group),
        (table, 8, 0, table, 8, 0, x, group[:2].copy()),
    ):
        with pytest.raises(ValueError, match=r"shapes|length"):
            compiled.exact_add_squares(*args)


@pytest.mark.parametrize("kernels", [compiled, reference])
def test_rows_that_do_not_fit_are_named(kernels):
    table = np.zeros((2, 8), np.int64)
    x = np.array([1.0, 2.0, 4.0])

    def added(x, low=-64, w=None, group=None):
        return kernels.exact_add(table.copy(), 8, low, x, None, w, group, 1)

    assert added(x) == 3
    assert added(x, group=np.array([0, 1, 2])) == 2
    assert added(x, group=np.array([0, -1, 0])) == 1
    assert added(np.array([1.0, 1e300, 1.0])) == 1
    assert added(np.array([1.0, 1.0, 1e-300])) == 2
    assert added(x, low=-32) == 0  # has bits down to 2**-52
    wide, w = np.zeros((1, 16), np.int64), np.array([1.0, np.inf, 1.0])
    assert kernels.exact_add(wide, 16, -160, x, None, w, None, 1) == 1
    for bad in (np.nan, np.inf, -np.inf):
        column = np.ones(3000)
        column[2047] = bad
        assert kernels.exact_sum(column) == 2047
        assert kernels.exact_sum(np.ones(3000), column) == 2047
        assert kernels.exact_powers(column, 3) == 2047
        assert kernels.exact_powers(np.ones(3000), 3, column) == 2047
        assert kernels.exact_extent(column) == 2047
    assert (
        kernels.exact_merge(table.copy(), 8, np.ones((3, 2), np.int64), 2, np.array([0, 1, 2]), 0)
        == 2
    )


@pytest.mark.parametrize("kernels", [compiled, reference])
@pytest.mark.parametrize("columns", [1, 3])
def test_rows_of_few_groups_that_do_not_fit_are_named(kernels, columns):
    """Such rows are folded a block at a time, up to the one that does not fit."""
    rng, n = np.random.default_rng(0), 3000
    x, w, group = np.ones(n * columns), np.ones(n), rng.integers(0, 4, n)
    for row in (0, 1023, 2047, 2999):
        for bad in (np.nan, np.inf, 1e300, 1e-300):
            changed = x.copy()
            changed[row * columns + columns - 1] = bad
            for others in ((None, None), (x, None), (None, w)):
                table = np.zeros((4 * columns, 12), np.int64)
                assert kernels.exact_add(table, 12, -224, changed, *others, group, columns) == row
            table = np.zeros((4 * columns, 12), np.int64)
            assert kernels.exact_add(table, 12, -224, x, changed, None, group, columns) == row
        for code in (-1, 4):
            changed = group.copy()
            changed[row] = code
            table = np.zeros((4 * columns, 12), np.int64)
            assert kernels.exact_add(table, 12, -224, x, None, w, changed, columns) == row


def test_arguments_are_checked_before_anything_is_written():
    x, table = np.ones(6), np.zeros((2, 8), np.int64)
    for call in (
        lambda: compiled.exact_sum(x, x[:3]),
        compiled.exact_sum,
        lambda: compiled.exact_add(table, 8, 0, x, x[:3], None, None, 1),
        lambda: compiled.exact_add(table, 8, 0, x, None, None, None, 4),
        lambda: compiled.exact_add(table, 3, 0, x, None, None, None, 1),
        lambda: compiled.exact_add(table, 9, 0, x, None, None, None, 1),
        lambda: compiled.exact_add(table, 8, 0, x, None, None, None, 0),
        lambda: compiled.exact_carry(table, 5),
        lambda: compiled.exact_carry(table, -8),
        lambda: compiled.exact_round(np.ones(3), table, 0),
        lambda: compiled.exact_round(np.ones(1), np.zeros(500, np.int64), 0),
        lambda: compiled.exact_merge(table, 8, table, 8, None, 1),
        lambda: compiled.exact_merge(table, 8, table, 8, np.zeros(3, np.int64), 0),
        lambda: compiled.exact_powers(x, 8),
        lambda: compiled.exact_powers(x, 128, x),
        lambda: compiled.exact_powers(x, 1, x[:3]),
    ):
        with pytest.raises(ValueError, match="shapes do not fit|differ in length|expected"):
            call()
    assert not table.any()
    unaligned = np.zeros(49, np.uint8)[1:].view(np.float64)
    readonly = table.copy()
    readonly.flags.writeable = False
    for call in (
        lambda: compiled.exact_sum(x.astype(np.float32)),
        lambda: compiled.exact_sum(x.astype(">f8")),
        lambda: compiled.exact_sum(x[::2]),
        lambda: compiled.exact_sum(unaligned),
        lambda: compiled.exact_sum(x.astype(np.int64)),
        lambda: compiled.exact_sum(x, None, x.astype(np.int32)),
        lambda: compiled.exact_powers(x, 1, x.astype(np.float32)),
        lambda: compiled.exact_carry(readonly, 8),
        lambda: compiled.exact_add(table, 8, 0, x, None, None, np.zeros(6, np.int32), 1),
    ):
        with pytest.raises(BufferError, match=r"expected|read-only|contiguous"):
            call()
    for nothing in (None, [1.0], "x"):
        with pytest.raises(TypeError, match="buffer|bytes-like"):
            compiled.exact_sum(nothing)


def test_a_column_that_changes_while_it_is_read_harms_nobody():
    """Sums of such rows are of no use, but nothing is read or written out of bounds."""
    x, group, stop = np.ones(200_000), np.zeros(200_000, np.int64), threading.Event()

    def change():
        while not stop.is_set():
            group[:] = 10**12
            x[:] = np.inf
            group[:] = 0
            x[:] = 1.0

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            table = np.zeros((1, 8), np.int64)
            assert 0 <= compiled.exact_add(table, 8, -64, x, None, None, group, 1) <= x.size
            found = compiled.exact_sum(x)
            assert isinstance(found, int) or found == (x.size, 0)
    finally:
        stop.set()
        thread.join()


def test_variants():
    assert compiled.variants()[0] == "baseline"
    with pytest.raises(ValueError, match="no such variant"):
        compiled.use("avx9")
