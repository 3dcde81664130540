"""Files of COCO and of tagged text: read as pycocotools and seqeval's users have them."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import seqeval.metrics
from oracles.detection import as_coco, evaluated, images, masks
from pycocotools import mask as coco_mask

import streammetrics as sm

NAMES = ["fish", "ant"]


@pytest.fixture
def coco(tmp_path):
    """Return images, and the paths of files of their annotations and results, in any order."""
    rng = np.random.default_rng(3)
    rows = images(rng, 25)
    dataset, found = as_coco(rows)
    for key in ("images", "annotations"):
        dataset[key] = [dataset[key][i] for i in rng.permutation(len(dataset[key]))]
    for category, name in zip(dataset["categories"], NAMES, strict=True):
        category["name"] = name
    paths = tmp_path / "instances.json", tmp_path / "found.json"
    for path, value in zip(paths, (dataset, found), strict=True):
        path.write_text(json.dumps(value))
    return rows, paths


def test_the_twelve_numbers_are_those_of_coco(command, coco):
    rows, (true, pred) = coco
    run = ("evaluate", "--task", "boxes", "--annotations", true, "--results", pred)
    found = command(*run, "--json", "-")
    assert found.code == 0, found.err
    told = json.loads(found.out)
    values = [metric["value"] for metric in told["metrics"].values()]
    known = [-1 if value is None else value for value in values]  # where no box is so large
    assert known == pytest.approx(evaluated(rows).stats.tolist(), rel=1e-12)
    assert (told["n_rows"], told["annotations"]) == (25, str(true))
    each = command(*run, "--param", "average=none", "--metrics", "BoxAverageRecall", "--json", "-")
    assert list(json.loads(each.out)["metrics"]["BoxAverageRecall"]["labels"]) == sorted(NAMES)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # pycocotools
def test_masks_are_text_lengths_or_polygons(command, tmp_path):
    rows = masks(np.random.default_rng(5), 12)
    dataset, found = as_coco(rows)
    values = evaluated(rows).stats.tolist()
    for entry in dataset["annotations"][::2]:
        mask = coco_mask.decode(entry["segmentation"]).ravel("F")
        edges = np.flatnonzero(np.diff(mask, prepend=0, append=2))
        entry["segmentation"]["counts"] = np.diff(edges, prepend=0).tolist()
    polygon = [[10.0, 10.0, 60.0, 10.0, 60.0, 50.0, 10.0, 50.0]]
    extra = {"image_id": 1, "category_id": 0, "segmentation": polygon}
    true, pred = tmp_path / "instances.json", tmp_path / "found.json"
    run = ("evaluate", "--task", "boxes", "--param", "box_format=rle")
    for more, expected in (([], values), ([extra], None)):
        annotations = [*dataset["annotations"], *({**each, "area": 2000.0} for each in more)]
        true.write_text(json.dumps({**dataset, "annotations": annotations}))
        pred.write_text(json.dumps([*found, *({**each, "score": 0.99} for each in more)]))
        told = command(*run, "--annotations", true, "--results", pred, "--json", "-")
        assert told.code == 0, told.err
        each = [metric["value"] for metric in json.loads(told.out)["metrics"].values()]
        known = [-1 if value is None else value for value in each]  # where no mask is so large
        if expected is not None:
            assert known == pytest.approx(expected, rel=1e-12)
    true.write_text(
        json.dumps({**dataset, "annotations": [{**annotations[-1], "segmentation": 3}]})
    )
    refused = command(*run, "--annotations", true, "--results", pred)
    assert refused.code == 2
    assert "entry 0 of its annotations is not a mask" in refused.err


def test_results_are_models_in_parts_or_whole(command, coco, tmp_path):
    _, (true, pred) = coco
    entries = json.loads(pred.read_text("utf-8"))
    for number, part in enumerate((entries[:20], entries[20:])):
        (tmp_path / f"part-{number}.json").write_text(json.dumps(part))
    found = command(
        "evaluate", "--task", "boxes", "--annotations", true, "--results", pred,
        "--results", tmp_path / "part-*.json", "--results", tmp_path / "part-0.json",
        "--metrics", "BoxAveragePrecision", "--workers", 2, "--json", "-",
    )  # fmt: skip
    assert found.code == 0, found.err
    whole, parts, one = (
        model["metrics"]["BoxAveragePrecision"]["value"]
        for model in json.loads(found.out)["models"].values()
    )
    assert whole == parts > one


def test_boxes_in_a_table_are_those_of_python(command, coco, tmp_path):
    rows, _ = coco
    columns = {name: [np.asarray(each).tolist() for each in rows[name]] for name in rows}
    pq.write_table(pa.table(columns), tmp_path / "boxes.parquet")
    flags = [text for name in columns for text in ("--column", f"{name}={name}")]
    found = command(
        "evaluate", tmp_path / "boxes.parquet", "--task", "boxes", *flags,
        "--param", "box_format=xywh", "--json", "-",
    )  # fmt: skip
    assert found.code == 0, found.err
    value = json.loads(found.out)["metrics"]["BoxAveragePrecision"]["value"]
    assert value == sm.BoxAveragePrecision(box_format="xywh").update(**rows).compute()


def test_entries_of_other_categories_are_left_out_as_by_pycocotools(command, coco):
    """They were classes of their own, and lowered the mean."""
    _, (true, pred) = coco
    dataset, found = (json.loads(path.read_text()) for path in (true, pred))
    dataset["categories"] = dataset["categories"][:1]
    only = dataset["categories"][0]["id"]
    true.write_text(json.dumps(dataset))
    run = ("evaluate", "--task", "boxes", "--annotations", true, "--results", pred, "--json", "-")
    told = json.loads(command(*run).out)["metrics"]
    dataset["annotations"] = [e for e in dataset["annotations"] if e["category_id"] == only]
    true.write_text(json.dumps(dataset))
    pred.write_text(json.dumps([e for e in found if e["category_id"] == only]))
    assert json.loads(command(*run).out)["metrics"] == told
    assert told["BoxAveragePrecision"]["value"] > 0


@pytest.mark.parametrize("size", [[8, 6], [7, 7], None])
@pytest.mark.parametrize("sized", [False, True])
def test_a_mask_has_the_size_of_its_image(mistake, tmp_path, size, sized):
    """Only the number of its pixels was compared, so that a transposed mask was right."""
    pixels = np.zeros((6, 8), np.uint8, order="F")
    pixels[1:4, 2:6] = 1
    counts = coco_mask.encode(pixels)["counts"].decode()
    entry = {"image_id": 1, "category_id": 1, "segmentation": {"size": [6, 8], "counts": counts}}
    image = {"id": 1, **({"height": 6, "width": 8} if sized else {})}
    truth = {"images": [image], "annotations": [{**entry, "area": 12}]}
    found = [{**entry, "score": 0.5, "segmentation": {"size": size, "counts": counts}}]
    paths = tmp_path / "instances.json", tmp_path / "found.json"
    for path, value in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(value))
    told = mistake(
        "evaluate", "--task", "boxes", "--param", "box_format=rle",
        "--annotations", paths[0], "--results", paths[1],
    )  # fmt: skip
    what = "a mask without its size: None"
    if size is not None:
        what = f"a mask of size {size}, and its image has height and width [6, 8]"
    assert f"entry 0 of its results has {what}" in told


@pytest.fixture
def small(tmp_path):
    """Return the paths of annotations of an image without boxes, and of no results."""
    true, pred = tmp_path / "instances.json", tmp_path / "found.json"
    true.write_text(json.dumps({"images": [{"id": 1}], "annotations": []}))
    pred.write_text("[]")
    return true, pred


ENTRY = {"image_id": 1, "category_id": 0, "bbox": [0, 0, 1, 1], "score": 0.5}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([ENTRY, {**ENTRY, "image_id": 99}], "found.json: entry 1 of its results is of image 99"),
        ([{**ENTRY, "bbox": [1, 2]}], r"entry 0 of its results has a bbox that is not of four"),
        (
            [{**ENTRY, "score": None}],
            "entry 0 of its results has no finite number as 'score'",
        ),
        (
            [{k: ENTRY[k] for k in ENTRY if k != "bbox"}],
            "has no 'bbox'; for masks, add --param box_format=rle",
        ),
        ([{**ENTRY, "score": float("nan")}], "no finite number as 'score': nan"),
        ([{**ENTRY, "score": 10**400}], "no finite number as 'score': 1000"),
        ([{**ENTRY, "bbox": [0, 0, 1, float("inf")]}], "a bbox that is not of four finite numbers"),
        ([{**ENTRY, "category_id": [1]}], "neither a number nor text as 'category_id': [1]"),
        ([3], "entry 0 of its results is not an object"),
        ({"annotations": []}, "found.json: is not a list of results"),
        ([{**ENTRY, "bbox": [0, 0, -1, 1]}], "has a box of negative width or height"),
    ],
)
def test_mistakes_of_results_name_the_entry(mistake, small, entries, message):
    true, pred = small
    pred.write_text(json.dumps(entries))
    told = mistake("evaluate", "--task", "boxes", "--annotations", true, "--results", pred)
    assert message in told, told


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "is not an object of images, annotations and categories"),
        ({"images": []}, "has no list of 'annotations'"),
        ({"images": [{}], "annotations": []}, "entry 0 of its images has no 'id'"),
        ({"images": [{"id": 1}, {"id": "a"}], "annotations": []}, "are numbers, others text"),
        ({"images": [], "annotations": [], "categories": "cat"}, "its categories are no list"),
        (
            {"images": [], "annotations": [], "categories": [{}]},
            "entry 0 of its categories has neither a number nor text as 'id'",
        ),
        (
            {"images": [{"id": 1}], "annotations": [{**ENTRY, "area": 1, "iscrowd": "no"}]},
            "entry 0 of its annotations has no finite number as 'iscrowd': 'no'",
        ),
    ],
)
def test_what_is_no_file_of_annotations_is_told(mistake, small, value, message):
    true, pred = small
    true.write_text(json.dumps(value))
    told = mistake("evaluate", "--task", "boxes", "--annotations", true, "--results", pred)
    assert message in told, told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--annotations", "a.json"], "--annotations and --results need each other"),
        (["--annotations", "a", "--results", "b", "--by", "x"], "--by is not for COCO files"),
        (
            ["--annotations", "a", "--results", "b", "--column", "pred_boxes=x"],
            "leave out --column pred_boxes",
        ),
        ([], "needs --column true_boxes=... and .* or --annotations and --results"),
    ],
)
def test_mistakes_of_options_say_what_to_type(mistake, arguments, message):
    told = mistake("evaluate", "--task", "boxes", *arguments)

    assert re.search(message, told), told


CONLL = """\
-DOCSTART- -X- O O

