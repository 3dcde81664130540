"""Results as text for elsewhere, as flat numbers, and as notebooks show them."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest

import streammetrics as sm
from streammetrics.core.results.table import plain_text

BAD = "<script>|$x_1"
SUITE = sm.MetricSet({"acc": sm.Accuracy(), "recall": sm.Recall(average=None)})
SUITE.update(y_true=[BAD, "b", "b"], y_pred=[BAD, "b", BAD])


def test_csv_has_every_number_in_full():
    rows = list(csv.DictReader(io.StringIO(SUITE.compute().to_csv())))
    assert [row["of"] for row in rows] == ["", BAD, "b"]
    assert float(rows[0]["value"]) == 2 / 3


def test_markdown_and_latex_escape_names():
    markdown = SUITE.compute().to_markdown().splitlines()
    assert markdown[:2] == ["| metric | of | value |", "| :-- | :-- | --: |"]
    assert markdown[3] == r"| recall | &lt;script>\|$x_1 | 1 |"
    latex = SUITE.compute().to_latex()
    assert latex.startswith("\\begin{tabular}{llr}\n\\toprule\nmetric & of & value \\\\\n")
    assert r"\textless{}script\textgreater{}|\$x\_1 & 1 \\" in latex


def test_flat_numbers_have_names_of_classes():
    assert SUITE.flat() == {"acc": 2 / 3, f"recall/{BAD}": 1.0, "recall/b": 0.5}
    mixed = sm.MetricSet({"matrix": sm.ConfusionMatrix(), "report": sm.ClassificationReport()})
    flat = mixed.update(y_true=[0, 1], y_pred=[0, 1]).flat("x/")
    assert flat["x/report/macro avg/f1-score"] == 1.0
    assert all(type(value) is float for value in flat.values())
    assert not any(name.startswith("x/matrix") for name in flat)


def test_flat_numbers_of_slices_are_of_all_rows_and_of_comparisons_by_model():
    accuracy = sm.MetricSet({"acc": sm.Accuracy(threshold=0.5)})
    slices = sm.Slices(accuracy, by=[["k"]]).update(y_true=[0, 1], y_score=[0.1, 0.2], k=["a", "b"])
    assert slices.flat() == {"acc": 0.5}
    duel = sm.Comparison(accuracy, {"one": "p", "two": "q"})
    assert duel.update(y_true=[0, 1], p=[0.1, 0.9], q=[0.1, 0.2]).flat() == {
        "one/acc": 1.0,
        "two/acc": 0.5,
    }


def test_card_has_what_the_hub_reads():
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.3)})
    suite.update(y_true=[0, 1], y_score=[0.2, 0.4])
    card = sm.model_index(suite, model="m", task="t", dataset="u/d", revision="abc")
    (result,) = card["model-index"][0]["results"]
    assert result["dataset"] == {"type": "u/d", "name": "u/d", "split": "test", "revision": "abc"}
    assert [metric["type"] for metric in result["metrics"]] == ["roc_auc", "f1"]
    assert result["metrics"][1]["args"] == {"threshold": 0.3}
    empty = sm.model_index(sm.MetricSet({"a": sm.Accuracy()}), model="m", task="t", dataset="u/d")
    assert empty["model-index"][0]["results"][0]["metrics"] == []


def test_notebooks_show_value_interval_rows_and_exactness():
    rough = sm.ROCAUC(max_bins=4).update([0, 1] * 50, [k / 100 for k in range(100)])
    low, high = rough.bounds()
    large = sm.ROCAUC().update([0, 1] * 2000, [k / 4000 for k in range(4000)])
    assert f"<td>{large.compute():.6g}</td>" in large._repr_html_()  # of more than a line is worth
    html = rough._repr_html_()
    for told in ("certainly within", f"{low:.6g} .. {high:.6g}", "<td>no</td>", "<td>100</td>"):
        assert told in html
    assert "&lt;script&gt;" in SUITE._repr_html_() + SUITE.compute()._repr_html_()
    assert "<td>yes</td>" in SUITE._repr_html_()
    live = sm.Live(sm.MetricSet({"mean": sm.Mean()}))
    assert "<table>" not in live._repr_html_()
    assert "<td>3</td>" in live.observe(time=1_700_000_000, values=3.0)._repr_html_()


@pytest.mark.parametrize("thing", [SUITE, SUITE["acc"], SUITE.compute(), SUITE["recall"].compute()])
def test_notebook_tables_bring_no_colours_or_scripts(thing):
    html = thing._repr_html_()
    assert "style" not in html
    assert "<script" not in html


def test_what_would_break_a_line_or_command_a_terminal_is_shown_as_escapes():
    odd = ["a\nb", "\x1b[2Jc", "d\u202ee", "f\u2028g", "h\u200di"]  # the last joins emoji: it stays
    recall = sm.MetricSet({"recall": sm.Recall(average=None)}).update(y_true=odd, y_pred=odd)
    values = recall.compute()
    for text in (
        values.to_markdown(),
        values.to_latex(),
        str(
            sm.Slices(recall.copy().reset(), by=["k"])
            .update(y_true=odd, y_pred=odd, k=odd)
            .compute()
        ),
    ):
        for sign in "\x1b\u202e\u2028":
            assert sign not in text
        assert "h\u200di" in text
    assert len(values.to_markdown().splitlines()) == 2 + len(odd)
    assert r"a\\nb" in values.to_markdown()


def test_numbers_of_one_flat_name_are_no_numbers():
    suite = sm.MetricSet({"a/1": sm.Recall(), "a": sm.Recall(average=None)})
    with pytest.raises(ValueError, match="two numbers of this set would be called 'a/1'"):
        suite.update(y_true=[0, 1], y_pred=[0, 0]).flat()


MARKED = [
    "![x](http://a.b/c.png)", "[x](http://a.b)", "[x][y]", "<http://a.b>", "http://a.b", "WWW.a.b",
    "*a*", "**a**", "_a_", "__a__", "a_b_c", "_", "`a`", "``a|b``", "~~a~~", "a|b", "\\|", "\\",
    "\\\\[x](y)", "&lt;b&gt;", "&#91;x](y)", "R&D", "<b>a</b>", "é_a_é", "a*b*c", "n_rows",
    "[0, 1]", "*", "a\\*b",
]  # fmt: skip


def rendered(markdown):
    """Return the cells of a Markdown table as text, and what a page has beside tables."""
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    page = parser.enable(["table", "strikethrough"]).render(markdown)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)
    tags = set(re.findall(r"</?(\w+)", page)) - {"table", "thead", "tbody", "tr", "th", "td"}
    return list(map(html.unescape, cells)), tags


def test_markdown_shows_names_as_they_are():
    suite = sm.MetricSet({"recall": sm.Recall(average=None)}).update(y_true=MARKED, y_pred=MARKED)
    slices = sm.Slices(sm.MetricSet({"n": sm.Count()}, columns={"values": "v"}), by="k")
    for markdown in (
        suite.compute().to_markdown(),
        slices.update(v=[1.0] * len(MARKED), k=MARKED).compute().to_markdown(),
    ):
        cells, tags = rendered(markdown)
        assert not tags
        assert set(MARKED) <= set(cells)
        assert "://" not in markdown
        assert "www." not in markdown.lower()
    cells, tags = rendered("| n |\n| --- |\n" + "".join(f"| {plain_text(x)} |\n" for x in MARKED))
    assert cells[1:] == MARKED


FORMULAS = ["=1+1", "+x", "-x", "@sum(a)", "\tx", "\rx", "-1+1", "=cmd|' /C calc'!A0"]
NUMBERS = ["-1", "+2.5", "-inf", "1e3", "x=1", "'", "", "a-b"]


def test_no_name_in_csv_is_a_formula():
    names = [*FORMULAS, *NUMBERS]
    suite = sm.MetricSet({"recall": sm.Recall(average=None)}).update(y_true=names, y_pred=names)
    rows = list(csv.reader(io.StringIO(suite.compute().to_csv(), newline="")))[1:]
    assert sorted(row[1] for row in rows) == sorted([f"'{x}" for x in FORMULAS] + NUMBERS)
    metrics = sm.MetricSet({"=mean": sm.Mean(), "mean": sm.Mean()}).update(values=[-1.5])
    assert metrics.compute().to_csv().splitlines()[1:] == ["'=mean,-1.5", "mean,-1.5"]
