"""No warning of NumPy escapes, whatever type numbers, labels and weights come in."""

import warnings

import numpy as np
import pytest

import streammetrics as sm

FLOATS = [np.float16, np.float32, np.float64]
WEIGHTS = [
    np.array([2.0**63, 2.0**64, 1.0]),
    np.array([2**62, 1, 2**53], np.uint64),
    np.array([True, False, True]),
    np.array([60000.0, 1.0, 0.5], np.float16),
]
ROWS = {
    sm.Accuracy: ([0, 1, 1], [0, 1, 0]),
    sm.ConfusionMatrix: ([0, 1, 2], [0, 1, 0]),
    sm.ROCAUC: ([0, 1, 1], [0.1, 0.5, 0.4]),
    sm.LogLoss: ([0, 1, 1], [0.1, 0.5, 0.4]),
    sm.CalibrationError: ([0, 1, 1], [0.1, 0.5, 0.4]),
    sm.MAE: ([30000, -30000, 1], [-30000, 30000, 2]),
    sm.MSE: ([30000, -30000, 1], [-30000, 30000, 2]),
    sm.R2: ([30000, -30000, 1], [-30000, 30000, 2]),
}


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("metric", ROWS, ids=lambda metric: metric.__name__)
def test_short_floats_are_taken_as_the_numbers_they_are(metric, dtype):
    short = [np.array(column).astype(dtype) for column in ROWS[metric]]
    long = [column.astype(np.float64) for column in short]
    assert metric().update(*short) == metric().update(*long)
    assert str(metric().update(*short).compute()) == str(metric().update(*long).compute())


@pytest.mark.parametrize("weight", WEIGHTS, ids=["2**63", "uint64", "bool", "float16"])
@pytest.mark.parametrize("metric", ROWS, ids=lambda metric: metric.__name__)
def test_weights_of_any_type_are_their_numbers(metric, weight):
    mine = metric().update(*ROWS[metric], sample_weight=weight)
    assert mine == metric().update(*ROWS[metric], sample_weight=weight.astype(np.float64))
    assert np.isfinite(np.asarray(mine.compute(), np.float64)).all()


@pytest.mark.parametrize("column", [[1.0, 2.0, 4.0], [2**60 + 1, 5, 7]])
def test_one_column_tables_are_columns_in_regression(column):
    flat, table = np.array(column), np.array(column)[:, None]
    for metric in (sm.MAE(), sm.R2(), sm.MaxError(), sm.MedianAbsoluteError()):
        expected = metric.copy().update(flat, [3.0, 2.0, 1.0])
        for y, p in ((table, [3.0, 2.0, 1.0]), (flat, [[3.0], [2.0], [1.0]])):
            assert metric.copy().update(y, p) == expected