# sent_id = 1
Ann NNP B-PER B-PER
lives VBZ O O
in IN O O
Rome NNP B-LOC B-ORG


# SYM O O
Bob NNP B-PER O
Smith NNP I-PER O"""
TRUE = [["O"], ["B-PER", "O", "O", "B-LOC"], ["O", "B-PER", "I-PER"]]
PRED = [["O"], ["B-PER", "O", "O", "B-ORG"], ["O", "O", "O"]]


def test_spans_are_read_of_tagged_text(command, tmp_path):
    (tmp_path / "said.conll").write_text(CONLL, "utf-8")
    tabbed = CONLL.replace(" ", "\t").replace("#\tsent_id\t=\t1", "# é")
    (tmp_path / "tabs.bio").write_text(tabbed, "utf-8")
    found = command(
        "evaluate", tmp_path, "--task", "spans", "--y-true", 3, "--y-pred", 4, "--json", "-"
    )
    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert told["n_rows"] == 6
    values = [metric["value"] for metric in told["metrics"].values()]
    scores = ("precision_score", "recall_score", "f1_score")
    assert values == [getattr(seqeval.metrics, name)(TRUE, PRED) for name in scores]


def test_long_tagged_text_is_read_in_parts(command, tmp_path, monkeypatch):
    monkeypatch.setattr("streammetrics.readers.formats._TOKENS", 3)
    (tmp_path / "said.iob").write_text(CONLL, "utf-8")
    run = ("evaluate", tmp_path / "said.iob", "--task", "spans", "--y-true", 3)
    found = command(*run, "--y-pred", 4, "--y-pred", 3, "--json", "-")
    models = json.loads(found.out)["models"]
    assert models["4"]["metrics"]["SpanF1"]["value"] == seqeval.metrics.f1_score(TRUE, PRED)
    assert models["3"]["metrics"]["SpanF1"]["value"] == 1.0


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a B-X B-X\nb O\n", 3, "said.conll, line 2: expected 3 columns as before, found 2"),
        ("\n# only\n", 3, "said.conll: is empty; a token and its tags a line are expected"),
        ("a B-X B-X\n", 4, "no column '4'"),
    ],
)
def test_mistakes_of_tagged_text_name_the_line(mistake, tmp_path, text, column, message):
    path = tmp_path / "said.conll"
    path.write_text(text)
    told = mistake("evaluate", path, "--task", "spans", "--y-true", 2, "--y-pred", column)
    assert message in told, told


def test_masks_are_read_of_tables_of_pixels(command, tmp_path):
    true, pred = np.random.default_rng(0).integers(0, 3, (2, 50))
    pq.write_table(pa.table({"t": true, "p": pred}), tmp_path / "pixels.parquet")
    run = ("evaluate", tmp_path, "--task", "masks", "--y-true", "t", "--y-pred", "p")
    found = json.loads(command(*run, "--json", "-").out)["metrics"]
    assert found["MeanIoU"]["value"] == sm.MeanIoU().update(true, pred).compute()
    assert found["Dice"]["value"] == sm.Dice().update(true, pred).compute()
