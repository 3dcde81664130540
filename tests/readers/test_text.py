"""CSV and JSON as people have them: any delimiter, encoding, line ends, arrays of objects."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pyarrow as pa
import pytest
from prediction_files import store, text
from reading import fed, rows, suite

import streammetrics as sm
from streammetrics.readers import delimited, jsonlines
from streammetrics.readers.formats import pieces_of
from streammetrics.readers.paths import ReadError, find

TABLE = rows(500)
PLAIN = text(TABLE).decode()


def state(tmp_path, body, name="t.csv", encoding="utf-8", **options):
    (tmp_path / name).write_bytes(body if isinstance(body, bytes) else body.encode(encoding))
    return sm.evaluate(suite(), tmp_path / name, **options)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_the_delimiter_is_found(tmp_path, sign, name):
    assert state(tmp_path, text(TABLE, sign), name) == fed(TABLE)


@pytest.mark.parametrize("sign", [";", "^", " ", "\x01"])
def test_the_delimiter_is_said(tmp_path, sign):
    body = PLAIN.replace(",", sign)
    assert state(tmp_path, body, delimiter=sign) == fed(TABLE)


def test_signs_in_names_and_fields_do_not_mislead(tmp_path):
    wordy = '"label";"a,b,c|d";"score"\n' + '1;"x,y,z|;";0.75\n0;"""";0.25\n' * 3
    small = {"label": [1, 0] * 3, "score": [0.75, 0.25] * 3}
    assert state(tmp_path, wordy) == fed(small)
    decimal_commas = "label;price;score\n1;2,5;0.75\n0;3,5;0.25\n"
    assert state(tmp_path, decimal_commas) == fed({"label": [1, 0], "score": [0.75, 0.25]})


def test_what_is_no_delimiter(tmp_path):
    for sign in ("", ";;", '"', "\n"):
        with pytest.raises(ReadError, match="is not one character, such as ';'"):
            state(tmp_path, PLAIN, delimiter=sign)


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "t.arrow"])
def test_only_what_is_separated_has_a_delimiter(tmp_path, name):
    store(TABLE, tmp_path / "a.csv")
    store(TABLE, tmp_path / name)
    form = "arrow" if name == "t.arrow" else name.partition(".")[2]
    for paths in ([tmp_path / name], [tmp_path / "a.csv", tmp_path / name], tmp_path):
        with pytest.raises(ReadError, match=f"{name} is read as {form}, and only CSV has a del"):
            sm.evaluate(suite(), paths, delimiter=",")


@pytest.mark.parametrize("names", [["0x1f", "0X2A"], ["0x1f", "12"], ["x", "0x1f"]])
def test_labels_like_hexadecimal_numbers_are_names(tmp_path, names):
    path = tmp_path / "t.csv"
    path.write_text("y,p\n" + "".join(f"{name},{name}\n" for name in names))
    counted = sm.MetricSet({"matrix": sm.ConfusionMatrix()}, columns={"y_true": "y", "y_pred": "p"})
    matrix = sm.evaluate(counted, path).compute()["matrix"]
    assert matrix.axes[0][1] == tuple(sorted(names))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_marks_of_encodings(tmp_path, encoding, name):
    body = text(TABLE, "\t" if name == "t.tsv" else ",", lines=name == "t.jsonl").decode()
    assert state(tmp_path, body, name, encoding) == fed(TABLE)


