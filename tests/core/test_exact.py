"""ExactSum against fractions.Fraction, with values chosen to break sums."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streammetrics.core.arithmetic.exact import LARGEST, SQUARED, ExactSum, nearest_scaled
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.kernels import kernels

HOSTILE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
    st.integers(-3, 3).map(float),
    st.sampled_from([5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, -0.0, 1e16, -1e16]),
    st.sampled_from([2.0**k for k in range(-1074, 1024, 97)]),
)
WEIGHT = HOSTILE.map(abs)


def columns(k, elements=HOSTILE):
    """Lists of k columns of equal length."""
    rows = st.lists(st.tuples(*[elements] * k), max_size=12)
    return rows.map(lambda r: np.array(r, float).reshape(len(r), k))


def exact(values):
    return [Fraction(v) for v in np.asarray(values, float).tolist()]


def dot(*factors):
    sums = defaultdict(int)  # by the denominators, which are few
    for row in zip(*(np.asarray(factor, float).tolist() for factor in factors), strict=True):
        tops, bottoms = zip(*map(float.as_integer_ratio, row), strict=True)
        sums[math.prod(bottoms)] += math.prod(tops)
    return sum((Fraction(top, bottom) for bottom, top in sums.items()), Fraction(0))


def nearest(value):
    """The correctly rounded float of a fraction: Python divides integers correctly."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def fractions(total):
    integers, exponent = total.integers()
    return [Fraction(n) * Fraction(2) ** exponent for n in np.ravel(integers).tolist()]


def same_bytes(a, b):
    left, right = a.arrays(), b.arrays()
    return a.shape == b.shape and all(
        left[k].shape == right[k].shape and left[k].tobytes() == right[k].tobytes() for k in left
    )


def check(total, expected):
    """The value, its rounding, and the way back from its arrays."""
    assert fractions(total) == expected
    floats = np.atleast_1d(total.to_float()).ravel().tolist()
    assert floats == [nearest(v) for v in expected]
    assert same_bytes(ExactSum.from_arrays(total.shape, total.arrays()), total)


@given(columns(2))
def test_sums(x):
    check(ExactSum.of(x[:, 0]), [dot(x[:, 0])])
    check(ExactSum.of(x), [dot(x[:, 0]), dot(x[:, 1])])


@given(columns(2), st.data())
def test_weighted_sums(x, data):
    w = data.draw(hnp.arrays(float, len(x), elements=WEIGHT))
    check(ExactSum.of(x[:, 0], w), [dot(x[:, 0], w)])
    check(ExactSum.of(x, w), [dot(x[:, 0], w), dot(x[:, 1], w)])


@given(columns(4), st.data())
def test_products(x, data):
    w = data.draw(hnp.arrays(float, len(x), elements=WEIGHT))
    a, b, c, d = x.T
    check(ExactSum.product(a, b), [dot(a, b)])
    check(ExactSum.product(a, a), [dot(a, a)])
    check(ExactSum.product(a, b, w), [dot(a, b, w)])
    check(ExactSum.product(x[:, :2], x[:, 2:]), [dot(a, c), dot(b, d)])
    check(ExactSum.product(x[:, :2], x[:, 2:], w), [dot(a, c, w), dot(b, d, w)])


@given(columns(3), st.booleans(), st.booleans(), st.data())
def test_moments(x, weighted, wide, data):
    w = data.draw(hnp.arrays(float, len(x), elements=WEIGHT)) if weighted else np.ones(len(x))
    cols = [c[:, None] if wide else c for c in x.T]
    first, second = ExactSum.moments(cols, w if weighted else None)
    for i in range(3):
        check(first[i], [dot(x[:, i], w)])
        for j in range(i, 3):
            check(second[i, j], [dot(x[:, i], x[:, j], w)])
    assert len(second) == 6


@given(columns(2), st.data())
def test_sums_with_weights_and_with_their_squares(x, data):
    w = data.draw(hnp.arrays(float, len(x), elements=WEIGHT))
    for column in [*x.T, np.ones(len(x))]:
        check(ExactSum.of(column, w), [dot(column, w)])
        check(ExactSum.product(column, w, w), [dot(column, w, w)])


