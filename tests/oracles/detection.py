"""Boxes against pycocotools, masks against scikit-learn."""

from __future__ import annotations

import contextlib
import io
from itertools import product

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from sklearn.metrics import f1_score, jaccard_score

import streammetrics as sm
from oracles.base import Oracle

SIDE = 200.0
CLASSES = 2


def lists(rows):
    """Return lists as a column, one of them a row."""
    column = np.empty(len(rows), object)
    column[:] = rows
    return column


def sized(rng, n):
    sides = np.exp(rng.uniform(np.log(6), np.log(SIDE), (n, 2)))
    return np.hstack([rng.uniform(0, SIDE, (n, 2)), sides])


def image(rng):
    """Return true boxes, and predicted ones, of which some are near them."""
    true = sized(rng, rng.integers(0, 6))
    labels = rng.integers(0, CLASSES, len(true))
    places = np.repeat(np.arange(len(true)), rng.integers(0, 4, len(true)))
    near = true[places] + true[places][:, [2, 3, 2, 3]] * rng.normal(0, 0.12, (len(places), 4))
    pred = np.vstack([near, sized(rng, rng.integers(0, 4))])
    pred[:, 2:] = np.abs(pred[:, 2:]) + 1
    names = np.concatenate([labels[places], rng.integers(0, CLASSES, len(pred) - len(places))])
    crowd = (rng.random(len(true)) < 0.15).astype(np.int64)
    areas = true[:, 2] * true[:, 3] * rng.uniform(0.5, 1, len(true))
    return true, labels, crowd, areas, pred, names, rng.random(len(pred))


def images(rng, n):
    columns = ("true_boxes", "true_labels", "true_crowd", "true_areas")
    columns += ("pred_boxes", "pred_labels", "pred_scores")
    held = zip(*[image(rng) for _ in range(n)], strict=True) if n else [()] * len(columns)
    return {name: lists(rows) for name, rows in zip(columns, map(list, held), strict=True)}


def plain_images(rng, n):
    rows = images(rng, n)
    return {name: rows[name] for name in rows if name not in {"true_crowd", "true_areas"}}


HEIGHT, WIDTH = 120, 150


def blob(rng, near=None):
    """Return a mask of some discs; one that is near another has its edges shifted."""
    y, x = np.ogrid[:HEIGHT, :WIDTH]
    if near is not None:
        return np.roll(near, rng.integers(-3, 4, 2), (0, 1)) ^ (rng.random(near.shape) < 0.02)
    radius, at = np.exp(rng.uniform(1.5, 4, 3)), rng.uniform(0, [HEIGHT, WIDTH], (3, 2))
    discs = [(y - a) ** 2 + (x - b) ** 2 < r * r for r, (a, b) in zip(radius, at, strict=True)]
    return np.logical_or.reduce(discs[: rng.integers(1, 4)])


def compressed(mask):
    """Return the run lengths of a mask (H, W) as COCO's text."""
    return coco_mask.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()


def masks(rng, n):
    """Return images of masks, true ones and predicted ones, of which some are near them."""
    rows = {name: [] for name in images(rng, 0)}
    for _ in range(n):
        true = [blob(rng) for _ in range(rng.integers(0, 5))]
        labels = rng.integers(0, CLASSES, len(true)).tolist()
        places = np.repeat(np.arange(len(true)), rng.integers(0, 3, len(true))).tolist()
        others = rng.integers(0, 3)
        pred = [blob(rng, true[place]) for place in places] + [blob(rng) for _ in range(others)]
        names = [labels[place] for place in places] + rng.integers(0, CLASSES, others).tolist()
        crowd = (rng.random(len(true)) < 0.15).astype(int).tolist()
        areas = [float(mask.sum()) for mask in true]
        texts = [list(map(compressed, each)) for each in (true, pred)]
        held = (texts[0], labels, crowd, areas, texts[1], names, rng.random(len(pred)).tolist())
        for column, row in zip(rows.values(), held, strict=True):
            column.append(row)
    return {name: lists(column) for name, column in rows.items()}


def shape_of(shape):
    """Return an entry's shape: a box of left, top, width and height, or the text of a mask."""
    if isinstance(shape, str):
        return {"segmentation": {"size": [HEIGHT, WIDTH], "counts": shape}}
    return {"bbox": shape.tolist()}