def test_names_in_an_encoding_that_is_not_said(tmp_path):
    with pytest.raises(sm.InvalidBatchError, match=r"t.csv: the column names are not in UTF-8"):
        state(tmp_path, "größe,label,score\n1,1,0.5\n", encoding="latin-1")
    body = "label,score,note\n1,0.75,größe\n0,0.25,x\n"  # where nobody reads it, it may be
    assert state(tmp_path, body, encoding="latin-1") == fed(
        {"label": [1, 0], "score": [0.75, 0.25]}
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("before", [0, 2])
def test_line_ends_and_blank_lines(tmp_path, end, last, before):
    body = end * before + PLAIN.replace("\n", end) + end * (2 * last)
    assert state(tmp_path, body if last else body.removesuffix(end)) == fed(TABLE)


def test_the_row_of_a_wrong_number(tmp_path):
    body = "\n\nlabel,score\n1,0.5\n0,x\n"
    with pytest.raises(sm.InvalidBatchError, match="score holds 'x' in row 1; numbers are needed"):
        state(tmp_path, body)


def test_a_first_row_longer_than_what_is_looked_at(tmp_path):
    names = [f"a column with a long name {i}" for i in range(5000)]
    body = ",".join(["label", *names, "score"]) + "\n"
    body += "".join(f"{label},{'7,' * 5000}{score}\n" for label, score in ((1, 0.75), (0, 0.25)))
    assert state(tmp_path, body) == fed({"label": [1, 0], "score": [0.75, 0.25]})
    long = f'label,note,score\n1,"{"x" * 300_000}",0.75\n0,,0.25\n'
    assert state(tmp_path, long) == fed({"label": [1, 0], "score": [0.75, 0.25]})


def test_names_without_rows_and_nothing_at_all(tmp_path):
    assert state(tmp_path, "label,score\n") == suite()
    assert state(tmp_path, "label,score") == suite()
    for body in ("", "\n\n", b"\xef\xbb\xbf"):
        with pytest.raises(
            sm.InvalidBatchError, match=r"t.csv: is empty; expected a first line with column names"
        ):
            state(tmp_path, body)


def test_fields_that_are_no_numbers_or_not_in_utf8(tmp_path):
    for body, message in (
        ('label,score\n1,"0.5\n0,0.1\n', r"score holds '0.5\\n0,0.1\\n' in row 0; numbers are"),
        (
            "label,score\n1,0.5\ngrün,0.1\n",
            "label is not in UTF-8 in row 1; save it in UTF-8",
        ),
        ("label;score\n1;0,5\n", "score holds '0,5' in row 0; numbers are needed"),
    ):
        with pytest.raises(sm.InvalidBatchError, match=message) as caught:
            state(tmp_path, body, encoding="latin-1")
        assert caught.value.row == (1 if "UTF" in message else 0)


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.json.gz"])
def test_an_array_of_objects(tmp_path, indent, name):
    table = TABLE.append_column("note", pa.array(['],[ "\\\n{'] * 500))
    body = json.dumps(table.to_pylist(), indent=indent)
    assert state(tmp_path, body, name) == fed(TABLE)
    assert state(tmp_path, f"\n {body} \n", name) == fed(TABLE)


def test_an_array_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonlines, "_BLOCK", 1001)
    table = rows(2000)
    many = table.append_column("note", pa.array(["é" * 99] * 2000))
    assert state(tmp_path, json.dumps(many.to_pylist(), ensure_ascii=False), "t.json") == fed(table)


