"""docs/format.md names what states hold, no more and no fewer, and tests/vectors is up to date.

    python tests/test_format.py

writes the table of metrics and their statistics anew.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import inspect
import itertools
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

import streammetrics as sm

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "format.md").read_text("utf-8")
COLUMNS = r"^\|(.*?)\|(.*?)\|"
HEADS = (
    "| metrics | statistics, in order |",
    "| metrics | parameters of their own |",
    "| statistics | parameters that must be equal |",
)  # of the tables that are generated
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


# The values of parameters that decide which statistics a metric has; of the others each is tried
# alone by the long test.
SHARED = {"pos_label", "labels", "ignore_index", "nan_policy"}  # how labels and gaps are read
DECIDING = {
    "average": ["binary", "micro", "macro", "weighted", "samples", "top_label", None],
    "from_logits": [False, True],
    "from_raters": [None, False, True],
    "ignore_index": [None, -1],
    "multi_class": ["ovr", "ovo"],
    "multilabel": [False, True],
    "normalization": ["range", "mean", "std", "l2"],
    "power": [0.0, 1.0, 1.5, 2.0, 3.0],
    "spread": [False, True],
    "threshold": [None, 0.5],
}


def forms(metrics, values, at_once):
    """Yield these metrics with all combinations of the values, of up to `at_once` parameters."""
    found = {}
    for metric in metrics:
        own = {name: getattr(metric, name) for name in metric._parameters}
        known = [name for name in values if name in own]
        for chosen in itertools.combinations(known, min(at_once, len(known))):
            for each in itertools.product(*(values[name] for name in chosen)):
                with contextlib.suppress(ValueError, TypeError):  # not a form of this metric
                    form = type(metric)(**own | dict(zip(chosen, each, strict=True)))
                    found.setdefault(form._key, form)
    yield from found.values()


def states():
    """Yield the states of the oracle table and the vectors, and the statistics of each."""
    labels, scores = np.eye(2, dtype=int), np.full((2, 2), 0.5)
    for metric, rows in (
        (sm.R2(spread=True), ([1.0, 2.0], [2.5, 0.1])),
        (sm.CoverageError(spread=False), (labels, scores)),
    ):
        metric.update(*rows)
        yield metric.to_bytes(), statistics(metric)
    for oracle in distinct(ORACLES):
        metric = oracle.metric.copy().update(**oracle.rows(np.random.default_rng(0), 24))
        yield metric.to_bytes(), statistics(metric)
    full = sm.Live(sm.Accuracy(), tiers=[("1min", "2h"), ("1h", "1d")])
    full.observe(time=range(0, 3600, 60), y_true=[1] * 60, y_pred=[1] * 60)
    full._ingest.evict([30, 0])  # as if its store had no room for the first half hour of minutes
    yield full.to_bytes(), []
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


@functools.cache
def every_form():
    """Return the metrics of the oracle table, and the plainest of each class in all its forms."""
    metrics = [oracle.metric for oracle in ORACLES]
    plainest = {type(metric): metric for metric in sorted(metrics, key=lambda m: -len(repr(m)))}
    return [*forms(metrics, {}, 0), *forms(plainest.values(), DECIDING, len(DECIDING))]


def table():
    """Return the rows of the page that tell which statistics a metric has."""
    found, rows = {}, {}
    for metric in every_form():
        names = ", ".join(f"`{name}`" for name in statistics(metric))
        found.setdefault(type(metric).__name__, set()).add(names)
    for name in sorted(found):
        rows.setdefault("; ".join(sorted(found[name])), []).append(f"`{name}`")
    return "".join(f"| {', '.join(names)} | {of} |\n" for of, names in rows.items())


def spelt(statistic, names):
    """Return a statistic with the values of these parameters."""
    told = ", ".join(f"{name}={json.dumps(getattr(statistic, name))}" for name in names)
    return f"`{type(statistic).__name__}({told})`" if told else f"`{type(statistic).__name__}`"


def own_parameters():
    """Return the rows that tell the parameters of statistics that metrics do not have."""
    known = SHARED | {"parameter", "ious", "max_bins", "max_rows", "row", "column", "alike"}
    plainest = {type(m): m for m in sorted(every_form(), key=lambda m: -len(repr(m)))}
    rows = {}
    for cls, metric in sorted(plainest.items(), key=lambda pair: pair[0].__name__):
        texts = []
        for each in metric._plan.start.statistics:
            own = each._parameters.keys() - known - metric._parameters.keys()
            texts.append(spelt(each, sorted(own)))
        if "(" in "".join(texts):
            rows.setdefault(", ".join(texts), []).append(f"`{cls.__name__}`")
    return "".join(f"| {', '.join(names)} | {text} |\n" for text, names in rows.items())


def readings():
    """Return the rows that tell which statistics share a reading."""
    found = {}  # by schema without the parameters of labels, statistics by class
    for metric in every_form():
        for each in metric._plan.start.statistics:
            own = {name: getattr(each, name) for name in each._parameters if name not in SHARED}
            schema = type(each)(**own).schema
            found.setdefault(schema, {}).setdefault(type(each), []).append(each)
    add_values(found)
    groups = []  # classes that share readings, directly or through others
    for classes in found.values():
        near = [group for group in groups if group & classes.keys()]
        groups = [group for group in groups if group not in near]
        groups.append(set(classes).union(*near))
    rows = []
    for group in groups:
        kept = {schema: each for schema, each in found.items() if group & each.keys()}
        every = [
            (schema, s) for schema, each in kept.items() for many in each.values() for s in many
        ]
        common = set.intersection(*[set(cls._parameters) - SHARED for cls in group])
        names = deciding(every, sorted(common), both=True)
        if names is not None:
            title = ", ".join(f"`{name}`" for name in sorted(cls.__name__ for cls in group))
            rows.append(f"| {title} | {', '.join(f'`{name}`' for name in names)} |\n")
            continue
        rows += rows_of(kept, every)
    return "".join(sorted(set(rows)))


def add_values(found):
    """Add statistics with other values of the parameters that have one value in `found`."""
    for cls, many in list_by_class(found).items():
        for name in cls._parameters.keys() - SHARED:
            if len({repr(getattr(each, name)) for each in many}) == 1:  # the oracles have one value
                for value in (
                    True,
                    False,
                    None,
                    1,
                    2,
                    0.25,
                    "BIO",
                    "other",
                    (7,),
                    ((0.0,), (1.0,)),
                ):
                    with contextlib.suppress(ValueError, TypeError):
                        own = {n: getattr(many[0], n) for n in cls._parameters if n not in SHARED}
                        one = cls(**own | {name: value})
                        found.setdefault(one.schema, {}).setdefault(cls, []).append(one)


def rows_of(kept, every):
    """Return the rows of statistics whose readings depend on more than common parameters."""
    rows = {}
    least = {}
    for cls in {type(each) for _, each in every}:
        mine = [(schema, s) for schema, s in every if type(s) is cls]
        least[cls] = deciding(mine, sorted(set(cls._parameters) - SHARED), both=False)
    for each in kept.values():
        texts, names = set(), set()
        for cls, many in each.items():
            for s in many:
                shown = [name for name in least[cls] if name != "parameter"]
                alike = [
                    t for _, t in every if type(t) is cls and spelt(t, shown) == spelt(s, shown)
                ]
                own = {t.schema: t.parameter for t in alike if "parameter" in least[cls]}
                if len(own) > 1 or s.__dict__.get("loss") == "huber":
                    names.add("`parameter`")
                texts.add(spelt(s, shown))
        rows.setdefault(frozenset(texts), f"| {', '.join(sorted(texts))} | {', '.join(names)} |\n")
    return [row for texts, row in rows.items() if not any(texts < more for more in rows)]


def list_by_class(found):
    """Return all statistics by class, of those by schema and class."""
    every = {}
    for classes in found.values():
        for cls, many in classes.items():
            every.setdefault(cls, []).extend(many)
    return every


def deciding(every, names, *, both):
    """Return the fewest parameters whose values decide the reading; `both`: and the converse."""
    for size in range(len(names) + 1):
        for some in itertools.combinations(names, size):
            pairs = {(schema, tuple(getattr(s, name) for name in some)) for schema, s in every}
            schemas, values = (len(set(side)) for side in zip(*pairs, strict=True))
            if len(pairs) == values and (not both or len(pairs) == schemas):
                return some
    return None


def rows_under(head, text=PAGE):
    """Return where the rows of a table stand."""
    pattern = rf"^{re.escape(head)}\n\| --- \| --- \|\n((?:\|.*\n)*)"
    return re.search(pattern, text, re.MULTILINE).span(1)


@pytest.mark.parametrize(
    ("metrics", "statistics_there", "readings_there"),
    [
        ([sm.MSE(), sm.RMSE()], 1, 1),
        ([sm.MSE(), sm.MAE()], 2, 1),
        ([sm.WAPE()], 3, 2),
        ([sm.ROCAUC(), sm.BrierScore()], 2, 2),
        ([sm.F1(), sm.F1(average="macro"), sm.F1(pos_label=0), sm.F1(zero_division=0)], 1, 1),
        ([sm.F1(threshold=0.5), sm.Accuracy(threshold=0.4)], 2, 1),
        ([sm.ROCAUC(), sm.AveragePrecision(max_bins=16)], 2, 1),
    ],
)
def test_sets_share_what_the_page_says(metrics, statistics_there, readings_there):
    made = sm.MetricSet({str(place): metric for place, metric in enumerate(metrics)})
    assert len(statistics(made)) == statistics_there
    assert len(json.loads(described_by(made.to_bytes()))["feeds"]) == readings_there


@pytest.mark.parametrize(
    ("head", "made"),
    [
        (HEADS[0], table),
        (HEADS[1], own_parameters),
        pytest.param(HEADS[2], readings, marks=pytest.mark.long),
    ],
)
def test_generated_tables_are_up_to_date(head, made):
    assert made() == PAGE[slice(*rows_under(head))], "run python tests/test_format.py"


@functools.cache
def rules():
    """Return the rows of both tables of the page: names, and alternatives or conditions."""
    section = PAGE.partition("\n## Which metric has which statistics\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (`.*?) \|$", section, re.MULTILINE)
    return [(re.findall(r"`(\w+)`", names), text) for names, text in rows]


def chosen(metric):
    """Return the statistics of a metric by the rules of the page."""
    split, name = rules(), type(metric).__name__
    (listed,) = [text for names, text in split if name in names]
    left = [re.findall(r"`(\w+)`", each) for each in listed.split(";")]
    for names, text in split:
        if len(left) > 1 and ("=" in text or " not " in text):
            holds = any(fulfilled(metric, each) for each in text.split(";"))
            (statistic,), least = set(names), len(names)
            kept = [each for each in left if (each.count(statistic) >= least) == holds]
            left = kept or left
    return left


def fulfilled(metric, conditions):
    """Whether the parameters of a metric fulfil conditions of the page."""
    found = re.findall(r"`(\w+)=([^`]+)`|`(\w+)` not ([\w.]+)", conditions)
    assert len(found) == conditions.count(",") + 1
    for name, value, other, excluded in found:
        mine = getattr(metric, name or other, chosen)  # `chosen`: it has no such parameter
        if mine is not chosen and (mine == json.loads(value or excluded)) != bool(name):
            return False
    return True


def test_rules_of_the_page_choose_the_statistics_of_every_form():
    for metric in every_form():
        assert chosen(metric) == [statistics(metric)], metric


@pytest.mark.long
def test_no_other_parameter_decides_which_statistics_there_are():
    values = {}
    for oracle in ORACLES:
        for name, parameter in inspect.signature(type(oracle.metric)).parameters.items():
            kinds = str(parameter.annotation)
            told = values.setdefault(name, DECIDING.get(name, [])[:])
            told += re.findall(r"'(\w+)'", " ".join(re.findall(r"Literal\[[^]]*\]", kinds)))
            told += [False, True] * (kinds == "bool") + [None] * ("None" in kinds)
            told[:] = dict.fromkeys(told)
    for metric in forms([oracle.metric for oracle in ORACLES], values, 1):
        assert chosen(metric) == [statistics(metric)], metric


def test_pairs_are_encoded_as_the_page_says():
    base = {int(base) for base in re.findall(r"index of x × 2\^(\d+) \+ index of y", PAGE)}
    assert base == {32}
    x, y = [1.0, 2.0, 3.0, 3.0], [3.0, 1.0, 2.0, 3.0]
    arrays = arrays_of(sm.KendallTau().update(x, y).to_bytes())
    assert arrays["0/pairs"] == (2, 1 << 32, (2 << 32) + 1, (2 << 32) + 2)
    made = sm.ConcordanceIndex().update(time=x, event=[1, 1, 1, 0], score=y)
    assert arrays_of(made.to_bytes())["0/events/pairs"] == (2, 1 << 32, (2 << 32) + 1)


def arrays_of(blob):
    """Return the I64 and U8 arrays of a state as tuples of numbers, and as bytes."""
    size = struct.unpack("<Q", blob[:8])[0]
    found = {}
    for name, told in json.loads(blob[8 : 8 + size]).items():
        if told.get("dtype") in {"I64", "U8"}:
            start, stop = (8 + size + at for at in told["data_offsets"])
            part = blob[start:stop]
            wide = told["dtype"] == "I64"
            found[name] = struct.unpack(f"<{len(part) // 8}q", part) if wide else part
    return found


def described_by(blob):
    """Return the text of a description."""
    size = struct.unpack("<Q", blob[:8])[0]
    return json.loads(blob[8 : 8 + size])["__metadata__"]["streammetrics"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-7, "1e-07"),
        (1.0, "1.0"),
        (0.0001, "0.0001"),
        (1e15, "1000000000000000.0"),
        (1.5e16, "1.5e+16"),
        (2.5e-300, "2.5e-300"),
    ],
)
def test_floats_are_written_as_the_page_says(value, text):
    assert f"`{text}`" in PAGE
    assert f'"delta":{text}}}' in described_by(sm.HuberLoss(delta=value).to_bytes())


def test_facts_of_keys_are_those_of_the_page():
    day = datetime.date(2024, 5, 17)
    for key, kind in (("Rome", "text"), (3, "integers"), (True, "true or false"), (day, "dates")):
        made = sm.Slices({"mean": sm.Mean()}, by=["city"]).update({"values": [1.0], "city": [key]})
        assert json.loads(described_by(made.to_bytes()))["feeds"] == [[{"by city": kind}, 1, 0]]
        assert f'`"{kind}"`' in PAGE
    binned = sm.Slices({"mean": sm.Mean()}, by=[sm.Bins("age", [18.0])])
    binned.update({"values": [1.0], "age": [3.0]})
    assert json.loads(described_by(binned.to_bytes()))["feeds"] == [[{}, 1, 0]]
    units = sm.MetricSet({"mean": sm.Mean()}, unit="it's").update({"values": [1.0], "it's": [3]})
    facts = json.loads(described_by(units.to_bytes()))["feeds"][0][0]
    assert facts == {'units "it\'s"': "integers"}


def test_facts_of_groups_are_sorted_texts():
    made = sm.Slices({"f1": sm.F1(average="macro")}, by=["g"])
    made.update({"y_true": [1], "y_pred": [1], "g": [1]})
    made.update({"y_true": [True], "y_pred": [True], "g": [2]})
    facts = json.loads(arrays_of(made.to_bytes())["0/facts"])
    assert facts == ['{"labels":"booleans"}', '{"labels":"integers"}']


def test_a_sample_histogram_is_one_histogram():
    made = sm.KSDistance().update(sample=[0, 0, 1], values=[1.0, 2.0, 2.0])
    arrays = arrays_of(made.to_bytes())
    assert arrays["0/form"][0] == 1
    assert arrays["0/0/counts"] == (1, 0, 1, 1)  # of each value: reference, current


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
    page = PAGE
    for head, made in zip(HEADS, (table, own_parameters, readings), strict=True):
        start, stop = rows_under(head, page)
        page = page[:start] + made() + page[stop:]
    (ROOT / "docs" / "format.md").write_text(page, "utf-8")