def area_of(shape):
    if isinstance(shape, str):
        return float(coco_mask.area(shape_of(shape)["segmentation"]))
    return float(shape[2] * shape[3])


def as_coco(rows):
    """Return images as COCO's annotations and results."""
    truths, found = [], []
    for number, row in enumerate(zip(*rows.values(), strict=True), 1):
        each = dict(zip(rows, row, strict=True))
        sizes = [*map(area_of, each["true_boxes"])]
        crowd = each.get("true_crowd", np.zeros(len(sizes)))
        of_truths = (each["true_boxes"], each["true_labels"], crowd, each.get("true_areas", sizes))
        for box, label, of_crowd, area in zip(*of_truths, strict=True):
            more = {"id": len(truths) + 1, "area": float(area), "iscrowd": int(of_crowd)}
            truths.append({"image_id": number, "category_id": int(label), **shape_of(box), **more})
        of_found = (each["pred_boxes"], each["pred_labels"], each["pred_scores"])
        found += [
            {"image_id": number, "category_id": int(label), **shape_of(box), "score": score}
            for box, label, score in zip(*of_found, strict=True)
        ]
    dataset = {
        "images": [
            {"id": number + 1, "height": HEIGHT, "width": WIDTH}
            for number in range(len(rows["true_boxes"]))
        ],
        "annotations": truths,
        "categories": [{"id": label} for label in range(CLASSES)],
    }
    return dataset, found


def evaluated(rows, ious=None):
    """Return what COCOeval makes of images, of boxes or of masks."""
    dataset, found = as_coco(rows)
    with contextlib.redirect_stdout(io.StringIO()):
        data = COCO()
        data.dataset = dataset
        data.createIndex()
        if not found:
            return None
        kind = "segm" if "segmentation" in found[0] else "bbox"
        evaluation = COCOeval(data, data.loadRes(found), kind)
        if ious is not None:
            evaluation.params.iouThrs = np.array(ious)
        evaluation.evaluate()
        evaluation.accumulate()
        if ious is None:
            evaluation.summarize()
    return evaluation


def maps(rng, n):
    """Return maps of n images, of which category 9 is void and 1 and 2 are things."""
    found = []
    for _ in range(n):
        true = np.repeat(rng.choice([1, 2, 5, 6, 9], (8, 1)), 5, axis=0)
        true = np.hstack([true, np.repeat(rng.integers(0, 3, (8, 1)), 5, axis=0)])
        other = np.column_stack([rng.choice([1, 2, 5, 6, 9], 40), rng.integers(0, 3, 40)])
        pred = np.where(rng.random((40, 1)) < 0.75, true + np.array([0, 7]), other)
        found.append((true, pred))
    return {name: lists([each[k] for each in found]) for k, name in enumerate(("y_true", "y_pred"))}


def panoptic(things, stuffs, modified=False, lenient=False):
    """Return the reference: segments as sets of pixels, one image after the other.

    Void is that of panopticapi, `lenient` that of torchmetrics.
    """

    def segments(pixels):
        found = {}
        for place, (category, instance) in enumerate(pixels.tolist()):
            key = (category, instance if category in things else 0)
            key = key if category in {*things, *stuffs} else None
            found.setdefault(key, set()).add(place)
        return found.pop(None, set()), found

    def value(y_true, y_pred):
        totals = {k: [0, 0, 0, 0.0] for k in (*things, *stuffs)}
        for one, other in zip(y_true, y_pred, strict=True):
            (void, true), (lost, pred) = segments(one), segments(other)
            matched = set()
            lost = lost if lenient else set()
            for (t, mine), (p, theirs) in product(true.items(), pred.items()):
                if t[0] == p[0] and mine & theirs:
                    iou = len(mine & theirs) / len((mine - lost) | (theirs - void))
                    loose = modified and t[0] in stuffs
                    if iou > 0.5 and not loose:
                        matched |= {("t", t), ("p", p)}
                        totals[t[0]][0] += 1
                    totals[t[0]][3] += iou if iou > 0.5 or loose else 0.0
            sides = (("t", true, lost, 2), ("p", pred, void, 1))
            for side, held, outside, kind in sides:
                for key, pixels in held.items():
                    if modified and key[0] in stuffs:
                        totals[key[0]][0] += side == "t"
                    elif (side, key) not in matched and 2 * len(pixels & outside) <= len(pixels):
                        totals[key[0]][kind] += 1
        each = [iou / (tp + (fp + fn) / 2) for tp, fp, fn, iou in totals.values() if tp + fp + fn]
        return np.mean(each) if each else np.nan

    return value