@pytest.mark.parametrize("array", [False, True])
def test_keys_that_come_too_late_to_be_read(tmp_path, array):
    early = [{"label": i % 2, "query": i, "p0": 0.5, "p1": 0.5, "note": "p2"} for i in range(3000)]
    late = {"label": 1, "query": 1, "p0": 0.5, "p1": 0.25, "p2": 0.25, "doc": 7, "more": {"p3": 1}}
    body = json.dumps([*early, late])
    lines = "".join(json.dumps(row) + "\n" for row in [*early, late])
    (tmp_path / "t.json").write_text(body if array else lines)
    for metric, columns, key in (
        (sm.TopKAccuracy(k=1), {"y_true": "label", "y_score": "p*"}, "p2"),
        (sm.NDCG(), {"relevance": "label", "score": "p0"}, "doc"),
    ):
        suite = sm.MetricSet({"m": metric}, columns=columns)
        with pytest.raises(
            sm.InvalidBatchError, match=f"the key '{key}' first stands in row 3000, and which"
        ):
            sm.evaluate(suite, tmp_path / "t.json")
    listed = {"y_true": "label", "y_score": ["p0", "p1"]}
    suite = sm.MetricSet({"m": sm.TopKAccuracy(k=1)}, columns=listed)
    assert sm.evaluate(suite, tmp_path / "t.json")["m"].n_rows == 3001


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('[{"label": 1, "score": 0.5}', "item 1 of its array is not whole"),
        ('[{"label": 1, "score": 0.5},]', "item 1 of its array is not whole"),
        ('[{"label": 1, "score": 0.5} {"label": 1}]', "item 1 of its array is not whole"),
        ('[{"label": 1, "score": 0.5}] {}', "item 1 of its array is not whole"),
        ('[{"label": 1, "score": 0.5}, {"label":', "item 1 of its array is not whole"),
        ('[{"label": 1, "score": 0.5}[]', "item 1 of its array is not whole"),
        ("[1, 2]", "row 0 is not a JSON object"),
        ('[{"label": 1, "score": "x"}]', 'score holds "x" in row 0; numbers are needed'),
        (f'[{{"a": {"[" * 9999}{"]" * 9999}}}]', "item 0 of its array is not whole"),
        (f'{{"a": {"[" * 9999}{"]" * 9999}}}', "row 0 is not a JSON object"),
        ("[]", "is empty; JSON objects are expected"),
        ("", "is empty; JSON objects are expected"),
    ],
)
def test_arrays_that_are_none(tmp_path, body, message):
    with pytest.raises(sm.StreamMetricsError, match=rf"t.json: .*{message}"):
        state(tmp_path, body, "t.json")


# --- decimals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("kind", [pa.decimal128(9, 4), pa.decimal128(38, 18), pa.decimal256(60, 9)])
def test_decimals_are_the_nearest_numbers(tmp_path, name, kind):
    scores = [Decimal(i) / 1000 for i in range(1000)]
    labels = [i % 2 for i in range(1000)]
    table = pa.table(
        {
            "label": pa.array(labels).cast(pa.decimal128(38, 0)),
            "score": pa.array(scores, pa.decimal128(38, 9)).cast(kind),
        }
    )
    expected = fed({"label": labels, "score": [float(score) for score in scores]})
    assert sm.evaluate(suite(), store(table, tmp_path / name)) == expected
    assert fed(table) == expected


def test_a_row_of_other_width_is_counted_from_zero_as_all_rows_are(tmp_path):
    told = r"row 1 has 3 fields, and the first line has 2 names: put a field that contains ','"
    with pytest.raises(sm.InvalidBatchError, match=told) as caught:
        state(tmp_path, "\nlabel,score\n1,0.5\n0,0,1\n")
    assert caught.value.row == 1


def test_lists_in_json_are_told_where_other_rows_have_none(tmp_path):
    one, row = '{"label": 1, "score": 0.5}\n', '{"label": [1], "score": 0.5}\n'
    with pytest.raises(
        sm.InvalidBatchError, match=r"label holds \[1\] in row 1; each row must be a num"
    ):
        state(tmp_path, one + row, "t.jsonl")
    with pytest.raises(
        sm.InvalidBatchError, match=r"label holds 1 in row 1; lists of one kind are needed"
    ) as caught:
        state(tmp_path, row + one, "t.jsonl")
    assert (caught.value.column, caught.value.row) == ("label", 1)
    with pytest.raises(sm.InvalidBatchError, match=r"row 0 is not a JSON object \(it is '3'\)"):
        state(tmp_path, "3", "t.json")
    with pytest.raises(sm.InvalidBatchError, match="row 1 is not a JSON object"):
        state(tmp_path, row + '{"label": [1\n', "t.jsonl")


