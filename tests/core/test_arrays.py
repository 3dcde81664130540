"""Every source gives the column the plain NumPy array gives, or the typed error."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streammetrics.core.columns.column import distinct as distinct_rows
from streammetrics.core.columns.column import unique
from streammetrics.core.columns.conversion import Beside, Column, as_column, concatenate
from streammetrics.core.errors import InvalidBatchError

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "f2", "f4", "f8"]
TEXTS = ["b", "a", "", "ÿ", "b", "\U0001f600", "a\0a", "ﬁ"]
PLACES = [2, 0, 3, 1]


def check(column, values, nulls=None, dtype=None):
    """The column holds these values, and is what `Column` says it is."""
    values = np.asarray(values)
    array = column.values
    assert type(array) is np.ndarray
    assert array.dtype.isnative
    assert array.flags.c_contiguous
    assert array.flags.aligned
    assert column.vocabulary is None
    assert array.dtype == (values.dtype if dtype is None else dtype)
    check_nulls(column, nulls)
    if column.nulls is not None:
        values = np.where(column.nulls, 0, values)
    np.testing.assert_array_equal(array, values)


def check_nulls(column, nulls):
    if nulls is None or not np.any(nulls):
        assert column.nulls is None
    else:
        assert column.nulls.dtype == bool
        np.testing.assert_array_equal(column.nulls, nulls)


def check_texts(column, texts):
    """The column holds these strings, ``None`` where null, in canonical codes."""
    present = sorted({text for text in texts if text is not None})
    assert column.vocabulary.dtype.kind == "U"
    assert column.vocabulary.tolist() == present
    assert column.values.dtype == np.intp
    expected = [-1 if text is None else present.index(text) for text in texts]
    assert column.values.tolist() == expected
    assert column.owned
    check_nulls(column, [text is None for text in texts])


def refused(value, *words, **options):
    with pytest.raises(InvalidBatchError, match="^the_column") as caught:
        as_column(value, "the_column", **options)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "\n" not in message


# --- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_plain_arrays_are_taken_as_they_are(dtype):
    for values in (np.array([1, 0, 1, 1], dtype), np.array([[1, 0], [0, 1], [1, 1]], dtype)):
        column = as_column(values, "x")
        assert column.values is values
        assert not column.owned
        check(column, values)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_layout(dtype, order):
    plain = np.array([3, 0, 2, 1, 1, 0], dtype)
    swapped = plain.astype(plain.dtype.newbyteorder(order))
    packed = np.zeros(6, [("pad", "u1"), ("x", swapped.dtype)])
    packed["x"] = swapped
    for view in (swapped, swapped[::2], swapped[::-1], swapped[:0], packed["x"]):
        before = view.copy()
        check(as_column(view, "x"), view.astype(plain.dtype))
        np.testing.assert_array_equal(view, before)
    matrix = swapped.reshape(2, 3)
    for view in (matrix, matrix.T, matrix[:, ::-1], np.asfortranarray(matrix), matrix[:, :0]):
        check(as_column(view, "x"), view.astype(plain.dtype))
    swapped.flags.writeable = False
    check(as_column(swapped, "x"), plain)


@given(hnp.arrays(st.sampled_from(NUMBERS), hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)))
def test_any_array_of_numbers(values):
    kept = values.copy()
    for given_ in (values, values[::-1], values.T):
        column = as_column(given_, "x")
        check(column, given_)
        assert column.owned or np.may_share_memory(column.values, values) or not values.size
        if column.owned:
            column.values.fill(1)
            np.testing.assert_array_equal(values, kept)


def test_unaligned_memory():
    raw = np.frombuffer(b"\0" + np.arange(4.0).tobytes(), np.float64, offset=1)
    assert not raw.flags.aligned
    check(as_column(raw, "x"), np.arange(4.0))


def test_unsigned_long_becomes_signed():
    values = np.array([0, 2**63 - 1], np.uint64)
    column = as_column(values, "x")
    check(column, values.astype(np.int64))
    assert np.may_share_memory(column.values, values)
    owned = as_column([0, 2**63 - 1], "x")
    assert owned.values.dtype == np.int64


def test_unsigned_long_stays_where_a_value_needs_it():
    values = np.array([[0, 2**63], [2**64 - 1, 1]], np.uint64)
    for given_ in (values, values.tolist(), values.astype(object), list(values)):
        column = as_column(given_, "x")
        check(column, values)
        assert column.values.dtype == np.uint64
    masked = np.ma.array([2**63, 5], np.uint64, mask=[True, False])
    check(as_column(masked, "x"), [0, 5], [True, False])
    check(as_column([None, 2**64 - 1], "x"), np.array([0, 2**64 - 1], np.uint64), [True, False])
    beside = Beside({"a": np.array([2**63], np.uint64), "b": [1]})
    check(as_column(beside, "x"), np.array([[2**63, 1]], np.uint64))
    beside = Beside({"a": np.array([2**63], np.uint64), "b": [-1]})
    refused(beside, "negative", "1 value", "row 0", "batches of their own")


def test_decimals_are_integers_or_the_nearest_floats():
    number = decimal.Decimal
    check(as_column([number(2**64 - 1), number("1.00")], "x"), np.array([2**64 - 1, 1], np.uint64))
    check(as_column([number("0.1"), None, 3, number("1e300")], "x"),
          [0.1, 0, 3, 1e300], [False, True, False, False])  # fmt: skip
    check(as_column([[number("0.5"), 1], [2, number("-3")]], "x"), [[0.5, 1], [2, -3]])
    check(as_column(number(7), "x"), [7])
    check(as_column([number("nan"), number("sNaN"), number("-Infinity")], "x"),
          [math.nan, math.nan, -math.inf])  # fmt: skip
    refused([1, number("1e400")], "beyond float64", "row 1")
    refused([number(2**60), number("0.5")], "2**53", "row 0")
    refused(["a", number(1)], "strings and numbers", "row 1")


def test_long_doubles_are_rounded():
    check(as_column(np.array([0.1, np.inf, np.nan], np.longdouble), "x"), [0.1, np.inf, np.nan])
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        refused(np.array([1, np.longdouble("1e4000")], np.longdouble), "beyond float64", "row 1")


def test_masked_arrays():
    values = np.ma.array([1.0, np.nan, 3.0], mask=[False, True, False])
    check(as_column(values, "x"), [1.0, 0.0, 3.0], [False, True, False])
    assert np.isnan(values.data[1])
    check(as_column(np.ma.array([1, 2]), "x"), [1, 2])
    matrix = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    check(as_column(matrix, "x"), [[1, 0], [3, 4]], [[False, True], [False, False]])
    texts = np.ma.array(["b", "a", "c"], mask=[False, True, False])
    check_texts(as_column(texts, "x"), ["b", None, "c"])
    check(as_column([np.ma.masked, 2], "x"), [0, 2], [True, False])
    large = np.ma.array([1, 2**64 - 1], np.uint64, mask=[False, True])
    check(as_column(large, "x"), [1, 0], [False, True])


def test_subclasses_and_records():
    class Own(np.ndarray):
        pass

    check(as_column(np.array([1, 2]).view(Own), "x"), [1, 2])
    refused(np.zeros(2, [("a", "f8")]), "records")


@pytest.mark.parametrize("dtype", ["U", "<U9", ">U9", "T", "O"])
def test_arrays_of_strings(dtype):
    values = np.array(TEXTS, np.dtypes.StringDType() if dtype == "T" else dtype)
    check_texts(as_column(values, "x"), TEXTS)
    check_texts(as_column(values[::-2], "x"), TEXTS[::-2])
    if dtype != "O":  # objects of which there are none are of no kind
        check_texts(as_column(values[:0], "x"), [])
    refused(values.reshape(2, 4), "matrix of strings")


def test_null_strings():
    values = np.array(["b", None, "a"], np.dtypes.StringDType(na_object=None))
    check_texts(as_column(values, "x"), ["b", None, "a"])
    values = np.array(["b", float("nan"), None], object)
    check_texts(as_column(values, "x"), ["b", None, None])


@given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=6)))
def test_any_strings(texts):
    check_texts(as_column(np.array(texts, "U"), "x"), texts)
    if texts:
        check_texts(as_column(texts, "x"), texts)


def test_strings_ending_in_nul_are_not_merged():
    refused(["a", "a\0"], "NUL")


def test_many_strings():
    numbers = np.random.default_rng(0).integers(0, 5000, 40_000)
    texts = np.char.add("user", numbers.astype(str))
    column = as_column(texts, "x")
    vocabulary, codes = np.unique(texts, return_inverse=True)
    np.testing.assert_array_equal(column.vocabulary, vocabulary)
    np.testing.assert_array_equal(column.values, codes)


# --- Python objects ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, [True]),
        (3, [3]),
        (2.5, [2.5]),
        (np.float32(2.5), np.array([2.5], "f4")),
        (np.int8(-3), np.array([-3], "i1")),
        (np.bool_(True), [True]),
        (np.array(2.5), [2.5]),
        ([True, False], [True, False]),
        ((1, 2), [1, 2]),
        ([True, 2], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ([True, 2.5], [1.0, 2.5]),
        ([1, float("nan")], [1.0, np.nan]),
        ([np.int8(1), np.int64(2)], [1, 2]),
        ([np.uint64(1), np.int64(2)], [1, 2]),
        ([np.float32(1), np.float32(2)], np.array([1, 2], "f4")),
        ([np.float32(1), 2], [1.0, 2.0]),
        ([np.longdouble(1), 0.5], [1.0, 0.5]),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        ([2**53, 0.5], [2.0**53, 0.5]),
        ([], np.empty(0)),
        ([[]], np.empty((1, 0))),
        ([[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 4], [5, 6]]),
        ([(1, 2), [3, 4.5]], [[1.0, 2.0], [3.0, 4.5]]),
        ([np.array(1.5), np.array(2.5)], [1.5, 2.5]),
        ([np.array([1, 2]), [3, 4]], [[1, 2], [3, 4]]),
        ([np.array(1), 2.5], [1.0, 2.5]),
        (range(3), [0, 1, 2]),
        (collections.deque([1, 2]), [1, 2]),
        (np.array([1, 2], object), [1, 2]),
        (np.array([[1, 2.5], [3, 4]], object), [[1.0, 2.5], [3.0, 4.0]]),
        (memoryview(np.array([1.5, 2.5])), [1.5, 2.5]),
    ],
)
def test_python_values(value, expected):
    check(as_column(value, "x"), expected)


@pytest.mark.parametrize(
    ("value", "expected", "nulls"),
    [
        ([1, None], [1, 0], [False, True]),
        ([None, True], [False, True], [True, False]),
        ([None, 2.5], [0.0, 2.5], [True, False]),
        ([None, None], [0.0, 0.0], [True, True]),
        ([[1, None], [3, 4]], [[1, 0], [3, 4]], [[False, True], [False, False]]),
        (np.array([None, 2], object), [0, 2], [True, False]),
    ],
)
def test_nulls_in_python_values(value, expected, nulls):
    check(as_column(value, "x"), expected, nulls)


def test_python_strings():
    class Plain(enum.StrEnum):
        RED = "r"

    class Old(str, enum.Enum):  # noqa: UP042 - prints as its name, which is what is tested
        RED = "r"

    check_texts(as_column("b", "x"), ["b"])
    check_texts(as_column(TEXTS, "x"), TEXTS)
    check_texts(as_column(tuple(TEXTS), "x"), TEXTS)
    check_texts(as_column(["b", None, float("nan"), "a"], "x"), ["b", None, None, "a"])
    check_texts(as_column([Plain.RED, Old.RED, np.str_("r"), "a"], "x"), ["r", "r", "r", "a"])


def test_objects_that_recur_are_what_they_are_alone():
    texts = ["b", None, float("nan"), "a", np.str_("b")] * 1000
    expected = ["b", None, None, "a", "b"] * 1000
    for value in (texts, tuple(texts), np.array(texts, object), np.array(texts, object)[::-1]):
        turned = expected[::-1] if getattr(value, "strides", (8,))[0] < 0 else expected
        check_texts(as_column(value, "x"), turned)
    fresh = [f"user{row % 7}" for row in range(5000)]
    check_texts(as_column(np.array(fresh, object), "x"), fresh)
    nulls = [False, True, False] * 2000
    for items, dtype in (
        ([1, None, True], int),
        ([2**63, None, 1], np.uint64),
        ([1, None, 2.5], float),
    ):
        filled = np.array([items[0], 0, items[2]] * 2000, dtype)
        check(as_column(items * 2000, "x"), filled, nulls)
    pairs = np.array([[1, "x"], [2, "x"]] * 3000, object)
    refused(pairs, "strings and numbers ('x' in row 0 is unlike those before)")
    refused(["a"] * 5000 + [1.5, 2], "strings and numbers (1.5 in row 5000 ")
    refused([0.5] * 5000 + [2**53 + 1], "beyond 2**53 in row 5000")
    check(as_column([[1, 2]] * 3000, "x"), [[1, 2]] * 3000)


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ([0.1, 0.2, None, "a"], 3),
        ([0.1, 0.2, [0.3]], 2),
        ([[1, 2], [1, 2], [1]], 2),
        ([[1, 2], [1, "a"]], 1),
        ([1, {}], 1),
        ([0.5, 2**53 + 1], 1),
        ([1, 2, 2**64], 2),
        ([1, decimal.Decimal("1e400")], 1),
        ([np.zeros(2), np.array(["a", "b"])], None),
        ([[1, 2], np.array([1, 2j], object)], 1),
    ],
)
def test_what_is_wrong_in_one_row_is_told_by_its_column_and_row(value, row):
    with pytest.raises(InvalidBatchError, match=r"^x\W") as caught:
        as_column(value, "x")
    assert (caught.value.column, caught.value.row) == ("x", row)


def test_keys_that_share_a_slot_are_told_apart():
    rng = np.random.default_rng(0)
    for distinct in (1, 2, 900, 6000):
        keys = rng.integers(0, 2**64, distinct, np.uint64)
        keys[:2] = [0, 1][:distinct]
        keys = keys[rng.integers(0, distinct, 60_000)]
        codes, rows = distinct_rows(keys)
        np.testing.assert_array_equal(keys[rows][codes], keys)
        assert len(rows) == len(np.unique(keys)) == codes.max() + 1
        found, places = unique(keys)
        np.testing.assert_array_equal(found, np.unique(keys))
        np.testing.assert_array_equal(found[places], keys)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, ["None"]),
        (1j, ["1j"]),
        (b"ab", ["b'ab'"]),
        ([1, "a"], ["strings and numbers", "'a'", "row 1"]),
        (["a", "b", 1.5], ["strings and numbers", "1.5", "row 2"]),
        (["a", True], ["strings and numbers"]),
        ([1, [2]], ["dimensions"]),
        ([[1, 2], [3]], ["unequal length", "row 1"]),
        ([[1, 2], 3], ["dimensions"]),
        ([[1, "a"]], ["strings and numbers", "row 0"]),
        ([["a", "b"]], ["matrix of strings"]),
        ([[[1]]], ["list", "row 0"]),
        ([[1, 2], [3, {}]], ["dict", "row 1"]),
        ([[1, 2], None], ["dimensions"]),
        ([np.zeros(2), np.zeros(3)], ["unequal length", "row 1"]),
        ([np.zeros((2, 2))], ["dimensions"]),
        ([1, 2j], ["complex", "row 1"]),
        ([1, b"a"], ["bytes", "row 1"]),
        ([fractions.Fraction(1)], ["Fraction"]),
        ([datetime.date(2020, 1, 1)], ["datetime.date"]),
        ([np.datetime64("2020")], ["datetime64"]),
        ([np.timedelta64(1, "s")], ["timedelta64"]),
        ([-1, 2**63], ["negative integer", "row 0"]),
        ([2**63, np.int64(-1)], ["negative integer", "row 1"]),
        ([[1, 2], [3, 2**64]], ["64 bits", "row 1"]),
        ([-(2**63) - 1], ["64 bits", "row 0"]),
        ([0.5, 2**53 + 1], ["2**53", "row 1"]),
        ([0.5, 10**400], ["2**53", "row 1"]),
        ([None, 0.5, 2**53 + 1], ["2**53", "row 2"]),
        ({1: 2}, ["dict"]),
        ({1, 2}, ["set"]),
        ((i for i in range(3)), ["generator"]),
        (object(), ["object"]),
        (np.array([1, "a"], object), ["strings and numbers"]),
        (np.array([[1], [2, 3]], object), ["unequal length", "row 1"]),
        (np.array([1, {}], object), ["dict", "row 1"]),
        (np.array([[1, 2], [3, {}]], object), ["dict", "row 1"]),
        (np.array([1j]), ["complex"]),
        (np.array(["2020"], "M8[D]"), ["dates"]),
        (np.array([1], "m8[s]"), ["time"]),
        (np.array([b"a"]), ["bytes", "str"]),
        (np.zeros((2, 2, 2)), ["(2, 2, 2)"]),
        (np.zeros((2, 2, 2), object), ["(2, 2, 2)"]),
    ],
)
def test_refused(value, words):
    refused(value, *words)


def test_one_dimension_only():
    refused(np.zeros((2, 1)), "(2, 1)", "(n,)", max_ndim=1)
    refused([[1, 2]], "(1, 2)", max_ndim=1)
    check(as_column([1, 2], "x", max_ndim=1), [1, 2])


# --- protocols -----------------------------------------------------------------------------------


def test_protocols():
    values = np.array([1.5, 2.5])

    class ByArray:
        def __array__(self, dtype=None, copy=None):
            return values

    class ByInterface:
        __array_interface__ = values.__array_interface__

    class ByDlpack:
        def __dlpack__(self, **options):
            return values.__dlpack__(**options)

        def __dlpack_device__(self):
            return values.__dlpack_device__()

    for source in (ByArray(), ByInterface(), ByDlpack()):
        column = as_column(source, "x")
        check(column, values)
        assert not column.owned
    check(as_column([ByArray(), ByArray()], "x"), [[1.5, 2.5], [1.5, 2.5]])


def test_sources_that_fail():
    class Failing:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on strike\nuntil Monday")

    refused(Failing(), "Failing", "on strike")


# --- concatenation -------------------------------------------------------------------------------


def joined(*parts):
    return concatenate([as_column(part, "x") for part in parts])


def test_concatenation_of_numbers():
    check(joined([1, 2], [3]), [1, 2, 3])
    check(joined([1, 2], [0.5]), [1.0, 2.0, 0.5])
    check(joined([True], [3]), [1, 3])
    check(joined(np.array([1], "u8"), np.array([-1], "i1")), [1, -1])
    check(joined([1, None], [3]), [1, 0, 3], [False, True, False])
    check(joined([None], [2**60 + 1], []), [0, 2**60 + 1], [True, False])
    check(joined([[1, 2]], [[3, 4]]), [[1, 2], [3, 4]])
    check(joined([], []), np.empty(0))
    with pytest.raises(InvalidBatchError, match="shapes"):
        joined([[1, None]], [3])
    with pytest.raises(InvalidBatchError, match="first in row 1"):
        joined([0.5], [1, 2**53 + 1])


def test_concatenation_of_strings():
    check_texts(joined(["b", "a"], ["c", None, "a"], []), ["b", "a", "c", None, "a"])
    check_texts(joined(["b", "a"], ["a", "b"]), ["b", "a", "a", "b"])
    check_texts(joined([None, None], ["a"]), [None, None, "a"])
    check_texts(joined(["long string"], ["a"]), ["long string", "a"])
    with pytest.raises(InvalidBatchError, match="label holds strings and numbers"):
        concatenate([as_column(["a"], "x"), as_column([1], "x")], "label")


def test_concatenation_does_not_alias():
    first, second = np.array([1.0]), np.array([2.0])
    column = joined(first, second)
    assert column.owned
    first[0] = 9
    check(column, [1.0, 2.0])


def test_slices_and_copies():
    column = as_column(["b", None, "a"], "x")
    assert len(column) == 3
    part = column[1:]
    assert part.nulls.tolist() == [True, False]
    assert part.values.tolist() == [-1, 0]
    assert part.vocabulary is column.vocabulary
    values = np.array([1.0, 2.0])
    column = as_column(values, "x")
    assert not column[:1].owned
    assert column[np.array([1])].owned
    copy = column.copy()
    assert copy.owned
    assert not np.may_share_memory(copy.values, values)
    assert copy.copy() is copy
    assert isinstance(copy, Column)


# --- pandas --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "plain"),
    [
        *((name, name) for name in ("int64", "int8", "uint16", "float32", "float64", "bool")),
        ("Int64", "int64"),
        ("UInt8", "uint8"),
        ("Float32", "float32"),
        ("boolean", "bool"),
        ("Sparse[int64]", "int64"),
        ("int64[pyarrow]", "int64"),
        ("double[pyarrow]", "float64"),
        ("bool[pyarrow]", "bool"),
        ("category", "int64"),
    ],
)
def test_pandas_numbers(dtype, plain):
    pd = pytest.importorskip("pandas")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    series = pd.Series([1, 0, 1], index=[7, 8, 9]).astype(dtype)
    check(as_column(series, "x"), np.array([1, 0, 1], plain))
    check(as_column(series[::-1], "x"), np.array([1, 0, 1], plain)[::-1])
    check(as_column(series[:0], "x"), np.array([], plain))
    check(as_column(series.array, "x"), np.array([1, 0, 1], plain))
    check(as_column(pd.Index(series), "x"), np.array([1, 0, 1], plain))
    if dtype in {"Int64", "UInt8", "Float32", "boolean"}:
        holed = series.copy()
        holed.iloc[1] = pd.NA
        check(as_column(holed, "x"), np.array([1, 0, 1], plain), [False, True, False])
        assert holed.isna().tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"])
def test_pandas_arrow_nulls(dtype):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    series = pd.Series([1, None, 0], dtype=dtype)
    plain = {"i": np.int64, "d": np.float64, "b": bool}[dtype[0]]
    check(as_column(series, "x"), np.array([1, 0, 0], plain), [False, True, False])


def test_pandas_nan_is_a_value_and_na_is_null():
    pd = pytest.importorskip("pandas")
    check(as_column(pd.Series([1.0, np.nan]), "x"), [1.0, np.nan])
    check(as_column(pd.Series([1.0, None], dtype="Float64"), "x"), [1.0, 0.0], [False, True])
    check(as_column([1, pd.NA], "x"), [1, 0], [False, True])
    check(as_column(pd.array(np.array([1.0, 2.0])), "x"), [1.0, 2.0])


@pytest.mark.parametrize("dtype", ["object", "string[python]", "string[pyarrow]", "category", None])
def test_pandas_strings(dtype):
    pd = pytest.importorskip("pandas")
    if dtype == "string[pyarrow]":
        pytest.importorskip("pyarrow")
    texts = [*TEXTS[:6], "ﬁ", "c", None, "b"]  # pandas before 3 cuts categories at a NUL
    series = pd.Series(texts) if dtype is None else pd.Series(texts, dtype=dtype)
    check_texts(as_column(series, "x"), texts)
    check_texts(as_column(series[5:9], "x"), texts[5:9])
    check_texts(as_column(series[3:6:2], "x"), texts[3:6:2])
    check_texts(as_column(pd.Index(series[:5]), "x"), texts[:5])


def test_pandas_categories():
    pd = pytest.importorskip("pandas")
    texts = pd.Categorical(["b", None, "a"], categories=["unused", "b", "a"])
    check_texts(as_column(texts, "x"), ["b", None, "a"])
    numbers = pd.Series(pd.Categorical([30, None, 10], categories=[30, 20, 10]))
    check(as_column(numbers, "x"), [30, 0, 10], [False, True, False])
    nothing = as_column(pd.Categorical([None, None]), "x")
    assert nothing.nulls.tolist() == [True, True]


def test_pandas_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})
    check(as_column(frame, "x"), [[1, 4], [2, 5], [3, 6]])
    check(as_column(frame[["a"]], "x"), [[1], [2], [3]])
    frame["c"] = [0.5, 1.5, 2.5]
    check(as_column(frame, "x"), [[1, 4, 0.5], [2, 5, 1.5], [3, 6, 2.5]])
    nullable = pd.DataFrame({"a": [1, 2], "b": [3, None]}, dtype="Int64")
    check(as_column(nullable, "x"), [[1, 3], [2, 0]], [[False, False], [False, True]])
    twice = pd.DataFrame([[1, 2.5]], columns=["a", "a"])
    check(as_column(twice, "x"), [[1, 2.5]])
    refused(pd.DataFrame({"a": ["x"], "b": [1]}), "strings")
    refused(pd.DataFrame({"a": [0.5], "b": [2**53 + 1]}), "2**53", "row 0")
    refused(frame, "(3, 3)", max_ndim=1)


def test_pandas_refused():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020", periods=2)
    refused(pd.Series(dates), "dates")
    refused(dates.tz_localize("UTC"), "Timestamp")
    refused(dates[0])
    refused(pd.MultiIndex.from_tuples([(1, 2)]), "tuple")
    refused(pd.Series([1, "a"], dtype=object), "strings and numbers", "row 1")
    refused(pd.Series([[1, 2], [3]]), "unequal length", "row 1")
    refused(pd.Series(pd.interval_range(0, 2)), "Interval")
    check(as_column(pd.Series([decimal.Decimal(1)]), "x"), [1])


# --- polars --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "plain"),
    [
        *(
            (f"{sign}Int{bits}", f"{sign.lower()}int{bits}")
            for sign in ("", "U")
            for bits in (8, 32)
        ),
        ("Int64", "int64"),
        ("UInt64", "int64"),
        ("Float32", "float32"),
        ("Float64", "float64"),
        ("Boolean", "bool"),
    ],
)
def test_polars_numbers(dtype, plain):
    pl = pytest.importorskip("polars")
    series = pl.Series([1, 0, 1]).cast(getattr(pl, dtype))
    check(as_column(series, "x"), np.array([1, 0, 1], plain))
    check(as_column(series.append(series), "x"), np.array([1, 0, 1, 1, 0, 1], plain))
    check(as_column(series[1:], "x"), as_column(series, "x").values[1:])
    check(as_column(series[:0], "x"), np.array([], plain))
    holed = pl.Series([1, None, 0]).cast(getattr(pl, dtype))
    check(as_column(holed, "x"), np.array([1, 0, 0], plain), [False, True, False])


@pytest.mark.parametrize("kind", ["String", "Categorical", "Enum"])
def test_polars_strings(kind):
    pl = pytest.importorskip("polars")
    texts = [*TEXTS, None, "b"]
    dtype = pl.Enum(["unused", *dict.fromkeys(TEXTS)]) if kind == "Enum" else getattr(pl, kind)
    series = pl.Series(texts).cast(dtype)
    check_texts(as_column(series, "x"), texts)
    check_texts(as_column(series[5:9], "x"), texts[5:9])
    check_texts(as_column(series[:0], "x"), [])
    check_texts(as_column(series[8:9], "x"), [None])


def test_polars_others():
    pl = pytest.importorskip("polars")
    check(as_column(pl.Series([None, None]), "x"), [0.0, 0.0], [True, True])
    check(as_column(pl.Series([1.0, float("nan"), None]), "x"), [1.0, np.nan, 0], [0, 0, 1])
    lists = pl.Series([[1, 2], [3, None], [5, 6]])
    nulls = [[False, False], [False, True], [False, False]]
    check(as_column(lists, "x"), [[1, 2], [3, 0], [5, 6]], nulls)
    arrays = lists.cast(pl.Array(pl.Int64, 2))
    check(as_column(arrays, "x"), [[1, 2], [3, 0], [5, 6]], nulls)
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, None]})
    check(as_column(frame, "x"), [[1, 0.5], [2, 0]], [[False, False], [False, True]])
    refused(pl.Series([[1, 2], [3]]), "unequal length")
    check(as_column(pl.Series(["0.3", None, "-1.1"]).cast(pl.Decimal(38, 9)), "x"),
          [0.3, 0, -1.1], [False, True, False])  # fmt: skip
    check(as_column(pl.Series([7, 2**62]).cast(pl.Decimal(38, 0)), "x"), [7, 2**62])
    refused(pl.Series([datetime.date(2020, 1, 1)]), "Date", "cast")
    refused(pl.Series([b"a"]), "Binary")
    if hasattr(pl, "Int128"):
        refused(pl.Series([1]).cast(pl.Int128), "Int128")
    refused(pl.DataFrame({"a": ["x"], "b": ["y"]}), "strings")
    refused(pl.DataFrame({"a": [1]}).lazy(), "LazyFrame")


# --- Arrow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "int64", "uint64", "halffloat", "float", "double"]
)
def test_arrow_numbers(dtype):
    pa = pytest.importorskip("pyarrow")
    kind = pa.float16() if dtype == "halffloat" else getattr(pa, f"{dtype}_", None)
    kind = kind() if callable(kind) else kind or pa.type_for_alias(dtype)
    zero, one = (np.float16(0), np.float16(1)) if dtype == "halffloat" else (0, 1)
    if dtype == "bool":
        zero, one = False, True
    plain = {"halffloat": "f2", "float": "f4", "double": "f8", "uint64": "i8"}.get(dtype, dtype)
    array = pa.array([one, zero, one, None], kind)
    values = np.array([1, 0, 1, 0], plain)
    check(as_column(array, "x"), values, [False, False, False, True])
    check(as_column(array[:3], "x"), values[:3])
    check(as_column(array[1:], "x"), values[1:], [False, False, True])
    check(as_column(array[:0], "x"), values[:0])
    chunked = pa.chunked_array([array[:2], array[2:]])
    check(as_column(chunked, "x"), values, [False, False, False, True])
    check(as_column(pa.chunked_array([array[:2], array[:0]]), "x"), values[:2])
    check(as_column(pa.chunked_array([], kind), "x"), values[:0])
    if dtype != "halffloat":
        encoded = array.dictionary_encode()
        check(as_column(encoded, "x"), values, [False, False, False, True])
    check(as_column(array[0], "x"), [one], dtype=as_column([array[0].as_py()], "x").values.dtype)


@pytest.mark.parametrize("dtype", ["string", "large_string", "string_view"])
def test_arrow_strings(dtype):
    pa = pytest.importorskip("pyarrow")
    texts = [*TEXTS, None, "b"]
    array = pa.array(texts, getattr(pa, dtype)())
    check_texts(as_column(array, "x"), texts)
    check_texts(as_column(array[5:9], "x"), texts[5:9])
    check_texts(as_column(array[:0], "x"), [])
    chunked = pa.chunked_array([array[:3], array[:0], array[3:]])
    check_texts(as_column(chunked, "x"), texts)
    check_texts(as_column(pa.chunked_array([], array.type), "x"), [])


def test_arrow_dictionaries():
    pa = pytest.importorskip("pyarrow")
    first = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["b", "a", "unused"]))
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(["c", "b"]))
    check_texts(as_column(first, "x"), ["a", "b", None])
    check_texts(as_column(first[1:], "x"), ["b", None])
    chunked = pa.chunked_array([first, second])
    check_texts(as_column(chunked, "x"), ["a", "b", None, "c", "b", "b"])
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", None, "a"]))
    check_texts(as_column(nulls, "x"), ["a", None, "a"])
    numbers = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array([30, 10]))
    check(as_column(numbers, "x"), [10, 30, 0], [False, False, True])


def test_arrow_lists():
    pa = pytest.importorskip("pyarrow")
    rows = [[1, 2], [3, None], [5, 6]]
    values, nulls = [[1, 2], [3, 0], [5, 6]], np.array([[0, 0], [0, 1], [0, 0]], bool)
    for kind in (pa.list_(pa.int64(), 2), pa.list_(pa.int64()), pa.large_list(pa.int64())):
        array = pa.array(rows, kind)
        check(as_column(array, "x"), values, nulls)
        check(as_column(array[1:], "x"), values[1:], nulls[1:])
        check(as_column(pa.chunked_array([array[2:], array[:1]]), "x"), [[5, 6], [1, 2]])
    holed = pa.array([[1, 2], None, [5, 6]], pa.list_(pa.int64(), 2))
    check(as_column(holed, "x"), [[1, 2], [0, 0], [5, 6]], [[0, 0], [1, 1], [0, 0]])
    check(as_column(holed[1:], "x"), [[0, 0], [5, 6]], [[1, 1], [0, 0]])
    refused(pa.array([[1, 2], [3]]), "unequal length")
    refused(pa.array([[1, 2], None]), "no list in row 1")
    refused(pa.array([[[1]]], pa.list_(pa.list_(pa.int64(), 1), 1)), "dimensions")
    refused(pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "strings")


def test_decimals_of_arrow_beyond_64_bits_are_refused_with_words():
    """DuckDB's HUGEINT is such."""
    pa = pytest.importorskip("pyarrow")
    fits = pa.array([decimal.Decimal(2**53 + 1)], pa.decimal128(38, 0))
    check(as_column(fits, "x"), [2**53 + 1])
    refused(
        pa.array([decimal.Decimal(2**64)], pa.decimal128(38, 0)), "integers beyond 64 bits; pass"
    )


