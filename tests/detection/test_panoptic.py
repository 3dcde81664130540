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
    theirs = pytest.importorskip("torchmetrics.detection", reason="pip install --group peers")
    import torch

    rows = maps(np.random.default_rng(seed), 3)
    true, pred = (torch.tensor(np.stack(rows[key])).reshape(3, 8, 5, 2) for key in rows)
    all_three = name == "PanopticQuality"  # which the other has not
    options = {"return_sq_and_rq": True} if all_three else {}
    peer = getattr(theirs, name)({1, 2}, {5, 6}, allow_unknown_preds_category=True, **options)
    values = [
        getattr(sm, name)(**CLASSES, unknown="void", predicted_void="ignored", of=of)
        .update(true, pred)
        .compute()
        for of in ("panoptic", "segmentation", "recognition")[: 3 if all_three else 1]
    ]
    assert values == pytest.approx(np.atleast_1d(peer(pred, true).numpy()).tolist(), rel=1e-6)


def official(true, pred, categories):
    """Return the quality of one image as panopticapi's `pq_compute_single_core` counts it.

    Segments are numbered as there; 0 is void, and there are no crowds.
    """
    ids = {(9, 0): 0}
    for pixel in np.vstack([true, pred]).tolist():
        category, instance = pixel
        key = (category, instance if category in CLASSES["things"] else 0)
        ids.setdefault(key if category in categories else (9, 0), len(ids))
    segment = {number: category for (category, _), number in ids.items() if number}

    def numbered(pixels):
        keys = [
            (c, i if c in CLASSES["things"] else 0) if c in categories else (9, 0)
            for c, i in pixels.tolist()
        ]
        return np.array([ids[key] for key in keys])

    gt_map, pred_map = numbered(true), numbered(pred)
    gt_area = dict(zip(*np.unique(gt_map[gt_map > 0], return_counts=True), strict=True))
    pred_area = dict(zip(*np.unique(pred_map[pred_map > 0], return_counts=True), strict=True))
    pairs, counts = np.unique(np.stack([gt_map, pred_map]), axis=1, return_counts=True)
    crossed = dict(zip(map(tuple, pairs.T.tolist()), counts.tolist(), strict=True))
    stat = {category: [0, 0, 0, 0.0] for category in categories}  # tp, fp, fn, iou
    gt_matched, pred_matched = set(), set()
    for (gt, pred_label), intersection in crossed.items():
        if gt not in gt_area or pred_label not in pred_area or segment[gt] != segment[pred_label]:
            continue
        union = pred_area[pred_label] + gt_area[gt] - intersection - crossed.get((0, pred_label), 0)
        if intersection / union > 0.5:
            stat[segment[gt]][0] += 1
            stat[segment[gt]][3] += intersection / union
            gt_matched.add(gt)
            pred_matched.add(pred_label)
    for gt in gt_area.keys() - gt_matched:
        stat[segment[gt]][2] += 1
    for pred_label in pred_area.keys() - pred_matched:
        if crossed.get((0, pred_label), 0) / pred_area[pred_label] <= 0.5:
            stat[segment[pred_label]][1] += 1
    each = [iou / (tp + fp / 2 + fn / 2) for tp, fp, fn, iou in stat.values() if tp + fp + fn]
    return np.mean(each) if each else np.nan


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_qualities_are_those_of_the_official_scorer():
    rows = maps(np.random.default_rng(1), 60)
    for true, pred in zip(rows["y_true"], rows["y_pred"], strict=True):
        metric = sm.PanopticQuality(**CLASSES, unknown="void").update([true], [pred])
        value = official(np.asarray(true), np.asarray(pred), (1, 2, 5, 6))
        assert metric.compute() == pytest.approx(value, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("quality", [sm.PanopticQuality, sm.ModifiedPanopticQuality])
def test_a_model_gains_nothing_by_void(quality):
    true = np.array([[[1, 0]] * 6 + [[5, 0]] * 6])
    sure = np.array([[[1, 0]] * 6 + [[5, 0]] * 4 + [[1, 0]] * 2])
    unsure = np.array([[[1, 0]] * 6 + [[5, 0]] * 2 + [[9, 0]] * 4])
    values = [quality(**CLASSES, unknown="void").update(true, p).compute() for p in (sure, unsure)]
    assert values[0] > values[1]
    ignored = quality(**CLASSES, unknown="void", predicted_void="ignored").update(true, unsure)
    assert ignored.compute() > values[0]


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
        (
            [[[1, 0], [1, 1]]],
            [[[1, 0]]],
            "y_pred has another number of pixels than y_true in 1 row",
        ),
        ([[[1, 0, 2]]], [[[1, 0]]], "y_true has pixels of 3 numbers; pass two numbers per pixel"),
        ([[1, 0]], [[1, 0]], "y_true has pixels of one number"),
        (
            [[[1, 0.5]]],
            [[[1, 0]]],
            "y_true holds numbers that are not whole in 1 row, first in row 0",
        ),
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
        ValueError,
        match=r"expected (distinct categories, integers of at least 0|a tuple of integers)",
    ):
        sm.PanopticQuality(things=things, stuffs=stuffs)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("labels", [3], "do not match the categories"),
        ("segments", [2], "do not match the segments"),
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