LISTS: dict[str, tuple[dict[str, sm.Metric], dict[str, list[object]]]] = {
    "sets": (
        {"f1": sm.F1(average="macro", multilabel=True, labels=["a", "b"])},
        {"y_true": [["a"], [], ["a", "b"]], "y_pred": [["a", "b"], [], ["b"]]},
    ),
    "indicators": (
        {"auc": sm.ROCAUC(multilabel=True)},
        {"y_true": [[0, 1], [1, 0], [1, 1]], "y_score": [[0, 1], [0.5, 0.25], [1, 0.75]]},
    ),
    "classes": (
        {"loss": sm.LogLoss(), "right": sm.Accuracy()},
        {
            "y_true": [0, 1, 1],
            "y_score": [[0.5, 0.5], [0.25, 0.75], [1, 0]],
            "y_pred": [0, 1, 0],
        },
    ),
    "tags": (
        {"spans": sm.SpanF1()},
        {"y_true": [["B-A", "O"], [], ["B-B"]], "y_pred": [["B-A", "B-B"], [], ["O"]]},
    ),
    "boxes": (
        {"ap": sm.BoxAveragePrecision()},
        {
            "true_boxes": [[[0, 0, 2, 2]], [], [[1, 1, 3, 3.5], [0, 0, 1, 1]]],
            "true_labels": [["a"], [], ["a", "b"]],
            "pred_boxes": [[[0, 0, 2, 2]], [], [[1, 1, 3, 3.25]]],
            "pred_labels": [["a"], [], ["a"]],
            "pred_scores": [[0.5], [], [0.25]],
        },
    ),
    "outputs": (
        {"mse": sm.MSE(multioutput="raw_values")},
        {"y_true": [[1, 2.5], [3, 4], [5, 6]], "y_pred": [[1, 2], [3, 4], [5, 7]]},
    ),
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("block", [None, 40])
def test_lists_in_json_are_lists_as_those_of_python(tmp_path, kind, block, monkeypatch):
    metrics, columns = LISTS[kind]
    lists = sm.MetricSet(metrics)
    if block is not None:  # some rows at a time
        monkeypatch.setattr(jsonlines, "_BLOCK", block)
    objects = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = tmp_path / "t.jsonl"
    lines.write_text("\n".join(map(json.dumps, objects)))
    expected = lists.copy().update(columns)
    assert sm.evaluate(lists, lines) == expected
    array = tmp_path / "t.json"
    array.write_text(json.dumps(objects, indent=1))
    assert sm.evaluate(lists, array) == expected


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize(
    ("score", "once", "twice"),
    [
        ("0.5", '"label": 1', '"label": 1, "label": 0'),
        ("[0.5]", '"label": [1]', '"label": [1], "label": [0]'),
    ],
)
def test_a_key_of_json_that_is_read_stands_once(tmp_path, ending, score, once, twice):
    rows = [f'{{"score": {score}, {keys}}}' for keys in (once, twice)]
    body = "\n".join(rows) if ending == "jsonl" else f"[{', '.join(rows)}]"
    with pytest.raises(sm.InvalidBatchError, match=r"row 1 .*it has the key 'label' 2 times"):
        state(tmp_path, body, f"t.{ending}")


def test_a_key_of_json_that_nothing_reads_may_stand_twice(tmp_path):
    row = '{"label": %d, "score": 0.5, "note": 1, "note": {"label": 7, "label": 8}}\n'
    plain = '{"label": %d, "score": 0.5}\n'
    found = state(tmp_path, row % 0 + row % 1, "t.jsonl")
    assert found == state(tmp_path, plain % 0 + plain % 1, "t.jsonl")


def test_a_row_of_json_may_be_of_any_length(tmp_path):
    lines = [
        json.dumps({"label": i % 2, "score": i / 8, "t": "x" * (i * 500_000)}) for i in range(8)
    ]
    read = state(tmp_path, "\n".join(lines), "t.jsonl")
    assert read == fed({"label": [i % 2 for i in range(8)], "score": [i / 8 for i in range(8)]})


@pytest.mark.parametrize(
    ("rows", "end"), [(0, ""), (0, "\n"), (1, "\r\n"), (40, ""), (40, "\n"), (600_000, "\n")]
)
def test_a_quote_of_csv_that_nothing_closes_is_said(tmp_path, rows, end):
    """What follows was part of a field that is not read, and so no row, without a word."""
    body = "label,score,t\n0,0.25,b\n" + '1,0.5,"a\n' + "0,0.25,b\n" * rows
    told = "a double quote opens a field of row 1, and none" if rows < 1000 else "longer than 4,194"
    with pytest.raises(sm.InvalidBatchError, match=told):
        state(tmp_path, body.removesuffix("\n") + end)


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n", "\n\n"])
def test_quotes_that_are_closed_or_stand_within_a_field_lose_nothing(tmp_path, end):
    body = 'label,score,t\n1,0.5,"a\nb"\n0,0.25,5" wide\n0,0.75,"say ""hi"""\n1,0.25,"c"'
    table = {"label": [1, 0, 0, 1], "score": [0.5, 0.25, 0.75, 0.25]}
    assert state(tmp_path, body + end) == fed(table)
    one = "label\n" + "1\n0\n" * 3
    counted = sm.MetricSet({"n": sm.Count()}, columns={"values": "label"})
    (tmp_path / "one.csv").write_text(one)
    assert sm.evaluate(counted, tmp_path / "one.csv").n_rows == 6


@pytest.mark.parametrize("sign", ["^", " ", ":"])
def test_names_that_nothing_known_parts_are_told_of_the_delimiter(tmp_path, sign):
    with pytest.raises(
        sm.InvalidBatchError, match=r"no column 'label'.*--delimiter, or delimiter="
    ):
        state(tmp_path, PLAIN.replace(",", sign))
    with pytest.raises(sm.InvalidBatchError, match="There are: labels$"):
        state(tmp_path, "labels\n1\n")


def counted(tmp_path, body, name="v.csv"):
    """Return how many values of a file's column count, and how many are missing."""
    (tmp_path / name).write_bytes(body.encode())
    metrics = {"n": sm.Count(nan_policy="omit"), "most": sm.Maximum(nan_policy="omit")}
    found = sm.evaluate(sm.MetricSet(metrics, columns={"values": "v"}), tmp_path / name)
    return found["n"].compute(), found["n"].n_omitted, found["most"].compute()


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "v\n1.0\n\n3.0\n": (2, 1, 3),
        "v\n\n1\n3\n": (2, 1, 3),
        "v\n1\n3\n\n": (2, 1, 3),
        "v\n1\n\n\n3": (2, 2, 3),
        "\n\nv\n1\n\n3\n": (2, 1, 3),
        "v\n1\n\n9007199254740993\n": (2, 1, 2**53),
        'v\n1\n""\n3\n': (2, 1, 3),
        "v\n\n": (0, 1, None),
        "v\n": (0, 0, None),
        "v": (0, 0, None),
        "v,\n1,\n\n,\n3,\n": (2, 1, 3),
    }.items(),
)
def test_an_empty_line_of_one_column_is_a_missing_value(tmp_path, body, expected, end):
    n, omitted, most = counted(tmp_path, body.replace("\n", end))
    assert (n, omitted, most if n else None) == expected