@pytest.mark.parametrize("n", [1, 2000, 20_000])
@pytest.mark.parametrize("shape", [(), (1,), (3, 7), (10_000,)])
def test_sums_of_weights_with_masks_are_those_with_ones_and_zeros(n, shape):
    rng = np.random.default_rng(n)
    if len(shape) == 1:
        n = min(n, 200_000 // shape[0])
    masks = rng.random((n, *shape)) < 0.3
    for weight in (rng.exponential(size=n), 10.0 ** rng.uniform(-300, 300, n), np.ones(n)):
        found = ExactSum.of(masks, weight)
        assert same_bytes(found, ExactSum.of(masks.astype(float), weight))


def test_sums_of_many_rows_are_those_of_their_parts():
    rng = np.random.default_rng(4)
    sums = ExactSum.grouped(rng.integers(0, 1998, 9000), 1998, rng.standard_normal(9000))
    table = sums.reshaped((999, 2))
    parts = [table[np.arange(start, min(start + 50, 999))].sum(0) for start in range(0, 999, 50)]
    assert same_bytes(table.sum(0), parts[0].plus_all(parts[1:]))


@given(columns(2), st.data())
def test_groups(x, data):
    values, w = x[:, 0], np.abs(x[:, 1])
    index = data.draw(hnp.arrays(np.intp, len(x), elements=st.integers(0, 3)))
    plain, weighted = ExactSum.grouped(index, 4, values), ExactSum.grouped(index, 4, values, w)
    check(plain, [dot(values[index == g]) for g in range(4)])
    check(weighted, [dot(values[index == g], w[index == g]) for g in range(4)])


def test_groups_of_long_and_short_values():
    rng = np.random.default_rng(8)
    index, x = rng.integers(0, 3, 40_000), rng.standard_normal(40_000)
    x *= 2.0 ** rng.integers(-40, 40, x.size)
    x[:20_000] = -(2.0**42 - 1)
    check(ExactSum.grouped(index, 3, x), [dot(x[index == g]) for g in range(3)])


def test_rows_gathered_are_those_regrouped():
    rng = np.random.default_rng(9)
    parts = []
    for rows in (500, 300):
        group, values = rng.integers(0, 2 * rows, 3000), rng.standard_normal(3000) * 2.0**40
        sums = ExactSum.grouped(group, 2 * rows, values)
        assert (sums.nbytes > 0) == bool(sums.digits.size)
        index = np.sort(np.where(np.arange(rows) < rows // 2, 7, rng.integers(0, 90, rows)))
        parts.append((index, sums.reshaped((rows, 2))))
    tables, low = ExactSum.aligned([sums for _, sums in parts])
    every = ExactSum.of_digits(np.concatenate(tables), low)
    found = every.regroup(np.concatenate([index for index, _ in parts]), 90)
    slow = [sums.regroup(index, 90) for index, sums in parts]
    assert same_bytes(found, slow[0] + slow[1])


@pytest.mark.parametrize("exponent", [0, -64, -1056, -1088, -1120, 800, 896, 992])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 6])
def test_rounding_of_any_digits(exponent, width):
    rng = np.random.default_rng(width)
    table = rng.choice([0, 0, 1, 1 << 31, (1 << 32) - 1, 0x80000100], (300, width))
    table[::2] = rng.integers(0, 1 << 32, table[::2].shape) >> rng.integers(0, 32)
    table[:, -1] >>= 1
    table[::3, -1] -= 1 << 31
    for rows in (table, np.abs(table)):
        found = np.empty(len(rows))
        kernels.exact_round(found, rows, exponent)
        exact = [sum(int(x) << 32 * k for k, x in enumerate(row)) for row in rows]
        assert found.tolist() == [nearest_scaled(value, exponent) for value in exact]


@given(hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, min_side=0)))
def test_counts(integers):
    total = ExactSum.counts(integers)
    assert total.shape == integers.shape
    check(total, integers.ravel().tolist())


@given(columns(2), st.data())
def test_any_split_and_order_gives_the_same_bytes(x, data):
    index = np.arange(len(x)) % 3
    makers = [
        lambda r: ExactSum.of(x[r, 0]),
        lambda r: ExactSum.of(x[r], np.abs(x[r, 0])),
        lambda r: ExactSum.product(x[r, 0], x[r, 1]),
        lambda r: ExactSum.grouped(index[r], 3, x[r, 0]),
    ]
    order = np.array(data.draw(st.permutations(range(len(x)))), int)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(x)), max_size=4)))
    for maker in makers:
        whole = maker(np.arange(len(x)))
        parts = [maker(order[a:b]) for a, b in pairwise([0, *cuts, len(x)])]
        while len(parts) > 1:
            at = data.draw(st.integers(0, len(parts) - 2))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        assert same_bytes(parts[0], whole)


