"""COCO files as tables: annotations and results as one row per image, as pycocotools reads them.

The annotations file is an object with ``images``, ``annotations`` and ``categories``. The results
file is a list of objects with ``image_id``, ``category_id``, ``bbox`` and ``score``, or
``segmentation`` instead of ``bbox``. Rows are the images of the annotations, sorted by id.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from streammetrics.core.columns.column import Column
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.nested import Nested
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import reading
from streammetrics.readers.paths import matching, source_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from streammetrics.core.types import Document, Foreign, Json, Places
    from streammetrics.readers.paths import Source

INPUTS = {
    name: name
    for name in (
        "true_boxes", "true_labels", "true_crowd", "true_areas",
        "pred_boxes", "pred_labels", "pred_scores",
    )
}  # fmt: skip
_SIZE = "height", "width"
_KEYS = {"annotations": ("category_id", "area"), "results": ("category_id", "score")}


class _Boxes(NamedTuple):
    """Boxes in the order of the images: the number of boxes of each image, and the entries."""

    counts: Places
    entries: list[Document]

    def numbers(self, key: str, default: float | None = None) -> Nested:
        """Return a nested column with one number, or four for a bbox, for each box."""
        values = [entry.get(key, default) for entry in self.entries]
        return self._column(Column(np.array(values, np.float64), None, True))

    def masks(self) -> Nested:
        """Return a nested column with the text of the mask of each box."""
        return self._column(as_column([entry["segmentation"] for entry in self.entries], "masks"))

    def labels(self, names: Mapping[Json, Json]) -> Nested:
        """Return a nested column of category names."""
        values = [names.get(e["category_id"], f"category {e['category_id']}") for e in self.entries]
        return self._column(as_column(values, "category_id"))

    def _column(self, flat: Column) -> Nested:
        return Nested.of(self.counts, flat)


@dataclass(frozen=True)
class CocoPiece:
    """The annotations of images, and the results of a model in one or more files."""

    annotations: Source
    results: tuple[Source, ...]
    masks: bool = False

    rows: ClassVar[None] = None  # unknown until the file is parsed
    unit: ClassVar[str] = "file"

    @property
    def once(self) -> bool:
        """Whether the piece can be read only once, in this process."""
        return any(source.once for source in (self.annotations, *self.results))

    def __str__(self) -> str:
        return f"{self.annotations} with {', '.join(map(str, self.results))}"

    def first_row(self) -> int:
        """Return 0: the file is read from its start."""
        return 0

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of images and their boxes, batch by batch."""
        told = _parsed(self.annotations, dict, "an object of images, annotations and categories")
        lacking = [key for key in ("images", "annotations") if not isinstance(told.get(key), list)]
        if lacking:
            raise InvalidBatchError(f"{self.annotations}: has no list of {lacking[0]!r}")
        images = sorted(_ids(told["images"], self.annotations))
        places = {image: place for place, image in enumerate(images)}
        sizes = {image["id"]: image for image in told["images"]} if self.masks else None
        names = _names(told.get("categories") or [], self.annotations)
        truths = {self.annotations: told["annotations"]}
        true = _by_image(truths, "annotations", places, sizes, names)
        found = {source: _parsed(source, list, "a list of results") for source in self.results}
        pred = _by_image(found, "results", places, sizes, names)
        columns = {
            "true_boxes": true.masks() if self.masks else true.numbers("bbox"),
            "true_labels": true.labels(names),
            "true_crowd": true.numbers("iscrowd", 0),
            "true_areas": true.numbers("area"),
            "pred_boxes": pred.masks() if self.masks else pred.numbers("bbox"),
            "pred_labels": pred.labels(names),
            "pred_scores": pred.numbers("score"),
        }
        for start in range(0, len(images), batch_rows):
            rows = slice(start, min(start + batch_rows, len(images)))
            yield rows.stop - start, {name: column[rows] for name, column in columns.items()}


def pieces(annotations: str, results: str, *, masks: bool = False) -> list[CocoPiece]:
    """Return the piece for a file of annotations and for a path or glob of results."""
    found = tuple(source_of(path, "coco") for path in matching(results))
    return [CocoPiece(source_of(annotations, "coco"), found, masks)]


def _parsed(source: Source, kind: type, words: str) -> Json:
    with reading(source), source.open() as file:
        value = json.load(file)
    if not isinstance(value, kind):
        raise InvalidBatchError(f"{source}: is not {words}")
    return value


def _ids(images: Sequence[Json], source: Source) -> set[Json]:
    """Return the ids of the images; raise if one is missing or their types differ."""
    for number, image in enumerate(images):
        if not isinstance(image, dict) or not isinstance(image.get("id"), int | str):
            raise InvalidBatchError(f"{source}: entry {number} of its images has no 'id'")
    found = {image["id"] for image in images}
    if len(set(map(type, found))) > 1:
        raise InvalidBatchError(f"{source}: some ids of images are numbers, others text")
    return found