def test_rows_after_empty_lines_are_counted(tmp_path):
    with pytest.raises(sm.InvalidBatchError, match="v holds 'x' in row 2"):
        counted(tmp_path, "v\n1\n\nx\n")
    (tmp_path / "v.csv").write_text("v\n1\n\n3\n")
    with pytest.raises(sm.InvalidBatchError, match=r"missing .* in 1 row, first in row 1 of"):
        sm.evaluate(sm.MetricSet({"n": sm.Mean()}, columns={"values": "v"}), tmp_path / "v.csv")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_null_that_a_library_writes_alone_in_its_line_is_missing(tmp_path, library):
    frame = pytest.importorskip(library).DataFrame({"v": [1.0, None, 3.0]})
    written = frame.write_csv() if library == "polars" else frame.to_csv(index=False)
    assert counted(tmp_path, written) == (2, 1, 3)


@pytest.mark.parametrize("number", ["1e400", "-1e999", "1" + "0" * 400, " 2e308"])
def test_a_number_beyond_float64_is_no_infinity(tmp_path, number):
    for text_ in (f"v\n1\n{number}\n", f"v,w\n1,0\n{number},0\n"):
        with pytest.raises(sm.InvalidBatchError, match="in row 1, which is beyond float64: divide"):
            counted(tmp_path, text_)
    with pytest.raises(sm.InvalidBatchError, match=r"v holds .* in row 1, which is beyond float64"):
        counted(tmp_path, f'{{"v": 1}}\n{{"v": {number}}}\n', "v.jsonl")
    boxes = '{"boxes": [[0, 0, 9, 9]], "labels": ["a"], "scores": [%s]}\n'
    names = {f"{side}_{name}": name for side in ("true", "pred") for name in ("boxes", "labels")}
    names["pred_scores"] = "scores"
    suite = sm.MetricSet({"ap": sm.BoxAveragePrecision()}, columns=names)
    (tmp_path / "t.jsonl").write_text(boxes % 1 + boxes % number)
    with pytest.raises(
        sm.InvalidBatchError, match=r"scores holds .* in row 1(, which is beyond|; lists of)"
    ):
        sm.evaluate(suite, tmp_path / "t.jsonl")
    for infinity in ("inf", "+Infinity", " INF"):
        assert counted(tmp_path, f"v\n{infinity}\n") == (1, 0, float("inf"))


