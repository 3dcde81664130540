"""Images in: the true boxes of each, and those that were predicted, in lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.columns.column import Column, either
from streammetrics.core.columns.labels import A_LABEL, KINDS
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.paired import reject_values
from streammetrics.core.columns.schema import Field, reject_present
from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.detection.matching import matched

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Bools, Columns, Floats, Places, ReadColumn

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]

TRUE, PRED = (
    ("true_boxes", "true_labels", "true_crowd", "true_areas"),
    (
        "pred_boxes",
        "pred_labels",
        "pred_scores",
    ),
)
_EACH = {"true_boxes": "the boxes of an image", "pred_boxes": "the boxes of an image"}
_ADVICE = 'say box_format="xywh" or "cxcywh" if they are not corners'


@dataclass(frozen=True)
class Boxes(Field):
    """The boxes of images, which are matched at `ious`; without `classes` labels do not matter."""

    ious: tuple[float, ...]
    box_format: BoxFormat = "xyxy"
    classes: bool = True

    names = (*TRUE, *PRED)
    optional = frozenset(("true_crowd", "true_areas"))
    nested = tuple((name, _EACH.get(name, "one for each box of an image")) for name in names)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Labels, and numbers."""
        label: dict[str, Kind] = dict.fromkeys(("true_labels", "pred_labels"), "label")
        return {name: label.get(name, "number") for name in self.names}

    def take(self, batch: Batch) -> Taken:
        """Return the columns, `None` where one is left out, and where a row lacks a value."""
        taken: list[ReadColumn] = []
        missing: Bools | None = None
        for name in self.names:
            if name in self.optional and not batch.has(name):
                taken.append(None)
                continue
            column = batch.column(name)
            missing = either(missing, column.nulls)
            taken.append(column)
        return tuple(taken), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that there is one of everything for each box, and that boxes are such."""
        held = dict(zip(self.names, taken, strict=True))
        for boxes, *others in (TRUE, PRED):
            self._check_boxes(batch.title(boxes), held[boxes], missing)
            for name in others:
                column = held[name]
                if column is not None:
                    what = f"is not one for each of {batch.title(boxes)}"
                    wrong = column.values != held[boxes].values
                    reject_present(batch.title(name), what, wrong, missing)
        for name in ("true_crowd", "true_areas", "pred_scores"):
            if held[name] is not None:
                self._check_numbers(batch.title(name), name, held[name], missing)
        for name in ("true_labels", "pred_labels"):
            _check_labels(batch.title(name), held[name], missing)

    def _check_boxes(self, title: str, boxes: Nested, missing: Bools | None) -> None:
        flat = boxes.flat
        if len(flat) and (flat.values.ndim != 2 or flat.values.shape[1] != 4):
            shape = "one number" if flat.values.ndim == 1 else f"{flat.values.shape[1]} numbers"
            row = int(np.argmax(boxes.values > 0))
            raise InvalidBatchError(
                f"{title} has boxes of {shape}, first in row {row}; a box is of four", title, row
            )
        values = _numbers(title, flat).reshape(-1, 4)
        reject_values(title, "has an infinite number", ~np.isfinite(values), boxes, missing)
        sides = values[:, 2:] - (values[:, :2] if self.box_format == "xyxy" else 0)
        what = "has a box of negative width or height"
        advice = _ADVICE if self.box_format == "xyxy" else ""
        reject_values(title, what, sides < 0, boxes, missing, values, advice=advice)

    def _check_numbers(self, title: str, name: str, column: Nested, missing: Bools | None) -> None:
        values = _numbers(title, column.flat)
        if values.ndim > 1:
            raise InvalidBatchError(f"{title} has lists of lists; one number a box is needed")
        if name == "true_crowd":
            wrong = (values != 0) & (values != 1)
            reject_values(title, "is neither 0 nor 1", wrong, column, missing)
        elif name == "true_areas":
            wrong = ~((values >= 0) & (values < np.inf))
            reject_values(title, "is not an area, 0 or more", wrong, column, missing, values)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the columns of the kept rows, boxes as corner and size, none of them left out."""
        kept = [c if c is None or rows is None else c[rows] for c in taken]
        boxes, labels, crowd, areas, found, names, scores = kept
        boxes, found = (self._sized(each) for each in (boxes, found))
        sizes = boxes.flat.values[:, 2] * boxes.flat.values[:, 3]
        regular = np.zeros(sizes.size)
        finished = (
            boxes,
            _whole(labels),
            _floats(boxes, regular if crowd is None else _numbers("", crowd.flat)),
            _floats(boxes, sizes if areas is None else _numbers("", areas.flat)),
            found,
            _whole(names),
            _floats(found, _numbers("", scores.flat)),
        )
        kinds = {
            "strings" if each.flat.vocabulary is not None else "integers"
            for each in (finished[1], finished[5])
            if len(each.flat)
        }
        if len(kinds) > 1:
            one, other = batch.title("true_labels"), batch.title("pred_labels")
            raise InvalidBatchError(
                f"one of {one} and {other} holds strings, the other integers: pass one kind"
            )
        return finished, {"labels": kinds.pop()} if kinds else {}

    def _sized(self, boxes: Nested) -> Nested:
        """Return boxes as left, top, width and height."""
        values = _numbers("", boxes.flat).reshape(-1, 4).copy()
        if self.box_format == "xyxy":
            values[:, 2:] -= values[:, :2]
        elif self.box_format == "cxcywh":
            values[:, :2] -= values[:, 2:] / 2
        return _floats(boxes, values)

    def present(self, columns: Columns) -> Columns:
        """Return the `Outcomes` of every image."""
        return tuple(matched(columns, self.ious, classes=self.classes))


def _floats(like: Nested, values: Floats) -> Nested:
    return Nested.of(like.values, Column(values, None, True))


def _numbers(title: str, flat: Column) -> Floats:
    if flat.vocabulary is not None:
        raise InvalidBatchError(f"{title} holds text; numbers are needed")
    return flat.values.astype(np.float64, copy=False)


def _whole(labels: Nested) -> Nested:
    """Return labels of which integers may have been floats."""
    flat = labels.flat
    if flat.vocabulary is None and flat.values.dtype != np.int64:
        flat = Column(flat.values.astype(np.int64), None, True)
    return Nested.of(labels.values, flat)


def _check_labels(title: str, labels: Nested, missing: Bools | None) -> None:
    flat = labels.flat
    if flat.values.ndim > 1:
        raise InvalidBatchError(f"{title} has lists of lists; one label a box is needed")
    if flat.vocabulary is None and flat.values.dtype.kind not in KINDS | {"f": ""}:
        raise InvalidBatchError(f"{title} holds no labels; a label is {A_LABEL}")
    if flat.vocabulary is None:
        values = flat.values.astype(np.float64)
        wrong = (np.rint(values) != values) | ~(np.abs(values) < 2.0**63)
        reject_values(title, f"is not a label ({A_LABEL})", wrong, labels, missing, values)