def test_lists_in_a_column_of_objects_are_rows():
    """As pandas has them: arrays where it has read Parquet, lists where a user made them."""
    pd = pytest.importorskip("pandas")
    for rows in ([[1, 2], [3, 4]], [np.array([1, 2]), np.array([3, 4])]):
        check(as_column(pd.Series(rows), "x"), [[1, 2], [3, 4]])
    refused(pd.Series([[1, 2], [3]]), "rows of unequal length (1 in row 1, 2 in row 0)")
    refused(pd.Series([[1, 2], None]), "rows of different or too many dimensions (in row 1)")
    refused(pd.Series([[[1]], [[2]]]), "a list in row 0")


def test_arrow_extension_types_are_what_they_are_stored_as():
    pa = pytest.importorskip("pyarrow")

    class Celsius(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.float64(), "test.celsius")

        def __arrow_ext_serialize__(self):
            return b""

        def __str__(self):
            return "Celsius"

    degrees = pa.ExtensionArray.from_storage(Celsius(), pa.array([1.0, 2.0]))
    for values in (degrees, pa.chunked_array([degrees])):
        check(as_column(values, "x"), [1.0, 2.0])


def test_arrow_tables():
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"a": [1, 2], "b": [0.5, 1.5]})
    check(as_column(batch.column("a"), "x"), [1, 2])
    check(as_column(batch, "x"), [[1, 0.5], [2, 1.5]])
    check(as_column(pa.Table.from_batches([batch, batch]), "x"), [[1, 0.5], [2, 1.5]] * 2)
    check(as_column(pa.nulls(2), "x"), [0.0, 0.0], [True, True])


