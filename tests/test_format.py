"""docs/format.md names what states hold, no more and no fewer, and tests/vectors is up to date.

    python tests/test_format.py

writes the table of metrics and their statistics anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracles.table import ORACLES, distinct
from vectors.write import HERE as VECTORS
from vectors.write import statistics, vectors

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "format.md").read_text("utf-8")
COLUMNS = r"^\|(.*?)\|(.*?)\|"
ROWS = re.compile(
    r"^\| metrics \| statistics, in order \|\n\| --- \| --- \|\n((?:\|.*\n)*)", re.MULTILINE
)
CONTAINERS = {"Comparison", "Estimated", "Ledger", "Live", "Slices", "UnitSet"}
# The arrays that an entry of a kind stands for: pattern, type and dimensions.
SUM = [("digits", "I64", 2), ("exponent", "I64", 0)]
HISTOGRAM = [
    (r"\d+/level", "I64", 1), (r"\d+/cells", "I64", 1), (r"\d+/scores", "F64", 1),
    (r"\d+/counts", "I64", 2), (r"\d+/mass\.digits", "I64", 2),
    (r"\d+/mass\.exponent", "I64", 0), (r"\d+/tails", "F64", 1),
]  # fmt: skip
PACKED = [
    ("names", "U8", 1), (r"\d+/values", "I64|I32|I16|I8|F64", 1), (r"\d+/places", "I8|I64", 1),
    (r"\d+/shapes", "I8|I64", 2),
]  # fmt: skip
KINDS = {
    "int64": [("", "I64", r"\d")], "float64": [("", "F64", r"\d")], "int32": [("", "I32", 1)],
    "grade": [("", "I8|I16|I32", 1)], "bool": [("", "BOOL", 1)], "labels": [("", "I64|U8", 1)],
    "ids": [("", "I64|U8", "1|2")], "sum": SUM, "histograms": HISTOGRAM, "packed": PACKED,
    "amount": [*SUM, *((f"squares/{name}", *rest) for name, *rest in SUM)],
}  # fmt: skip


def states():
    """Yield the states of the oracle table and the vectors, and the statistics of each."""
    for oracle in distinct(ORACLES):
        metric = oracle.metric.copy().update(**oracle.rows(np.random.default_rng(0), 24))
        yield metric.to_bytes(), statistics(metric)
    told = json.loads((VECTORS / "vectors.json").read_text("utf-8"))["vectors"]
    for name, vector in told.items():
        yield (VECTORS / f"{name}.state").read_bytes(), vector["statistics"]


@pytest.fixture(scope="module")
def files():
    """Return description, arrays and statistics of every state; arrays as text."""
    found = []
    for blob, names in states():
        size = struct.unpack("<Q", blob[:8])[0]
        header = json.loads(blob[8 : 8 + size])
        meta = json.loads(header.pop("__metadata__")["streammetrics"])
        arrays = {name: f"{a['dtype']} {len(a['shape'])}" for name, a in header.items()}
        found.append((meta, arrays, names))
    return found


def described():
    """Return the arrays of each statistic that the page names: patterns of name, type, shape."""
    found = {}
    sections = re.split(r"^### ", PAGE.partition("## Statistics")[2], flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, text = section.partition("\n")
        patterns = set()
        for names, kind in re.findall(COLUMNS, text.partition("\n## ")[0], re.MULTILINE):
            for name in re.findall("`([^`]+)`", names) or [""]:
                for key, dtype, ndim in KINDS.get(kind.strip(), []):
                    if name and "tails" in key:  # histograms of squares have none
                        continue
                    full = "/".join(filter(None, [re.escape(name), key]))
                    patterns.add(f"(?:{full}) (?:{dtype}) (?:{ndim})")
        found |= dict.fromkeys(re.findall("`([^`]+)`", title), patterns)
    return found


def test_arrays_are_those_of_the_page(files):
    page, used, met = described(), set(), set()
    for meta, arrays, names in files:
        if meta["class"] in CONTAINERS:
            continue
        for array, form in arrays.items():
            number, _, name = array.partition("/")
            statistic = names[int(number)]
            fits = [p for p in page.get(statistic, ()) if re.fullmatch(p, f"{name} {form}")]
            assert fits, f"{statistic}: {name} {form} is not on the page"
            used |= {(of, fit) for fit in fits for of in (statistic, None)}
        met.update(names)
    assert met == page.keys() - CONTAINERS
    for statistic in met:
        for pattern in page[statistic]:
            rare = re.search(r"(?<!powers/)squares/|mass|tails", pattern)
            assert (None if rare else statistic, pattern) in used, f"{statistic}: {pattern}"


def test_arrays_of_containers_are_on_the_page(files):
    words = set(re.findall(r"[a-z_]+", PAGE))
    for meta, arrays, _ in files:
        if meta["class"] in CONTAINERS:
            assert set(re.findall(r"[a-z_]+", " ".join(arrays))) <= words


def test_keys_and_facts_are_those_of_the_page(files):
    keys, facts = set(), set()
    for meta, _, _ in files:
        keys |= meta.keys() | {key for each in meta.get("metrics", []) for key in each}
        for told, _, _ in meta.get("feeds", []):
            facts |= {re.sub(r"(labels of|by|units) .*", r"\1 ...", name) for name in told}
    section = PAGE.partition("## Description")[2].partition("## Arrays")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    named = [set(re.findall("`([^`]+)`", row)) for row in rows]
    assert set().union(*named) == keys | facts


def table():
    """Return the rows of the page that tell which statistics a metric has."""
    found, rows = {}, {}
    for oracle in ORACLES:
        names = ", ".join(f"`{name}`" for name in statistics(oracle.metric))
        found.setdefault(type(oracle.metric).__name__, set()).add(names)
    for name in sorted(found):
        rows.setdefault("; ".join(sorted(found[name])), []).append(f"`{name}`")
    return "".join(f"| {', '.join(names)} | {of} |\n" for of, names in rows.items())


def test_metrics_have_the_statistics_of_the_page():
    assert table() == ROWS.search(PAGE)[1], "run python tests/test_format.py"


def test_vectors_are_up_to_date():
    made, text = vectors()
    assert {path.stem for path in VECTORS.glob("*.state")} == made.keys()
    assert (VECTORS / "vectors.json").read_text("utf-8") == text, (
        "run python tests/vectors/write.py"
    )
    for name, blob in made.items():
        assert (VECTORS / f"{name}.state").read_bytes() == blob, name
    assert sum(path.stat().st_size for path in VECTORS.iterdir()) < 300_000


def test_keys_of_ids_are_those_of_the_page():
    blob = (VECTORS / "Live.state").read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    start, stop = json.loads(blob[8 : 8 + size])["rows/keys"]["data_offsets"]
    words = struct.unpack(f"<{(stop - start) // 8}Q", blob[8 + size + start : 8 + size + stop])
    long = hashlib.blake2b(b"an id of more than 15 bytes", digest_size=15).digest()
    keys = [b"a".ljust(15, b"\0") + bytes([1]), long + bytes([0x10])]
    assert struct.pack(f">{len(words)}Q", *words) == b"".join(keys)


def test_reader_in_javascript():
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node, which runs examples/js/test.js")
    told = subprocess.run(
        [node, "--test", EXAMPLES / "js" / "test.js"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout[-4000:]


if __name__ == "__main__":
    start, stop = ROWS.search(PAGE).span(1)
    (ROOT / "docs" / "format.md").write_text(PAGE[:start] + table() + PAGE[stop:], "utf-8")