@given(columns(3))
def test_group_laws(x):
    for make in (ExactSum.of, lambda c: ExactSum.of(np.stack([c, -c], axis=1))):
        a, b, c = (make(col) for col in x.T)
        zero = ExactSum.zero(a.shape)
        assert same_bytes(a + b, b + a)
        assert same_bytes((a + b) + c, a + (b + c))
        assert same_bytes(a + zero, a)
        assert same_bytes(a + b - b, a)
        assert same_bytes(a + -a, zero)
        assert a == a + zero
        assert (a == b) == same_bytes(a, b)


def test_large_blocks():
    rng = np.random.default_rng(5)
    x = rng.standard_normal(70_001) * 2.0 ** rng.integers(-30, 30, 70_001)
    y, w = rng.standard_normal((2, len(x)))
    check(ExactSum.of(x), [dot(x)])
    check(ExactSum.of(x, w), [dot(x, w)])
    check(ExactSum.product(x, y, w), [dot(x, y, w)])
    check(ExactSum.of(x[:70_000].reshape(-1, 7)), [dot(x[k:70_000:7]) for k in range(7)])
    many = rng.integers(0, 40_000, len(x))
    grouped = ExactSum.grouped(many, 40_000, x)
    assert same_bytes(grouped.sum(), ExactSum.of(x))
    assert grouped[int(many[0])].fraction() == dot(x[many == many[0]])


@pytest.mark.parametrize("sign", [1, -1])
def test_columns_with_zeros_and_of_one_sign(sign):
    rng = np.random.default_rng(6)
    x = sign * np.abs(rng.standard_normal(40_000)) * 2.0 ** rng.integers(-60, 60, 40_000)
    x[rng.random(len(x)) < 0.3] = 0.0
    check(ExactSum.of(x), [dot(x)])
    check(ExactSum.of_terms(np.multiply, [x, np.full(len(x), -2.0)]), [-2 * dot(x)])
    check(ExactSum.product(x, x), [dot(x, x)])


@pytest.mark.parametrize(
    "unit", [pytest.param(2.0**e, marks=pytest.mark.long) for e in (-47, -3, 0, 31, 39)]
)
def test_short_weights_are_as_exact_as_long_ones(unit):
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, 40_000)) * 2.0 ** rng.integers(-300, 450, 40_000)
    for w in (rng.integers(0, 257, len(x)) * unit, np.full(len(x), 255 * unit)):
        check(ExactSum.of(x, w), [dot(x, w)])
        check(ExactSum.product(x, y, w), [dot(x, y, w)])
        first, second = ExactSum.moments([x], w)
        check(first[0], [dot(x, w)])
        check(second[0, 0], [dot(x, x, w)])
    top = np.full(2**15, np.nextafter(1.0, 0.0))
    assert ExactSum.product(top, top, top * 0 + 255 * unit).fraction() == (
        2**15 * Fraction(top[0]) ** 2 * 255 * Fraction(unit)
    )


def test_the_largest_folds_fill_the_block():
    # All rows at the top of their binade: every fold and every sum is as large as it can be.
    x = np.full(2**16, np.nextafter(1.0, 0.0))
    assert ExactSum.of(x).fraction() == 2**16 * Fraction(x[0])
    assert ExactSum.product(x, x).fraction() == 2**16 * Fraction(x[0]) ** 2
    assert ExactSum.product(x, -x, x).fraction() == -(2**16) * Fraction(x[0]) ** 3


def test_any_layout_and_dtype():
    x = np.random.default_rng(1).standard_normal(50_000).astype(np.float32)
    total = ExactSum.of(x)
    for other in (x.astype(float), x.astype(">f8"), np.repeat(x, 2)[::2], x[::-1]):
        assert same_bytes(ExactSum.of(other), total)
    wide = np.asfortranarray(x.reshape(-1, 5).astype(float))
    assert same_bytes(ExactSum.of(wide), ExactSum.of(x.reshape(-1, 5)))
    assert same_bytes(ExactSum.of(x.reshape(-1, 5, 2)).sum(), total)
    assert ExactSum.of(np.array([True, True, False])).to_float() == 2.0


