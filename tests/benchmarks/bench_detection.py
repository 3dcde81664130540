"""Boxes of images."""

from __future__ import annotations

import contextlib
import io

import numpy as np
from measuring import Case
from peers import peer

import streammetrics as sm

coco, cocoeval = peer("pycocotools.coco"), peer("pycocotools.cocoeval")

CLASSES = 80
NUMBERS = {
    "map": sm.BoxAveragePrecision(box_format="xywh"),
    **{
        f"map_{area}": sm.BoxAveragePrecision(box_format="xywh", area=area)
        for area in ("small", "medium", "large")
    },
    **{
        f"mar_{most}": sm.BoxAverageRecall(box_format="xywh", max_detections=most)
        for most in (1, 10, 100)
    },
    **{
        f"mar_{area}": sm.BoxAverageRecall(box_format="xywh", area=area)
        for area in ("small", "medium", "large")
    },
}


def images(rng, n):
    """Return images with some 7 true boxes and 40 predicted ones, of which half are near these."""
    counts = rng.integers(0, 15, n)
    sides = np.exp(rng.uniform(2, 5.5, (counts.sum(), 2)))
    true = np.hstack([rng.uniform(0, 600, sides.shape), sides])
    labels = rng.integers(0, CLASSES, len(true))
    near = np.repeat(np.arange(len(true)), 3)
    boxes = true[near] + true[near][:, [2, 3, 2, 3]] * rng.normal(0, 0.12, (near.size, 4))
    others = np.repeat(np.arange(n), 20)
    sizes = np.exp(rng.uniform(2, 5.5, (others.size, 2)))
    boxes = np.vstack([boxes, np.hstack([rng.uniform(0, 600, sizes.shape), sizes])])
    boxes[:, 2:] = np.abs(boxes[:, 2:]) + 1
    names = np.concatenate([labels[near], rng.integers(0, CLASSES, others.size)])
    image = np.concatenate([np.repeat(np.arange(n), counts)[near], others])
    order = np.argsort(image, kind="stable")
    cuts, more = np.cumsum(counts)[:-1], np.cumsum(np.bincount(image, minlength=n))[:-1]
    return {
        "true_boxes": np.split(true, cuts),
        "true_labels": np.split(labels, cuts),
        "pred_boxes": np.split(boxes[order], more),
        "pred_labels": np.split(names[order], more),
        "pred_scores": np.split(rng.random(order.size), more),
    }


def evaluated_by_coco(rows):
    """Return a call of pycocotools on its own form of the boxes, which is made before."""
    truths, found = [], []
    for number, (boxes, labels, preds, names, scores) in enumerate(
        zip(*rows.values(), strict=True)
    ):
        for box, label in zip(boxes.tolist(), labels.tolist(), strict=True):
            each = {"id": len(truths) + 1, "area": box[2] * box[3], "iscrowd": 0}
            truths.append({"image_id": number, "category_id": label, "bbox": box, **each})
        for box, label, score in zip(preds.tolist(), names.tolist(), scores.tolist(), strict=True):
            found.append({"image_id": number, "category_id": label, "bbox": box, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO()
        data.dataset = {
            "images": [{"id": number} for number in range(len(rows["true_boxes"]))],
            "annotations": truths,
            "categories": [{"id": label} for label in range(CLASSES)],
        }
        data.createIndex()
        results = data.loadRes(found)

    def call():
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = cocoeval.COCOeval(data, results, "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return evaluation.stats

    return call


def boxes(scale):
    """The twelve numbers of COCO, of which one state has those at 0.5 and 0.75."""
    n = max(int(5000 * scale), 10)
    rows = images(np.random.default_rng(0), n)
    suite = sm.MetricSet(
        {
            **NUMBERS,
            "map_50": sm.BoxAveragePrecision(box_format="xywh", iou=0.5),
            "map_75": sm.BoxAveragePrecision(box_format="xywh", iou=0.75),
        }
    )
    found = sum(map(len, rows["pred_boxes"]))
    return Case(
        f"12 numbers of COCO, {n:,} images, {found:,} boxes",
        lambda: suite.copy().update(rows).compute(),
        {"pycocotools (built beforehand)": evaluated_by_coco(rows)},
        {"pycocotools (built beforehand)": 5},
    )


BENCHMARKS = {"boxes of COCO": boxes}
