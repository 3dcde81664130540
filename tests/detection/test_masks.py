"""Masks of any shape, and scores of their classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score, jaccard_score

import streammetrics as sm


def maps(n=3):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, (n, 5, 6))
    return true, np.where(rng.random(true.shape) < 0.6, true, rng.integers(0, 4, true.shape))


def test_maps_of_any_shape_are_pixels():
    true, pred = maps()
    flat = jaccard_score(true.ravel(), pred.ravel(), average="macro")
    assert sm.MeanIoU().update(true, pred).compute() == pytest.approx(flat)
    scores = np.moveaxis(np.eye(4)[pred], -1, 1)  # (n, K, H, W)
    assert sm.MeanIoU().update(true, scores).compute() == pytest.approx(flat)
    image_by_image = sm.MeanIoU()
    for one, other in zip(true, pred, strict=True):
        image_by_image.update(one, other)
    assert image_by_image.to_bytes() == sm.MeanIoU().update(true, pred).to_bytes()


def test_a_pixel_to_be_ignored_is_as_if_absent():
    true, pred = maps()
    kept = true != 3
    expected = f1_score(true[kept], pred[kept], average="macro", labels=[0, 1, 2])
    metric = sm.Dice(ignore_index=3, background=3).update(true, pred)
    assert metric.compute() == pytest.approx(expected)


def test_classes_without_pixels_are_left_out_of_the_mean():
    metric = sm.MeanIoU(labels=[0, 1, 2]).update([0, 0, 1], [0, 1, 1])
    assert metric.compute() == 0.5
    with pytest.warns(sm.UndefinedMetricWarning, match="MeanIoU"):
        each = sm.MeanIoU(labels=[0, 1, 2], average=None).update([0, 0, 1], [0, 1, 1]).compute()
    assert math.isnan(each[2])
    with pytest.warns(sm.UndefinedMetricWarning, match="Dice"):
        assert math.isnan(sm.Dice(background=0).update([0, 0], [0, 0]).compute())


def test_one_hot_maps_are_told():
    true, pred = (np.moveaxis(np.eye(4, dtype=int)[each], -1, 1) for each in maps())
    for maker in (np.asarray, pytest.importorskip("torch").tensor):
        with pytest.warns(UserWarning, match=r"one-hot of 4 classes.*y_true\.argmax\(1\)"):
            sm.MeanIoU().update(maker(true), maker(pred))
    binary = (each[:, None] % 2 for each in maps())  # (n, 1, H, W), as many masks are
    assert sm.Dice().update(*binary).n_rows == 90
    frames = (each.reshape(1, 3, 5, 6) for each in maps())  # (n, T, H, W) of classes
    assert sm.Dice().update(*frames).n_rows == 90


@pytest.mark.parametrize("metric", [sm.MeanIoU, sm.Dice])
@pytest.mark.parametrize(
    ("true", "pred"), [(2, 2), (2, 0), (0, 2)], ids=["right", "missed", "false"]
)
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_a_class_of_one_pixel_counts_as_any_other(metric, true, pred, weight):
    """True, predicted or both, however little the pixel weighs."""
    y_true, y_pred = [0, 0, 1, 1, true], [0, 0, 1, 0, pred]
    weights = [1.0, 1.0, 1.0, 1.0, weight]
    score = jaccard_score if metric is sm.MeanIoU else f1_score
    for average in ("macro", "weighted", "micro", None):
        found = metric(average=average).update(y_true, y_pred, sample_weight=weights).compute()
        expected = score(
            y_true, y_pred, average=average, sample_weight=weights, labels=[0, 1, 2],
            zero_division=0.0,
        )  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-14)