def test_a_number_beyond_float64_that_nothing_reads_does_not_matter(tmp_path):
    for other in ("1e400", "-1e999", "Infinity", "NaN"):
        lines = f'{{"v": 1, "o": {other}}}\n\n{{"v": 2.5, "o": [{other}]}}\n{{"o": {other}}}\n'
        assert counted(tmp_path, lines, "v.jsonl") == (2, 1, 2.5)
        assert counted(tmp_path, f"v,o\n1,{other}\n2.5,\n,{other}\n") == (2, 1, 2.5)


def test_infinity_beside_a_long_integer_is_read(tmp_path):
    lines = '{"v": Infinity}\n{"v": 9007199254740992}\n'
    assert counted(tmp_path, lines, "v.jsonl") == (2, 0, float("inf"))


def test_labels_beyond_float64_stay_apart(tmp_path):
    (tmp_path / "t.csv").write_text("t,p\n1e400,1e400\n1e500,1e400\n")
    suite_ = sm.MetricSet({"a": sm.Accuracy()}, columns={"y_true": "t", "y_pred": "p"})
    assert sm.evaluate(suite_, tmp_path / "t.csv").compute() == {"a": 0.5}


def test_nothing_is_read_after_a_reader_is_left(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("label,score\n" + "1,0.5\n" * 3_000_000)
    calls, read = [], delimited._Ended.read

    def counted(self, size):
        calls.append(size)
        return read(self, size)

    monkeypatch.setattr(delimited._Ended, "read", counted)
    (source,) = find([str(path)], None).sources
    (piece,) = pieces_of([source], lambda _: {"score": "score"}, {"score": "number"}).pieces
    tables = piece.tables(1 << 16)
    next(tables)
    tables.close()
    n = len(calls)
    time.sleep(0.5)
    assert len(calls) == n


def test_codes_keep_the_zeros_before_them(tmp_path, monkeypatch):
    slices = sm.Slices(sm.MetricSet({"accuracy": sm.Accuracy()}), by="zip")
    path = tmp_path / "a.csv"

    def names(zips):
        path.write_text("y_true,y_pred,zip\n" + "".join(f"1,1,{code}\n" for code in zips))
        return set(sm.evaluate(slices.copy(), path).compute().to_dict()["zip"])

    assert names(["02134", "2134", "10001"]) == {"02134", "2134", "10001"}
    assert names(["0", "2134", "10001"]) == {0, 2134, 10001}
    monkeypatch.setattr("streammetrics.readers.delimited._BLOCK", 1 << 10)
    zips = ["02134"] * 200 + ["10001"] * 2000
    assert names(zips) == {"02134", "10001"}
    with pytest.raises(sm.InvalidBatchError, match="'text' here, 'integers' in rows seen before"):
        names(zips[::-1])