def summary(place):
    """Return one of the twelve numbers that COCO has, which is -1 where there is none."""

    def value(**rows):
        found = evaluated(rows).stats[place]
        return found if found >= 0 else np.nan

    return value


def mean_at(what, *ious):
    """Return the mean over thresholds and classes, of all areas and 100 boxes."""

    def value(**rows):
        found = evaluated(rows, ious).eval[what][..., 0, 2]
        return found[found > -1].mean()

    return value


def of_classes(iou):
    """Return the average precision of each class at one of the thresholds."""
    return lambda **rows: evaluated(rows).eval["precision"][iou, :, :, 0, 2].mean(axis=0)


def precision(**options):
    return sm.BoxAveragePrecision(box_format="xywh", **options)


def recall(**options):
    return sm.BoxAverageRecall(box_format="xywh", **options)


def pixels(rng, n):
    true = rng.integers(0, 4, n)
    return {"y_true": true, "y_pred": np.where(rng.random(n) < 0.7, true, rng.integers(0, 4, n))}


def weighted_pixels(rng, n):
    return {**pixels(rng, n), "sample_weight": rng.integers(0, 4, n) / 2}


def averaged(score, average, **options):
    """Return scikit-learn's value of columns."""
    return lambda y_true, y_pred, **weight: score(
        y_true, y_pred, average=average, **options, **weight
    )


# The first of each is what all laws are tried with: few thresholds have few outcomes.
ORACLES = [
    Oracle(
        sm.PanopticQuality(things=(1, 2), stuffs=(5, 6), unknown="void"),
        maps,
        panoptic((1, 2), (5, 6)),
        n=40,
    ),
    Oracle(
        sm.ModifiedPanopticQuality(things=(1, 2), stuffs=(5, 6), unknown="void"),
        maps,
        panoptic((1, 2), (5, 6), modified=True),
        n=40,
    ),
    *(
        Oracle(
            quality(things=(1, 2), stuffs=(5, 6), unknown="void", predicted_void="ignored"),
            maps,
            panoptic((1, 2), (5, 6), modified=quality is sm.ModifiedPanopticQuality, lenient=True),
            n=40,
        )
        for quality in (sm.PanopticQuality, sm.ModifiedPanopticQuality)
    ),
    Oracle(precision(iou=(0.45, 0.8)), images, mean_at("precision", 0.45, 0.8), n=12),
    Oracle(recall(iou=(0.45, 0.8)), images, mean_at("recall", 0.45, 0.8), n=12),
    Oracle(precision(), images, summary(0), n=12),
    Oracle(precision(iou=0.75), images, summary(2), n=12),
    Oracle(precision(area="medium"), images, summary(4), n=12),
    Oracle(precision(iou=0.5, average=None), images, of_classes(0), n=12),
    Oracle(recall(), images, summary(8), n=12),
    Oracle(recall(max_detections=1), images, summary(6), n=12),
    Oracle(recall(area="large"), images, summary(11), n=12),
    Oracle(sm.BoxAveragePrecision(box_format="rle"), masks, summary(0), n=12),
    Oracle(sm.BoxAverageRecall(box_format="rle", area="small"), masks, summary(9), n=12),
    Oracle(sm.MeanIoU(), pixels, averaged(jaccard_score, "macro")),
    Oracle(sm.MeanIoU(average="weighted"), weighted_pixels, averaged(jaccard_score, "weighted")),
    Oracle(
        sm.MeanIoU(average=None, background=0),
        pixels,
        averaged(jaccard_score, None, labels=[1, 2, 3]),
    ),
    Oracle(
        sm.Dice(average="micro", background=0),
        pixels,
        averaged(f1_score, "micro", labels=[1, 2, 3]),
    ),
    Oracle(sm.Dice(labels=[3, 1, 0, 2]), weighted_pixels, averaged(f1_score, "macro")),
]