def _names(categories: Json, source: Source) -> dict[Json, Json]:
    """Return the name of each category, or its id if names are missing or not unique."""
    if not isinstance(categories, list):
        raise InvalidBatchError(f"{source}: its categories are no list")
    for number, category in enumerate(categories):
        told = category.get("id") if isinstance(category, dict) else None
        _check_category(told, f"{source}: entry {number} of its categories", "id")
    ids = [category["id"] for category in categories]
    names = [category.get("name") for category in categories]
    known = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return dict(zip(ids, names if known else map(str, ids), strict=True))


def _by_image(
    entries: Mapping[Source, Sequence[Json]],
    kind: str,
    places: Mapping[Json, int],
    sizes: Mapping[Json, Document] | None,
    names: Mapping[Json, Json],
) -> _Boxes:
    """Validate entries and sort them by image; within an image they keep the order of the file.

    With the `sizes` of images, masks are read instead of boxes, and replaced by their text. Entries
    of other categories than those in `names` are left out, unless there are no names.
    """
    rows = [
        _image(entry, kind, places, f"{source}: entry {number} of its {kind}", sizes)
        for source, each in entries.items()
        for number, entry in enumerate(each)
    ]
    every = [entry for each in entries.values() for entry in each]
    kept = [p for p, entry in enumerate(every) if not names or entry["category_id"] in names]
    of_image = np.array(rows, np.intp)[kept]
    counts = np.bincount(of_image, minlength=len(places))
    order = np.argsort(of_image, kind="stable")
    return _Boxes(counts, [every[kept[place]] for place in order.tolist()])


def _image(
    entry: object,
    kind: str,
    places: Mapping[Json, int],
    title: str,
    sizes: Mapping[Json, Document] | None,
) -> int:
    """Return the row of an entry's image; raise if the entry is invalid."""
    if not isinstance(entry, dict):
        raise InvalidBatchError(f"{title} is not an object")
    shape = "bbox" if sizes is None else "segmentation"
    for key in ("image_id", shape, *_KEYS[kind]):
        if key not in entry:
            hint = "; for masks, add --param box_format=rle" if key == "bbox" else ""
            raise InvalidBatchError(f"{title} has no {key!r}{hint}")
    box, (*_, last) = entry[shape], _KEYS[kind]
    if sizes is None and not (
        isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))
    ):
        raise InvalidBatchError(
            f"{title} has a bbox that is not of four finite numbers: {box!r:.60}"
        )
    for key, value in ((last, entry[last]), ("iscrowd", entry.get("iscrowd", 0))):
        if not _is_number(value) and not (key == "iscrowd" and isinstance(value, bool)):
            raise InvalidBatchError(f"{title} has no finite number as {key!r}: {value!r:.60}")
    _check_category(entry["category_id"], title, "category_id")
    place = places.get(entry["image_id"]) if isinstance(entry["image_id"], int | str) else None
    if place is None:
        raise InvalidBatchError(
            f"{title} is of image {entry['image_id']!r:.60}, which the annotations do not have"
        )
    if sizes is not None:
        entry["segmentation"] = _mask(box, sizes[entry["image_id"]], title)
    return place


def _check_category(value: object, title: str, key: str) -> None:
    """Raise if the id of a category is neither a number nor text."""
    if not isinstance(value, str) and not _is_number(value):
        raise InvalidBatchError(f"{title} has neither a number nor text as {key!r}: {value!r:.60}")


def _mask(told: Json, image: Document, title: str) -> str:
    """Return the compressed run lengths of a mask or of polygons, which need pycocotools."""
    if isinstance(told, dict):
        size = told.get("size")
        if not isinstance(size, list) or len(size) != 2 or not all(map(_is_number, size)):
            raise InvalidBatchError(f"{title} has a mask without its size: {size!r:.60}")
        # The size of an image that does not say it is that of its first mask.
        of_image = [image.setdefault(name, n) for name, n in zip(_SIZE, size, strict=True)]
        if size != of_image:
            raise InvalidBatchError(
                f"{title} has a mask of size {size}, and its image has height and width {of_image}"
            )
        if isinstance(told.get("counts"), str):
            return str(told["counts"])
    try:
        from pycocotools import mask  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise InvalidBatchError(
            f"{title} is a polygon or not compressed, which needs pycocotools: pip install it"
        ) from None
    try:
        found = mask.frPyObjects(told, image["height"], image["width"])
        return str((mask.merge(found) if isinstance(found, list) else found)["counts"], "ascii")
    except KeyError as error:
        raise InvalidBatchError(f"{title} needs the size of its image: no {error}") from None
    except Exception as error:  # pycocotools checks nothing, and raises whatever comes
        raise InvalidBatchError(f"{title} is not a mask: {error!s:.60}") from None


def _is_number(value: object) -> bool:
    """Whether a value is a number that float64 can hold; JSON of Python may be NaN or infinite."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max
