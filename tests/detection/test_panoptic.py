"""Segments: what matches, what is refused, and torchmetrics beside it."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.forging import arrays_of
from oracles.detection import maps

import streammetrics as sm

CLASSES = {"things": (1, 2), "stuffs": (5, 6)}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["PanopticQuality", "ModifiedPanopticQuality"])
def test_qualities_are_those_of_torchmetrics(name, seed):
    theirs = pytest.importorskip(
        "torchmetrics.detection", reason="pip install 'streammetrics[peers]'"
    )
    import torch

    rows = maps(np.random.default_rng(seed), 3)
    true, pred = (torch.tensor(np.stack(rows[key])).reshape(3, 8, 5, 2) for key in rows)
    all_three = name == "PanopticQuality"  # which the other has not
    options = {"return_sq_and_rq": True} if all_three else {}
    peer = getattr(theirs, name)({1, 2}, {5, 6}, allow_unknown_preds_category=True, **options)
    values = [
        getattr(sm, name)(**CLASSES, unknown="void", of=of).update(true, pred).compute()
        for of in ("panoptic", "segmentation", "recognition")[: 3 if all_three else 1]
    ]
    assert values == pytest.approx(np.atleast_1d(peer(pred, true).numpy()).tolist(), rel=1e-6)


def test_maps_have_any_shape():
    rows = maps(np.random.default_rng(0), 4)
    whole = sm.PanopticQuality(**CLASSES, unknown="void").update(**rows)
    square = {key: np.stack(rows[key]).reshape(4, 8, 5, 2) for key in rows}
    as_lists = {key: [each.reshape(8, 5, 2) for each in rows[key]] for key in rows}
    for other in (square, as_lists):
        metric = sm.PanopticQuality(stuffs=(6, 5), things=(2, 1), unknown="void").update(**other)
        assert metric.compute() == whole.compute()
    each = sm.PanopticQuality(**CLASSES, unknown="void", average=None).update(**rows).compute()
    assert list(each.to_dict()) == [1, 2, 5, 6]
    assert np.nanmean(each) == pytest.approx(whole.compute(), rel=1e-15)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_images_of_void_alone_say_nothing():
    metric = sm.PanopticQuality(**CLASSES, unknown="void").update([[[9, 0]], []], [[[1, 0]], []])
    assert np.isnan(metric.compute())
    assert metric.n_rows == 2


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([[[1, 0]]], [[[9, 0]]], 'y_pred has a category that is neither .* row 0; unknown="void"'),
        ([[[1, 0], [1, 1]]], [[[1, 0]]], "y_pred has not as many pixels as y_true in 1 row"),
        ([[[1, 0, 2]]], [[[1, 0]]], "y_true has pixels of 3 numbers; of each two are needed"),
        ([[1, 0]], [[1, 0]], "y_true has pixels of one number"),
        ([[[1, 0.5]]], [[[1, 0]]], "y_true holds what is no whole number in 1 row, first in row 0"),
        ([[[1, -1]]], [[[1, 0]]], "y_true has a negative category or instance in 1 row"),
        ([[["a", "b"]]], [[[1, 0]]], "y_true"),
    ],
)
def test_bad_maps_are_named(true, pred, message):
    metric = sm.PanopticQuality(**CLASSES)
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(true, pred)
    assert metric.to_bytes() == before


@pytest.mark.parametrize("things", [(), (1, 1), (1, 5), (-1,), (True,)])
def test_categories_are_distinct(things):
    stuffs = (5,) if things else ()
    with pytest.raises(
        ValueError, match="expected categories, finite integers from 0 on, none of them"
    ):
        sm.PanopticQuality(things=things, stuffs=stuffs)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("labels", [3], "not those of any categories"),
        ("segments", [2], "not those of any segments"),
        ("labels", [1, 2], "segments of labels are not positive, one for each"),
    ],
)
def test_counts_that_no_segments_have_are_no_state(name, value, message):
    metric = sm.PanopticQuality(**CLASSES).update([[[1, 0]]], [[[1, 0]]])
    (statistic,), arrays = metric.statistics(), arrays_of(metric.to_bytes())
    assert name in arrays
    with pytest.raises(sm.StateFormatError, match=message):
        statistic.restored({**arrays, name: np.array(value)})


def test_a_map_without_images_is_told():
    rows = maps(np.random.default_rng(0), 1)
    true, pred = (rows[key][0].reshape(8, 5, 2) for key in rows)
    metric = sm.PanopticQuality(**CLASSES, unknown="void")
    whole = metric.copy().update(true[None], pred[None])
    with pytest.warns(UserWarning, match=r"read as 8 images of 5 pixels each.*y_true\[None\]"):
        assert metric.copy().update(true, pred).n_rows == 8
    assert whole.n_rows == 1
    assert metric.copy().update(list(true), list(pred)).n_rows == 8