def test_arrow_refused():
    pa = pytest.importorskip("pyarrow")
    check(as_column(pa.array([decimal.Decimal("1.5"), None]), "x"), [1.5, 0], [False, True])
    check(as_column(pa.array([decimal.Decimal(2**62)]), "x"), [2**62])
    refused(pa.array([decimal.Decimal(2**70)]), "integers beyond 64 bits")
    refused(pa.array([datetime.date(2020, 1, 1)]), "date32", "cast")
    refused(pa.array([datetime.datetime(2020, 1, 1)]), "timestamp", "cast")
    refused(pa.array([b"a"]), "binary")
    refused(pa.array([{"a": 1}]), "struct")
    check(as_column(pa.array([2**63], pa.uint64()), "x"), np.array([2**63], np.uint64))


# --- tensors -------------------------------------------------------------------------------------


def test_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.5, 2.5, 3.5])
    column = as_column(tensor, "x")
    check(column, np.array([1.5, 2.5, 3.5], "f4"))
    assert not column.owned
    assert np.may_share_memory(column.values, tensor.numpy())
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float64):
        like = torch.tensor([1, 0, 1]).to(dtype)
        check(as_column(like, "x"), like.numpy())
    check(as_column(tensor.to(torch.bfloat16), "x"), np.array([1.5, 2.5, 3.5], "f4"))
    check(as_column(tensor.clone().requires_grad_(), "x"), tensor.numpy())
    check(as_column(torch.nn.Parameter(tensor), "x"), tensor.numpy())
    check(as_column(tensor.bfloat16().requires_grad_(), "x"), tensor.numpy())
    matrix = torch.arange(6).reshape(2, 3)
    check(as_column(matrix.T, "x"), matrix.numpy().T)
    check(as_column(matrix[:, 1], "x"), [1, 4])
    check(as_column(torch.tensor(2.5), "x"), np.array([2.5], "f4"))
    check(as_column([torch.tensor(1.5), torch.tensor(2.5)], "x"), np.array([1.5, 2.5], "f4"))
    check(as_column([matrix[0], matrix[1]], "x"), matrix.numpy())
    refused(torch.tensor([1j]), "complex")
    refused(torch.zeros(2, 2, 2), "(2, 2, 2)")
    refused(torch.zeros(2).to_sparse(), "Tensor")
    refused(torch.zeros(2, device="meta"), "Tensor")


