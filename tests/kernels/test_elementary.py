"""Logarithms, exponentials and powers: the same bits by every variant, next to the true value."""

from __future__ import annotations

import hashlib
import math
from decimal import Context, Decimal

import numpy as np
import pytest

from streammetrics.core import elementary
from streammetrics.core.kernels import kernels, reference

LOG, LOG1P, EXP, EXPM1, POWER = range(5)
DIGITS = Context(prec=60, Emin=-9999, Emax=9999)
MOST = Decimal("0.76")  # units in the last place
TINY = Decimal("1e-20")
EXACT = {
    LOG: lambda x: x.ln(DIGITS),
    LOG1P: lambda x: DIGITS.add(1, x).ln(DIGITS) if abs(x) > TINY else x - x * x / 2,
    EXP: lambda x: x.exp(DIGITS),
    EXPM1: lambda x: DIGITS.subtract(x.exp(DIGITS), 1) if abs(x) > TINY else x + x * x / 2,
}
ENDS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    2.0**-1022,
    1.7976931348623157e308,
]


def variants():
    found = getattr(kernels, "variants", tuple)()
    return [pytest.param(name, id=name) for name in (*found, "reference")]


@pytest.fixture(params=variants())
def apply(request):
    """The function of one variant."""
    compiled = request.param != "reference"  # which may be the only one
    module = kernels if compiled else reference
    if compiled:
        kernels.use(request.param)

    def run(function, x, exponent=0.0):
        out = np.empty(x.shape)
        module.elementary(out, x, function, exponent)
        return out

    yield run
    if compiled:
        kernels.use(kernels.variants()[-1])


def arguments(n):
    """Numbers of any bits, of ordinary size, near 1 and near the limits of exponentials."""
    rng = np.random.default_rng(n)
    near = 1.0 + rng.choice([-1.0, 1.0], n) * 2.0 ** -rng.integers(1, 54, n)
    anything = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    parts = [anything, rng.random(n), near, near - 1.0, 40 * rng.random(n) - 20]
    return np.concatenate([*parts, rng.integers(-746, 711, n) + rng.random(n), ENDS])


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.5, -0.5, 3.0])
def test_every_variant_gives_the_bits_of_the_definition(apply, exponent):
    x = arguments(3001)
    for function in range(5):
        expected = np.empty_like(x)
        reference.elementary(expected, x, function, exponent)
        found = apply(function, x, exponent)
        assert np.array_equal(found.view(np.int64), expected.view(np.int64))


def test_bits_are_the_same_on_every_platform(apply):
    digest = hashlib.sha256()
    for function in range(5):
        digest.update(apply(function, arguments(1000), 1.5).astype("<f8").tobytes())
    assert digest.hexdigest() == (
        "e213442cbcf02d5b97bc63ce7bc43402b39b0b57f04289d2b9983a1187554201"
    )


@pytest.mark.parametrize("function", EXACT)
def test_errors_are_below_one_unit_in_the_last_place(apply, function):
    x = arguments(300)
    x = x[np.isfinite(x) & (x > (0, -1, -745, -745)[function]) & ((function < EXP) | (x < 709.7))]
    for number, found in zip(x.tolist(), apply(function, x).tolist(), strict=True):
        exact = EXACT[function](Decimal(number))
        assert abs(Decimal(found) - exact) < MOST * Decimal(math.ulp(float(exact))), number


@pytest.mark.parametrize("exponent", [0.3, 1.5, -0.5, 3.0])
def test_errors_of_powers(apply, exponent):
    x = np.exp(np.random.default_rng(2).uniform(-200, 200, 500))
    for number, found in zip(x.tolist(), apply(POWER, x, exponent).tolist(), strict=True):
        exact = (Decimal(number).ln(DIGITS) * Decimal(exponent)).exp(DIGITS)
        assert abs(Decimal(found) - exact) < MOST * Decimal(math.ulp(float(exact))), number


def test_ends(apply):
    inf, nan = math.inf, math.nan
    x = np.array([0.0, 1.0, inf, nan, -1.0, -2.0, -inf])
    for function, exponent, expected in (
        (LOG, 0.0, [-inf, 0.0, inf, nan, nan, nan, nan]),
        (LOG1P, 0.0, [0.0, math.log(2), inf, nan, -inf, nan, nan]),
        (EXP, 0.0, [1.0, math.e, inf, nan, 1 / math.e, math.exp(-2), 0.0]),
        (EXPM1, 0.0, [0.0, math.expm1(1), inf, nan, math.expm1(-1), math.expm1(-2), -1.0]),
        (POWER, 1.5, [0.0, 1.0, inf, nan, nan, nan, nan]),
        (POWER, -1.5, [inf, 1.0, 0.0, nan, nan, nan, nan]),
        (POWER, 0.0, [1.0, 1.0, 1.0, nan, nan, nan, nan]),
    ):
        assert apply(function, x, exponent).tolist() == pytest.approx(expected, 1e-15, nan_ok=True)


def test_refusals(apply):
    for function in (-1, 5):
        with pytest.raises(ValueError, match="expected a function from 0 to 4"):
            apply(function, np.ones(3))


def test_arrays_of_any_layout():
    x = np.arange(1.0, 13.0).reshape(3, 4)
    assert np.array_equal(elementary.log(x[:, ::2]), elementary.log(x)[:, ::2])
    assert elementary.log(2).shape == ()
    out = np.zeros((3, 8))[:, ::2]
    assert elementary.log(x, out=out) is out
    assert np.array_equal(out, elementary.log(x))
    assert elementary.log(x, out=x) is x
    assert np.array_equal(x, out)


def test_powers_of_two_have_whole_logarithms():
    whole = np.arange(-1074.0, 1024.0)
    assert np.array_equal(elementary.log2(2.0**whole), whole)
    x = np.random.default_rng(0).random(1000)
    assert elementary.log2(x) == pytest.approx(np.log2(x), rel=1e-15, abs=0)
    assert np.array_equal(elementary.power(x, 2.0), x * x)
    assert np.array_equal(elementary.power(x, 0.5), np.sqrt(x))