def test_inputs_are_left_alone():
    x = np.array([1e300, 1e-300, 5e-324, 0.0, -3.0])
    w = np.array([1e-300, 1e300, 1.0, 0.0, 2.0])
    for array in (x, w):
        array.flags.writeable = False
    before = ExactSum.of(x)
    ExactSum.moments([x, x], w)
    assert before == ExactSum.of(x)
    with pytest.raises(ValueError, match="read-only"):
        before.digits[0, 0] = 1


def test_cancellation_and_overflow():
    assert ExactSum.of(np.array([1e308, 1e308, -1e308])).to_float() == 1e308
    assert ExactSum.of(np.array([1e16, 1.0, -1e16])).to_float() == 1.0
    assert ExactSum.of(np.array([1e308, 1e308])).to_float() == math.inf
    assert ExactSum.of(np.array([[-1e308, 1.0]] * 2)).to_float().tolist() == [-math.inf, 2.0]
    zero = ExactSum.of(np.array([-0.0, 5e-324, -5e-324]))
    assert math.copysign(1.0, zero.to_float()) == 1.0
    assert same_bytes(zero, ExactSum.zero())


def from_integers(integers, exponent):
    """Sums of any integers in units of 2**exponent, a multiple of 32, built digit by digit."""
    width = max(n.bit_length() for n in integers) // 32 + 2
    table = [[n >> 32 * k & 0xFFFFFFFF for k in range(width)] + [-(n < 0)] for n in integers]
    return ExactSum.of_digits(np.array(table, np.int64), exponent)


@given(st.lists(st.tuples(HOSTILE, st.sampled_from([-1, 0, 1])), min_size=1, max_size=5))
def test_rounding_halfway_between_two_doubles(cases):
    values = []
    for low, nudge in cases:
        high = math.nextafter(low, math.inf)
        # Beyond the largest double, the middle of the step is where infinity begins.
        step = Fraction(2) ** 971 if math.isinf(high) else Fraction(high) - Fraction(low)
        values.append(Fraction(low) + step / 2 + nudge * Fraction(2) ** -1600)
    table = from_integers([int(v * 2**1600) for v in values], -1600)
    check(table, values)
    for position, value in enumerate(values):
        check(table[position], [value])


def test_indexing_sums_and_regrouping():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 3, 4)) * 1e10
    total = ExactSum.of(x)
    assert same_bytes(total.sum(axis=0), ExactSum.of(x.reshape(-1, 4)))
    assert same_bytes(total.sum(axis=-1), ExactSum.of(x.transpose(0, 2, 1).reshape(-1, 3)))
    assert same_bytes(total.sum(), ExactSum.of(x.ravel()))
    assert same_bytes(total.sum(axis=(0, 1)), total.sum())
    assert same_bytes(total[1], ExactSum.of(x[:, 1]))
    assert same_bytes(total[[2, 0, 0]], ExactSum.of(x[:, [2, 0, 0]]))
    assert same_bytes(total[[0, 1, 2], [0, 1, 2]], ExactSum.of(x[:, [0, 1, 2], [0, 1, 2]]))
    assert same_bytes(total[1, 2], ExactSum.of(x[:, 1, 2]))
    merged = total.regroup(np.array([4, 0, 4]), 5)
    assert merged.shape == (5, 4)
    assert same_bytes(merged[4], total[0] + total[2])
    assert same_bytes(merged[1:4], ExactSum.zero((3, 4)))
    assert ExactSum.zero((0, 4)).regroup(np.array([], np.intp), 2) == ExactSum.zero((2, 4))
    assert ExactSum.zero((0, 4)).sum(axis=0) == ExactSum.zero((4,))
    assert total.nbytes == total.arrays()["digits"].nbytes


def test_empty_input():
    assert ExactSum.of(np.empty(0)) == ExactSum.zero()
    assert ExactSum.of(np.empty((0, 3)), np.empty(0)) == ExactSum.zero((3,))
    assert ExactSum.of(np.empty((7, 0))) == ExactSum.zero((0,))
    assert ExactSum.product(np.empty(0), np.empty(0)) == ExactSum.zero()
    assert ExactSum.grouped(np.empty(0, np.intp), 2, np.empty(0)) == ExactSum.zero((2,))
    assert ExactSum.grouped(np.empty(0, np.intp), 0, np.empty(0)) == ExactSum.zero((0,))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite(bad):
    x = np.array([1.0, bad])
    good = np.ones(2)
    for call in (
        lambda: ExactSum.of(x),
        lambda: ExactSum.of(good, x),
        lambda: ExactSum.product(good, x),
        lambda: ExactSum.moments([good], x),
        lambda: ExactSum.grouped(np.zeros(2, np.intp), 1, x),
    ):
        with pytest.raises(InvalidBatchError, match="finite"):
            call()
    assert ExactSum.of(good).to_float() == 2.0