def test_jax():
    jnp = pytest.importorskip("jax.numpy")
    for dtype in ("bool", "int32", "float16", "float32"):
        check(as_column(jnp.array([1, 0, 1], dtype), "x"), np.array([1, 0, 1], dtype))
    check(as_column(jnp.array([1.5, 2], jnp.bfloat16), "x"), np.array([1.5, 2], "f4"))
    check(as_column(jnp.array([[1.5], [2]], jnp.bfloat16), "x"), np.array([[1.5], [2]], "f4"))
    check(as_column(jnp.bfloat16(1.5), "x"), np.array([1.5], "f4"))
    check(as_column(jnp.array([1, 2], jnp.int4), "x"), np.array([1, 2], "i1"))
    check(as_column([jnp.float32(1), jnp.float32(2)], "x"), np.array([1, 2], "f4"))
    refused(jnp.array([1j]), "complex")


def test_tensorflow():
    tf = pytest.importorskip("tensorflow")
    check(as_column(tf.constant([1.5, 2]), "x"), np.array([1.5, 2], "f4"))
    check(as_column(tf.Variable([1.5, 2]), "x"), np.array([1.5, 2], "f4"))
    check(as_column(tf.constant([1.5, 2], tf.bfloat16), "x"), np.array([1.5, 2], "f4"))


def test_foreign_libraries_are_not_imported():
    import subprocess

    code = (
        "import sys, streammetrics.core.columns.conversion as a; a.as_column([1, 2], 'x'); "
        "print({'pandas', 'polars', 'pyarrow', 'torch', 'jax', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
