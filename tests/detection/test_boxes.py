"""Boxes: COCO's numbers, ties, bounds, what rows may be, and what they may not."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.detection import compressed, evaluated, images, masks, precision, recall
from pycocotools import mask as coco_mask

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.columns.conversion import as_column
from streammetrics.statistics.boxes import Masks

COCO = {
    "map": precision(),
    "map_50": precision(iou=0.5),
    "map_75": precision(iou=0.75),
    "map_small": precision(area="small"),
    "map_medium": precision(area="medium"),
    "map_large": precision(area="large"),
    "mar_1": recall(max_detections=1),
    "mar_10": recall(max_detections=10),
    "mar_100": recall(),
    "mar_small": recall(area="small"),
    "mar_medium": recall(area="medium"),
    "mar_large": recall(area="large"),
}


def rows_of(boxes, labels, found, names, scores):
    columns = ("true_boxes", "true_labels", "pred_boxes", "pred_labels", "pred_scores")
    return dict(zip(columns, (boxes, labels, found, names, scores), strict=True))


ONE = rows_of([[[0, 0, 10, 10]]], [["cat"]], [[[0, 0, 10, 9]]], [["cat"]], [[0.5]])


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_the_twelve_numbers_of_coco(seed):
    rows = images(np.random.default_rng(seed), 60)
    suite = sm.MetricSet({name: metric.copy() for name, metric in COCO.items()}).update(rows)
    np.testing.assert_allclose(list(suite.compute().values()), evaluated(rows).stats, rtol=1e-12)
    assert all(suite[name].exact for name in COCO)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_the_twelve_numbers_of_masks(seed):
    rows = masks(np.random.default_rng(seed), 40)
    names = ("iou", "area", "max_detections")
    metrics = {
        key: type(metric)(box_format="rle", **{name: getattr(metric, name) for name in names})
        for key, metric in COCO.items()
    }
    suite = sm.MetricSet(metrics).update(rows)
    values = [-1 if math.isnan(value) else value for value in suite.compute().values()]
    np.testing.assert_allclose(values, evaluated(rows).stats, rtol=1e-12)


@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=1, max_size=6))
def test_runs_of_masks_are_their_pixels(rows):
    maps = [np.array(row).reshape(3, 4) for row in rows]
    held = Masks.of(as_column([*map(compressed, maps)], "masks"))
    assert held.areas.tolist() == [mask.sum() for mask in maps]
    assert (held.pixels == 12).all()
    one, other = np.divmod(np.arange(len(maps) ** 2), len(maps))
    shared = [(maps[a] & maps[b]).sum() for a, b in zip(one, other, strict=True)]
    assert held[one].shared(held[other]).tolist() == shared


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # pycocotools
@given(st.text(st.characters(min_codepoint=1, max_codepoint=200), max_size=12))
def test_a_text_is_the_mask_of_pycocotools_or_is_refused(text):
    """Lengths that go beyond what is written, or below 0, are no mask; others are read alike."""
    (pixels,) = Masks.of(as_column([text], "masks")).pixels.tolist() if text else [0]
    if not 0 < pixels < 1 << 20:
        return
    held = Masks.of(as_column([text], "masks"))
    told = {"size": [pixels, 1], "counts": text}
    assert held.areas.tolist() == [coco_mask.area(told)]
    assert held.shared(held).tolist() == [coco_mask.decode(told).sum()]


@pytest.mark.parametrize(
    ("pred", "told"),
    [
        (["04", "~~"], "not valid in 1 row, first in row 1; a mask is COCO's .* run lengths"),
        (["04", ""], "not valid in 1 row, first in row 1"),
        (["04", "0P"], "not valid in 1 row, first in row 1"),
        (["04", "0PPPPPPP1"], "not valid in 1 row, first in row 1"),
        (["04", "0401O"], "not valid in 1 row, first in row 1"),
        (["04", "05"], "images of different sizes in 1 row, first in row 1"),
    ],
)
def test_what_is_not_a_mask_is_refused(pred, told):
    rows = rows_of([["04"], ["13"]], [[1], [1]], [[each] for each in pred], [[1], [1]], [[0.5]] * 2)
    metric = sm.BoxAverageRecall(box_format="rle")
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=told):
        metric.update(**rows)
    with pytest.raises(sm.InvalidBatchError, match="true_boxes holds numbers; a mask is"):
        metric.update(**ONE)
    with pytest.raises(sm.InvalidBatchError, match="holds text; a box is four numbers"):
        sm.BoxAverageRecall().update(**rows)
    assert metric.to_bytes() == before


def test_the_example_of_torchmetrics():
    rows = rows_of([[[214, 41, 562, 285]]], [[0]], [[[258, 41, 606, 285]]], [[0]], [[0.536]])
    value = {name: sm.score(name, **rows) for name in ("map_50", "map_75", "map_large", "mar_1")}
    assert value == {"map_50": 1.0, "map_75": 1.0, "map_large": 0.6, "mar_1": 0.6}
    assert sm.score(sm.BoxAveragePrecision(), **rows) == pytest.approx(0.6)
    with pytest.warns(sm.UndefinedMetricWarning, match="BoxAveragePrecision"):
        assert math.isnan(sm.score("map_small", **rows))


def test_labels_that_are_whole_floats_are_integers():
    one = rows_of([[[0, 0, 10, 10]]], [[3]], [[[0, 0, 10, 9]]], [[3]], [[0.5]])
    floats = {**one, "true_labels": [[3.0]], "pred_labels": [[3.0]]}
    for metric in (sm.BoxAveragePrecision(), sm.BoxAveragePrecision(average=None)):
        states = {metric.copy().update(**rows).to_bytes() for rows in (one, floats)}
        assert len(states) == 1


def test_boxes_of_one_score_come_in_together_whatever_the_order_of_images():
    box = [[0, 0, 10, 10]]
    found, lost = (box, [1], box, [1], [0.5]), ([], [], box, [1], [0.5])
    values = [
        sm.score(sm.BoxAveragePrecision(iou=0.5), **rows_of(*map(list, zip(*both, strict=True))))
        for both in ((found, lost), (lost, found))
    ]
    assert values == [0.5, 0.5]  # pycocotools says 1 of the one and 0.5 of the other


def test_of_alike_boxes_of_an_image_the_order_decides_who_is_matched():
    true = [[0, 0, 10, 10], [0, 20, 10, 30]]
    near = [[0, 0, 10, 10], [0, 0, 10, 10]]
    rows = rows_of([true], [[1, 1]], [near], [[1, 1]], [[0.5, 0.5]])
    assert sm.score(sm.BoxAverageRecall(iou=0.5), **rows) == 0.5


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_past_the_budget(seed):
    rows = images(np.random.default_rng(seed), 40)
    exact = precision(average=None).update(**rows).compute()
    metric = precision(average=None, max_bins=(2, 3, 5, 8, 16, 32)[seed]).update(**rows)
    low, high = metric.bounds()
    assert (low <= exact).all()
    assert (exact <= high).all()
    assert not metric.exact
    assert (low < high).any()
    assert ((low <= metric.compute()) & (metric.compute() <= high)).all()
    width = high - low
    wider = precision(average=None, max_bins=2).update(**rows).bounds()
    assert (width <= wider.high - wider.low + 1e-12).all()


def test_bounds_hold_for_all_scores_that_give_one_state():
    """Hits and misses, of which two and two have scores next to each other, in one cell."""
    rng = np.random.default_rng(0)
    near, far = [0, 0, 10, 10], [50, 50, 60, 60]
    found, sides = {}, {}
    for _ in range(60):
        steps = [
            place + 4 * half for _ in "xy" for half in (0, 1) for place in rng.permutation(4)[:2]
        ]
        scores = [[0.5 + step * 2.0**-52] for step in steps]
        rows = rows_of([[near]] * 8, [[1]] * 8, [[near]] * 4 + [[far]] * 4, [[1]] * 8, scores)
        coarse = sm.BoxAveragePrecision(iou=0.5, max_bins=2).update(**rows)
        blob = coarse.to_bytes()
        sides[blob] = coarse.bounds()
        found.setdefault(blob, set()).add(sm.score(sm.BoxAveragePrecision(iou=0.5), **rows))
    assert max(map(len, found.values())) > 3
    for blob, values in found.items():
        assert sides[blob].low <= min(values)
        assert max(values) <= sides[blob].high


def test_images_whose_boxes_all_match_crowds_add_nothing():
    """A batch without a box that counts was dropped, with an error."""
    crowd = {**ONE, "true_crowd": [[1]]}
    metric = sm.BoxAveragePrecision()
    with pytest.warns(sm.UndefinedMetricWarning, match="BoxAveragePrecision"):
        assert math.isnan(metric.update(**crowd).compute())
    assert metric.update(**ONE).compute() == metric.copy().reset().update(**ONE).compute()
    one_by_one, rows = precision(), images(np.random.default_rng(3), 30)
    for place in range(30):
        one_by_one.update(**{name: column[place : place + 1] for name, column in rows.items()})
    assert one_by_one.to_bytes() == precision().update(**rows).to_bytes()


def test_forms_of_boxes():
    rng = np.random.default_rng(1)
    corner, size = rng.integers(0, 50, (2, 30, 2)), 2 * rng.integers(1, 20, (2, 30, 2))
    scores, labels = rng.random((3, 10)), [[1] * 10] * 3
    values = []
    for form in ("xyxy", "xywh", "cxcywh"):
        boxes = {
            "xyxy": np.concatenate([corner, corner + size], axis=2),
            "xywh": np.concatenate([corner, size], axis=2),
            "cxcywh": np.concatenate([corner + size // 2, size], axis=2),
        }[form].reshape(2, 3, 10, 4)
        metric = sm.BoxAveragePrecision(box_format=form, iou=0.2)
        values.append(metric.update(boxes[0], labels, boxes[1], labels, scores).compute())
    assert values[0] == values[1] == values[2] > 0


def test_without_classes_all_boxes_are_of_one():
    rows = images(np.random.default_rng(2), 30)
    alike = {
        name: [np.zeros_like(row) for row in column] if "labels" in name else column
        for name, column in rows.items()
    }
    assert (
        precision(average="micro").update(**rows).compute() == precision().update(**alike).compute()
    )


def test_columns_of_lists_of_any_library():
    rows = images(np.random.default_rng(3), 20)
    lists = {name: [row.tolist() for row in column] for name, column in rows.items()}
    expected = precision().update(**rows).to_bytes()
    for columns in (
        lists,
        pd.DataFrame(lists),
        pl.DataFrame(lists, strict=False),
        pa.table(lists),
        pa.concat_tables([pa.table(lists).slice(0, 7), pa.table(lists).slice(7)]),
    ):
        suite = sm.MetricSet({"ap": precision()}).update(columns)
        assert suite["ap"].to_bytes() == expected
    one_by_one = precision()
    for place in range(20):
        one_by_one.update(**{name: column[place : place + 1] for name, column in lists.items()})
    assert one_by_one.to_bytes() == expected


def test_sizes_of_blocks_cannot_be_seen(monkeypatch):
    rows = images(np.random.default_rng(4), 40)
    expected = precision().update(**rows).to_bytes()
    for pairs in (1, 7):
        monkeypatch.setattr(tuning, "OVERLAPS", pairs)
        assert precision().update(**rows).to_bytes() == expected


def test_images_in_slices():
    rows = images(np.random.default_rng(5), 30)
    night = np.arange(30) % 2
    suite = sm.MetricSet({"ap": precision(iou=0.5)})
    slices = sm.Slices(suite, by="night").update({**rows, "night": night})
    for key in (0, 1):
        own = {name: column[night == key] for name, column in rows.items()}
        assert slices[{"night": key}].to_bytes() == suite.copy().update(own).to_bytes()


def test_missing_images_are_left_out_if_that_is_asked_for():
    metric = sm.BoxAverageRecall(nan_policy="omit")
    metric.update(
        [[[0, 0, 1, 1]], None, [[0, 0, math.nan, 1]]],
        [[1], [2], [1]],
        [[[0, 0, 1, 1]], [], []],
        [[1], [], []],
        [[0.5], [], []],
    )
    assert (metric.compute(), metric.n_rows, metric.n_omitted) == (1.0, 1, 2)


def test_no_boxes_at_all():
    metric = sm.BoxAverageRecall().update([[], []], [[], []], [[], []], [[], []], [[], []])
    with pytest.warns(sm.UndefinedMetricWarning, match="BoxAverageRecall"):
        assert math.isnan(metric.compute())
    assert metric.n_rows == 2
    assert metric.update(**ONE).compute() == 0.9


def with_row(**wrong):
    """Return two images, the second of which has something else."""
    return {name: [*column, wrong.get(name, column[0])] for name, column in ONE.items()}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"pred_boxes": [[5, 0, 1, 1]]}, r"pred_boxes has a box of negative width or height in 1 "
         r"row, first in row 1 \(\[5.0, 0.0, 1.0, 1.0\]\); say box_format=.xywh."),
        ({"true_boxes": [[0, 0, math.inf, 1]]}, "true_boxes has an infinite number in 1 row, "
         "first in row 1"),
        ({"true_boxes": [[0, 0, math.nan, 1]]}, r"true_boxes is missing \(NaN or null\) in 1 row, "
         "first in row 1"),
        ({"pred_scores": [math.nan]}, r"pred_scores is missing \(NaN or null\) in 1 row, first in "
         "row 1"),
        ({"pred_scores": []}, "pred_scores is not one for each of pred_boxes in 1 row, first in "
         "row 1"),
        ({"true_labels": ["cat", "dog"]}, "true_labels is not one for each of true_boxes in 1 row"),
        ({"true_boxes": [[0, 0, 1]]}, "true_boxes.* in row 1"),
        ({"true_boxes": [0, 0, 1, 1]}, "true_boxes.* in row 1"),
        ({"true_boxes": None}, r"true_boxes is missing \(NaN or null\) in 1 row, first in row 1"),
        ({"true_boxes": 5}, "true_boxes holds single values, first in row 1: a row is a list, the "
         "boxes of an image"),
        ({"pred_labels": [1]}, "pred_labels"),
        ({"pred_scores": ["high"]}, "pred_scores"),
    ],
)  # fmt: skip
def test_what_no_image_has_is_told_by_its_row(wrong, told):
    metric = sm.BoxAveragePrecision().update(**ONE)
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=told):
        metric.update(**with_row(**wrong))
    assert metric.to_bytes() == before


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"true_crowd": [[2]]}, "true_crowd is neither 0 nor 1 in 1 row, first in row 0"),
        ({"true_areas": [[-1.0]]}, "true_areas is not an area, 0 or more in 1 row"),
        ({"true_areas": [[1.0, 2.0]]}, "true_areas is not one for each of true_boxes in 1 row"),
        ({"pred_scores": None}, "no column 'pred_scores'"),
        ({"true_boxes": [[[0, 0, 1, 1, 1]]]}, "true_boxes has boxes of 5 numbers, first in row 0; "
         "a box is four"),
        ({"true_boxes": [[0, 0, 1, 1]]}, "true_boxes has boxes of one number, first in row 0; a "
         "box is four"),
        ({"true_labels": [[0.5]]}, "true_labels is not a label"),
        ({"true_labels": [[7]]}, "true_labels and pred_labels must both hold strings or both"),
    ],
)  # fmt: skip
def test_what_no_column_is_is_told(wrong, told):
    with pytest.raises(sm.InvalidBatchError, match=told):
        sm.BoxAveragePrecision().update(**{**ONE, **wrong})


def test_labels_of_another_kind_do_not_join():
    metric = sm.BoxAverageRecall().update(**ONE)
    with pytest.raises(sm.InvalidBatchError, match="labels: 'integers' here, 'strings' in rows"):
        metric.update(**{**ONE, "true_labels": [[7]], "pred_labels": [[7]]})


@pytest.mark.parametrize("iou", [0, 1.5, (), (0.5, 0.5), (0.5, 0.0), tuple(range(40))])
def test_thresholds_are_shares(iou):
    with pytest.raises(ValueError, match="iou="):
        sm.BoxAveragePrecision(iou=iou)