def test_misuse():
    with pytest.raises(ValueError, match="cannot be added"):
        ExactSum.zero() + ExactSum.zero((2,))
    with pytest.raises(ValueError, match="fraction"):
        ExactSum.zero((2,)).fraction()
    with pytest.raises(IndexError, match="row 0 belongs to a group that is not among 2"):
        ExactSum.grouped(np.array([2]), 2, np.array([1.0]))
    with pytest.raises(ValueError, match="differ"):
        ExactSum.product(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="rows"):
        ExactSum.of(np.ones(3), np.ones(1))
    with pytest.raises(TypeError, match="'ExactSum' and 'int'"):
        ExactSum.zero() + 1  # type: ignore[operator]
    assert ExactSum.zero() != 0


def digits(*rows):
    return np.array(rows, np.int64)


@pytest.mark.parametrize(
    ("shape", "table", "exponent"),
    [
        ((), digits([1]), 1),  # not a multiple of 32
        ((), digits([1]), 2**40),
        ((), digits([1]), -(2**40)),
        ((), digits([1] * 500), -3200),
        ((), digits([0, 1]), 0),  # a zero digit at the bottom
        ((), digits([1, 0]), 0),  # at the top
        ((), digits([2**32 - 1, -1]), 0),  # fits one signed digit
        ((), digits([2**32, 1]), 0),
        ((), digits([-1, 1]), 0),
        ((), digits([2**31]), 0),
        ((), digits([-(2**31) - 1]), 0),
        ((), digits([-(2**63)]), 0),
        ((), digits([0]), 0),
        ((), np.zeros((1, 0), np.int64), 32),
        ((2,), digits([1]), 0),
        ((), digits([1], [2]), 0),
        ((), np.array([1]), 0),
        ((), np.array([[1.0]]), 0),
        ((), np.array([[1]], np.int32), 0),
    ],
)
def test_hostile_arrays(shape, table, exponent):
    with pytest.raises(StateFormatError, match="of exact sums"):
        ExactSum.from_arrays(shape, {"digits": table, "exponent": np.array(exponent)})


def test_hostile_names_and_exponents():
    good = ExactSum.of(np.array([1.5])).arrays()
    for arrays in (
        {"digits": good["digits"]},
        {**good, "more": good["digits"]},
        {**good, "exponent": np.array([-32])},
        {**good, "exponent": np.array(-32.0)},
    ):
        with pytest.raises(StateFormatError, match="exact sums"):
            ExactSum.from_arrays((), arrays)


@pytest.mark.parametrize("seed", range(4))
def test_only_canonical_digits_are_taken(seed):
    rng = np.random.default_rng(seed)
    edges = [-(2**31) - 1, -(2**31), -1, 0, 0, 0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32]
    taken = 0
    for _ in range(400):
        rows, width = rng.integers(1, 3), rng.integers(0, 4)
        digits = rng.choice(edges, (rows, width))
        sums = ExactSum.of_digits(digits, 64)
        form, exponent = sums.digits, sums.exponent
        ours = form.shape == digits.shape and (form == digits).all() and exponent == 64
        arrays = {"digits": digits, "exponent": np.array(64)}
        if ours:
            assert ExactSum.from_arrays((int(rows),), arrays).digits.tobytes() == form.tobytes()
            taken += 1
        else:
            with pytest.raises(StateFormatError, match="range|canonical"):
                ExactSum.from_arrays((int(rows),), arrays)
    assert taken > 20


def test_few_rows_that_are_not_finite_are_refused():
    for values in ([1.0, math.inf], [math.nan], [math.inf, 0.0, -math.inf]):
        x = np.array(values)
        with pytest.raises(InvalidBatchError, match="must be finite"):
            ExactSum.of(x)
        with pytest.raises(InvalidBatchError, match="must be finite"):
            ExactSum.product(x, x)
        with pytest.raises(InvalidBatchError, match="must be finite"):
            ExactSum.moments([x])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 64, 1000, 1025, 2048])
@pytest.mark.parametrize("reach", [0, 3, 60, 500, 1070])
@pytest.mark.parametrize("highest", [-1060, 0, 990, 1024])
def test_rows_of_any_reach_are_summed_whole(highest, reach, n):
    rng = np.random.default_rng(n)
    values = np.ldexp(rng.uniform(-1, 1, n), highest - rng.integers(0, reach + 1, n))
    values[1:] *= rng.choice([0.0, 1.0, -1.0], n - 1)
    values[n // 2 + 1 :] = -values[1 : (n + 1) // 2]  # cancels
    for row in (values, np.full(n, -values[0]), np.abs(values)):
        check(ExactSum.of(row), [sum(map(Fraction, row.tolist()))])


@pytest.mark.parametrize("powers", [(1,), (2,), (4,), (1, 2), (4, 2), (1, 2, 4)])
@pytest.mark.parametrize("scale", [-1060, -530, 0, 400, 1022])
def test_powers_are_squares_of_squares_rounded_and_cut(scale, powers):
    values = np.ldexp(np.array([1.0, -0.3, 0.0, 0.7, 1 + 2.0**-52] * 500), scale)
    found, *limits = ExactSum.of_powers(np.negative, [values], powers)
    sizes = np.abs(values[values != 0])
    assert limits == [sizes.min(), sizes.max()]
    with np.errstate(over="ignore", under="ignore"):
        squares = np.minimum(values * values, 2.0**1023)
        fourths = np.minimum(squares * squares, 2.0**1023)
    each = {1: -values, 2: squares, 4: fourths}
    assert found == {power: ExactSum.of(each[power]) for power in powers}
    wide, *_ = ExactSum.of_powers(np.negative, [np.stack([values, values], axis=1)], powers)
    assert all(wide[power] == ExactSum.row_of([found[power]] * 2) for power in powers)


@pytest.mark.parametrize("n", [5, 2000, 17_000])  # the last in two blocks
@pytest.mark.parametrize("scale", [-400, 0, 600])
def test_sums_by_weights_and_their_squares_are_those_of_fractions(n, scale):
    rng = np.random.default_rng(n)
    head, tail = np.ldexp(rng.normal(size=n), scale), rng.integers(-9, 9, n).astype(float)
    weight = np.ldexp(rng.exponential(size=n), -scale // 2)
    with np.errstate(over="ignore"):
        square = np.minimum(head * head, LARGEST)
    w, x, low, squared = ([*map(Fraction, c.tolist())] for c in (weight, head, tail, square))
    found = {}
    for values, exact in (
        (LongNumbers(head, tail), [*map(sum, zip(x, low, strict=True))]),
        (head, x),
    ):
        found, *_ = ExactSum.of_powers(lambda rows: rows, [values], (1, *SQUARED), weight=weight)
        sums = [Fraction(0)] * 5
        for a, b, c in zip(w, exact, squared, strict=True):
            row = (a * b, a, a * a, a * a * b, a * a * c)
            sums = [total + term for total, term in zip(sums, row, strict=True)]
        assert [found[name].fraction() for name in (1, *SQUARED)] == sums
    table = np.stack([head, head], axis=1)
    wide, *_ = ExactSum.of_powers(lambda rows: rows, [table], (1, *SQUARED), weight=weight)
    assert all(wide[name] == found[name] for name in SQUARED[:2])
    assert all(wide[name] == ExactSum.row_of([found[name]] * 2) for name in (1, *SQUARED[2:]))


SMALL = [-1074, -1022, -700, -538, -531, -512, -511, -460, -330]


@pytest.mark.parametrize("power", [480, 486, 487, 500, 511, 512, 700, 1023, *SMALL])
def test_squares_of_numbers_of_one_magnitude_are_summed_by_group(power):
    apart = [power, power, -power, power][: 2 if abs(power) > 500 else 4]
    values = np.ldexp(1.5, power if power < 0 else apart) * np.ones(len(apart))
    index = np.arange(values.size) % 2
    sums, squares = ExactSum.grouped_squares(index, 2, values)
    for group in range(2):
        mine = values[index == group]
        with np.errstate(over="ignore"):
            clipped = np.minimum(mine**2, LARGEST)
        assert sums[group].fraction() == sum(map(Fraction, mine.tolist()))
        assert squares[group].fraction() == sum(map(Fraction, clipped.tolist()))
