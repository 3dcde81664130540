"""A report is one file that a stranger can read: no request, no script, names stay text."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from browser import opened, requested, violations
from oracles.table import ORACLES

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.show import page as figures
from streammetrics.show.formats import grids
from streammetrics.show.page import as_page, findings

RNG = np.random.default_rng(11)
N = 4000
Y = RNG.integers(0, 2, N)
S = np.clip(RNG.normal(0.4 + 0.2 * Y, 0.15), 0.001, 0.999)
BAD = "<script>alert(1)</script>"
TREES = np.array(["ash", "beech", BAD, "$oak & co"])[RNG.integers(0, 4, N)]


def metrics(max_bins=1 << 20):
    return sm.MetricSet(
        {
            "accuracy": sm.Accuracy(threshold=0.5),
            "auc": sm.ROCAUC(max_bins=max_bins),
            "average precision": sm.AveragePrecision(max_bins=max_bins),
            "calibration": sm.CalibrationCurve(n_bins=8),
            BAD: sm.ConfusionMatrix(threshold=0.5),
        },
        columns={"y_true": "label", "y_score": BAD},
    )


def sliced(rows=slice(None), **options):
    suite = sm.Slices(metrics(**options), by=[[], ["tree"]])
    return suite.update({"label": Y[rows], BAD: S[rows], "tree": TREES[rows]})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    sliced(max_bins=64).report(path, title=f"How good is {BAD}?")
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for k in range(10):
        sliced(slice(k, None, 10)).save(folder / f"shard-{k:02}.state")
    return folder


def text_of(html):
    return re.sub(r"<[^>]+>", " ", html)


def test_page_is_one_small_file_without_script(page):
    html = page.read_text()
    assert len(html.encode()) <= 500_000
    assert not re.search(r"<script|<link|<iframe|<img|\bon\w+=", html)
    assert not re.search(r"""(?:src|href)=["']?(?!#|data:)\w""", html)
    assert "How good is &lt;script&gt;alert(1)&lt;/script&gt;?" in html


def test_page_says_what_was_measured_on_what(page):
    html = page.read_text()
    text = text_of(html)
    for said in (
        "4,000 rows", "Certainly within", "95 % confidence", "y_true: label", "sha256:",
        "Accuracy(threshold=0.5)", "Worst by accuracy", "sliced by", "tree", "no column is named",
        "share of rows that are predicted correctly",
    ):  # fmt: skip
        assert said in text, said
    (numbers,) = re.findall(r"numbers of accuracy by slice.*?<thead>(.*?)</thead>", html, re.DOTALL)
    assert re.findall(r"<th[^>]*>(.*?)</th>", numbers) == [
        "by", "tree", "n_rows", "accuracy", "accuracy_low", "accuracy_high"
    ]  # fmt: skip
    assert html.count("<figure>") == html.count("The numbers of this picture") >= 6


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"width": 390}, {"paper": True}])
def test_browser_asks_for_nothing_and_finds_no_barrier(page, look):
    with opened(page, **look) as driver:
        asked = [url for url in requested(driver) if not url.startswith("data:")]
        assert asked == [page.resolve().as_uri()]
        assert violations(driver) == []
        assert not driver.get_log("browser")
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= look.get("width", 1100)
        ids = "[...document.querySelectorAll('[id]')].map(each => each.id)"
        names = driver.execute_script(f"return {ids}")
        assert len(names) == len(set(names))


@pytest.mark.parametrize("width", [1200, 360])
def test_a_long_name_leaves_the_numbers_beside_it_in_sight(tmp_path, width):
    names = np.where(TREES == "ash", BAD + 300 * "x", TREES)
    slices = sm.Slices(sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)}), by=[[], ["tree"]])
    slices.update(y_true=Y, y_score=S, tree=names).report(tmp_path / "long.html")
    with opened(tmp_path / "long.html", width=width) as driver:
        cells = driver.find_elements("css selector", "tbody th, td.text")
        widths = [cell.size["width"] for cell in cells]
        assert max(widths) <= min(330, 0.45 * width + 10)
        assert min(widths) > 20
        assert any(300 * "x" in cell.text for cell in cells)


def test_dark_page_has_dark_pictures(page):
    colour = (
        "return getComputedStyle(document.querySelector('figure svg text')).fill + "
        "getComputedStyle(document.body).backgroundColor"
    )
    with opened(page) as light, opened(page, dark=True) as dark:
        assert light.execute_script(colour) == "rgb(28, 33, 38)rgb(255, 255, 255)"
        assert dark.execute_script(colour) == "rgb(230, 234, 238)rgb(20, 24, 28)"


def test_one_command_reports_a_folder_of_shards(shards, tmp_path, capsys):
    out, twin = tmp_path / "report.html", tmp_path / "report.json"
    assert main(["report", str(shards), "-o", str(out), "--json", str(twin)]) == 0
    assert "4,000 rows" in capsys.readouterr().out
    document = json.loads(twin.read_text())
    assert document["metrics"]["auc"]["value"] == sliced()["auc"].compute()
    assert document["metrics"]["auc"]["confidence"]["level"] == 0.95
    assert document["slices"]["tree"]
    assert "accuracy" in document["glossary"]
    # It is written again over itself, and from any order of shards it is the same.
    first = out.read_bytes()
    states = [str(path) for path in sorted(shards.iterdir(), reverse=True)]
    assert main(["report", *states, "--merge", "-o", str(out), "--force"]) == 0
    again = re.sub(r"shard-\d\d\.state to [^<]+", "", out.read_text())
    assert len(again) == pytest.approx(len(first), rel=0.01)


def test_several_states_are_compared(shards, tmp_path):
    out = tmp_path / "both.html"
    states = [str(shards / f"shard-0{k}.state") for k in (1, 2)]
    assert main(["report", *states, "-o", str(out)]) == 0
    text = text_of(out.read_text())
    assert "Which is better" in text
    assert "Differences of models" in text
    assert "different rows, which is the weaker test" in text


def test_models_of_the_same_rows_are_compared_as_pairs(tmp_path):
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)})
    duel = sm.Comparison(suite, {"a": "one", "b": "two"})
    duel.update(y_true=Y, one=S, two=S[::-1].copy()).report(tmp_path / "duel.html")
    text = text_of((tmp_path / "duel.html").read_text())
    assert "McNemar, exact" in text
    assert "a better" in text


OWN = '''
from streammetrics.authoring import RowMean

class Share(RowMean):
    """Mean of p over that of y."""

    higher_is_better = False

    def row(self, y_true, y_pred):
        return y_pred, y_true

    def of_mean(self, p, y):
        return p / y
'''


def test_models_are_compared_by_a_metric_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_of_a_report.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = "".join([f"{1 + i % 7},{2 + i % 5},{3 + i % 5}\n" for i in range(90)])
    (tmp_path / "rows.csv").write_text(f"y,a,b\n{rows}")
    state, out = str(tmp_path / "models.state"), tmp_path / "report.html"
    asked = ["--task", "regression", "--y-true", "y", "--y-pred", "a", "--y-pred", "b"]
    own = ["--metrics", "own_of_a_report:Share", "--save", state]
    assert main(["evaluate", str(tmp_path / "rows.csv"), *asked, *own]) == 0
    sys.modules.pop("own_of_a_report")
    assert main(["report", state, "-o", str(out), "--import", "own_of_a_report"]) == 0
    told = text_of(out.read_text())
    assert "Share" in told
    assert "paired t" in told
    sys.modules.pop("own_of_a_report")


def test_report_of_a_comparison_says_p_also_where_it_is_no_number(tmp_path):
    """Below 1e-300 it is text, and undefined where there is one row."""
    for rows, said in ((200_000, "&lt; 1e-300"), (1, "undefined")):
        duel = sm.Comparison({"mae": sm.MAE(), "acc": sm.MSE()}, {"a": "a", "b": "b"})
        noise = np.random.default_rng(0).normal(size=rows)
        duel.update({"y_true": np.zeros(rows), "a": noise, "b": noise + 9}).save(tmp_path / "s")
        assert main(["report", str(tmp_path / "s"), "-o", str(tmp_path / "p.html"), "--force"]) == 0
        assert said in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize("what", ["corrupt", "cut", "foreign", "missing"])
def test_bad_state_is_one_line_and_leaves_no_file(what, shards, tmp_path, capsys):
    blob = (shards / "shard-00.state").read_bytes()
    files = {
        "corrupt": blob[:-9] + bytes([blob[-9] ^ 1]) + blob[-8:],
        "cut": blob[: len(blob) // 2],
        "foreign": b"PK\x03\x04 something else",
    }
    state = tmp_path / "some.state"
    if what in files:
        state.write_bytes(files[what])
    assert main(["report", str(state), "-o", str(tmp_path / "out.html")]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert str(state) in captured.err
    assert not captured.out
    assert [path.name for path in tmp_path.iterdir()] == ["some.state"] * (what in files)


def test_output_is_never_somebody_elses_file(shards, tmp_path, capsys):
    state = str(shards / "shard-00.state")
    mine = tmp_path / "mine.html"
    mine.write_text("<!doctype html><p>mine")
    assert main(["report", state, "-o", str(mine)]) == 2
    assert "add --force to overwrite it" in capsys.readouterr().err
    assert main(["report", state, "-o", state]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert mine.read_text() == "<!doctype html><p>mine"
    assert main(["report", state, "-o", str(mine), "--force"]) == 0


def test_empty_state_says_so(tmp_path, capsys):
    metrics().save(tmp_path / "empty.state")
    out = tmp_path / "empty.html"
    assert main(["report", str(tmp_path / "empty.state"), "-o", str(out)]) == 1
    assert "no rows" in capsys.readouterr().err
    assert "no rows were seen" in text_of(out.read_text())


def test_report_without_jinja_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'streammetrics\[report\]'"):
        metrics().report(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def service():
    live = sm.Live(
        sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()}),
        tiers=[("1min", "3h"), ("1h", "5d")], label_ttl="1h", label_lateness="1h", by=[["tree"]],
    )  # fmt: skip
    times = 1_700_000_000 + 8 * np.arange(N)
    known = RNG.random(N) < 0.9
    for some in np.array_split(np.arange(N), 40):
        ids = [f"r{k}" for k in some]
        live.predict(id=ids, time=times[some], y_score=S[some], tree=TREES[some])
        told = some[known[some]]
        live.label(id=[f"r{k}" for k in told], time=times[told] + 60, y_true=Y[told])
    return live


RULE = sm.Below("auc", 0.99, window="1h", after="1h", name="auc is low")


def test_live_state_is_told_over_time(service, tmp_path):
    page = tmp_path / "live.html"
    service.report(page, title="The service", rules=[RULE])
    text = text_of(page.read_text())
    for said in (
        "Over time", "Newest windows", "Labels of predictions", "once all labels are there",
        "auc over time, 1h each", "auc is low", "firing", "Worst by accuracy",
    ):  # fmt: skip
        assert said in text, said
    with opened(page) as driver:
        assert violations(driver) == []


def test_saved_live_state_and_its_twin_say_the_same(service, tmp_path):
    service.save(tmp_path / "live.state")
    command = ["report", str(tmp_path / "live.state"), "-o", str(tmp_path / "live.html")]
    assert main([*command, "--json", str(tmp_path / "live.json")]) == 0
    twin = json.loads((tmp_path / "live.json").read_text())
    told = twin["over_time"]["live"]
    assert list(told["windows"]) == ["1h", "1d"]
    hour = told["windows"]["1h"]
    assert hour["metrics"]["auc"]["value"] == service.window("1h")["auc"].compute()
    assert hour["coverage"]["labelled"] == service.coverage("1h").labelled
    assert hour["metrics"]["accuracy"]["possible"] == service.possible("1h")["accuracy"].to_dict()
    assert sum(told["series"]["n_rows"]) == twin["n_rows"] == service.n_rows
    assert len(told["series"]["time"]) <= 61
    assert told["alerts"] == []
    assert set(twin["slices"]["tree"]) == set(TREES)


CONFIG = """
title = "A service"
[metrics]
auc = "ROCAUC"
[live]
store = "live.db"
tiers = [["1min", "3h"], ["1h", "5d"]]
[alerts]
low = 'Below("auc", 2.0, window="1h", after="1min")'
[server]
clock = "events"
"""


def test_configuration_of_a_service_reports_its_store(tmp_path, capsys):
    config = tmp_path / "live.toml"
    config.write_text(CONFIG)
    out = tmp_path / "live.html"
    assert main(["report", str(config), "-o", str(out)]) == 2
    assert "that does not exist yet" in capsys.readouterr().err
    with sm.Live(
        sm.MetricSet({"auc": sm.ROCAUC()}), tiers=[("1min", "3h"), ("1h", "5d")],
        store=tmp_path / "live.db",
    ) as live:  # fmt: skip
        live.observe(time=1_700_000_000 + np.arange(N), y_true=Y, y_score=S)
    assert main(["report", str(config), "-o", str(out)]) == 0
    page = out.read_text()
    assert "<h1>A service</h1>" in page
    assert "firing" in text_of(page)


def test_empty_live_state_has_a_page(tmp_path):
    sm.Live(sm.MetricSet({"mean": sm.Mean()})).report(tmp_path / "empty.html")
    text = text_of((tmp_path / "empty.html").read_text())
    assert "0 rows" in text
    assert "no window has a value" in text


EACH = {type(oracle.metric).__name__: oracle for oracle in reversed(ORACLES)}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_every_metric_has_its_page():
    shown = []
    for name, oracle in EACH.items():
        rows = oracle.rows(np.random.default_rng(1), 20)
        metric = oracle.metric.copy()
        metric = metric.update(**rows) if isinstance(rows, dict) else metric.update(*rows)
        found = findings({"model": metric}, {"model": {}}, confidence=0.95)
        shown += [grid.lines[0][0] for grid in grids(found.results)][:1]
        if not isinstance(metric.compute(), int | float):
            assert name in text_of(as_page(found))
    assert shown == list(EACH)


def test_tables_of_a_page_fit_paper(page):
    with opened(page, width=794, paper=True) as driver:
        cells = "[...document.querySelectorAll('table:not(details table) td')]"
        lines = f"return Math.max(...{cells}.map(cell => cell.clientHeight))"
        assert driver.execute_script(lines) < 40  # no cell breaks its number into letters


def test_metrics_with_slashes_are_in_the_table_of_slices(tmp_path):
    metrics = {f"val/{n}": sm.Accuracy(threshold=n / 10) for n in range(1, 7)}
    suite = sm.MetricSet({**metrics, "cm": sm.ConfusionMatrix(threshold=0.5)})
    slices = sm.Slices(suite, by=[[], ["k"]])
    slices.update(y_true=[0, 1, 1, 0], y_score=[0.1, 0.7, 0.9, 0.6], k=["a", "a", "b", "b"])
    slices.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    (table,) = re.findall(r"<caption>Slices[^<]*</caption>\s*<thead>(.*?)</thead>", page)
    assert re.findall(r"<th[^>]*>(.*?)</th>", table) == ["k", "Rows", *metrics]
    assert re.findall(r"<figcaption>(.*?) by slice", page) == list(metrics)[:4]
    assert "val/1, val/2, val/3, val/4 are drawn; all 6 metrics are in the table" in page


def test_class_with_a_slash_stays_in_its_matrix(tmp_path):
    matrix = sm.ConfusionMatrix().update(["n/a", "yes"], ["n/a", "yes"])
    matrix.report(tmp_path / "page.html")
    assert '<th scope="col">n/a</th>' in (tmp_path / "page.html").read_text()


def test_state_that_is_named_twice_is_refused(shards, tmp_path, capsys):
    path = str(next(iter(sorted(shards.glob("*.state")))))
    assert main(["report", path, path, "-o", str(tmp_path / "page.html")]) == 2
    assert "is named twice, and its rows would count twice" in capsys.readouterr().err


def test_models_are_named_by_their_folders_and_limits_stand_where_values_do(tmp_path):
    for model, rows in {"old": slice(0, 2000), "new": slice(2000, N)}.items():
        (tmp_path / model).mkdir()
        sliced(rows, max_bins=64).save(tmp_path / model / "00.state")
    out, globs = tmp_path / "both.html", [str(tmp_path / m / "*.state") for m in ("old", "new")]
    assert main(["report", *globs, "-o", str(out)]) == 0
    page = out.read_text()
    assert "<h1>old and new</h1>" in page
    assert "see below (" not in page
    assert "below (none)" not in page


def test_pictures_of_a_page_are_no_more_than_it_has_room_for(monkeypatch, tmp_path):
    sliced(max_bins=64).report(tmp_path / "all.html")
    monkeypatch.setattr(figures, "_ALL", 60_000)
    sliced(max_bins=64).report(tmp_path / "some.html")
    drawn = [(tmp_path / name).read_text().count("<figure>") for name in ("all.html", "some.html")]
    assert 1 <= drawn[1] < drawn[0]
    assert (tmp_path / "some.html").stat().st_size < 120_000


def test_curves_are_told_of_all_rows_and_not_of_each_slice(tmp_path):
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "pr": sm.PrecisionRecallCurve()})
    slices = sm.Slices(suite, by=[[], ["tree"]]).update(y_true=Y, y_score=S, tree=TREES)
    slices.save(tmp_path / "model.state")
    page, twin = tmp_path / "report.html", tmp_path / "report.json"
    assert not main(["report", str(tmp_path / "model.state"), "-o", str(page), "--json", str(twin)])
    told = json.loads(twin.read_text())
    assert set(told["slices"]) == {"tree", "by", "n_rows", "auc"}
    assert set(told["metrics"]["pr"]["value"]) == {"precision", "recall", "thresholds"}


def test_long_curves_are_points_at_equal_distances_in_the_twin(tmp_path):
    scores = np.stack([S, 1 - S], axis=1)
    suite = sm.MetricSet({"roc": sm.ROCCurve(), "pr": sm.PrecisionRecallCurve(max_bins=512)})
    suite.update(y_true=Y, y_score=S).save(tmp_path / "binary.state")
    columns = {"y_true": Y, "y_score": scores}
    sm.MetricSet({"each": sm.ROCCurve()}).update(columns).save(tmp_path / "classes.state")
    twin = tmp_path / "report.json"
    states = [str(tmp_path / f"{name}.state") for name in ("binary", "classes")]
    assert not main(["report", *states, "-o", str(tmp_path / "r.html"), "--json", str(twin)])
    assert twin.stat().st_size < 700_000
    told = json.loads(twin.read_text())
    whole = suite["roc"].compute()
    places = np.linspace(0, len(whole.fpr) - 1, 500).round().astype(int)
    value = told["models"]["binary"]["metrics"]["roc"]["value"]
    assert value["tpr"] == whole.tpr[places].tolist()
    for side in ("value", "low", "high"):
        curve = told["models"]["binary"]["metrics"]["pr"][side]
        assert len(curve["recall"]) <= 500
    classes = told["models"]["classes"]["metrics"]["each"]["value"]
    assert [len(classes[label]["fpr"]) for label in "01"] == [500, 500]
    points = f"500 of up to {len(whole.fpr):,} points of a curve"
    assert sum(points in remark for remark in told["remarks"]) == 2


def test_models_of_different_metrics_stand_side_by_side(tmp_path):
    sm.MetricSet({"a": sm.Accuracy(), "f": sm.F1()}).update(y_true=[0, 1], y_pred=[0, 1]).save(
        tmp_path / "old.state"
    )
    sm.MetricSet({"a": sm.Accuracy(), "kappa": sm.CohenKappa()}).update(
        y_true=[0, 1, 1], y_pred=[0, 1, 1]
    ).save(tmp_path / "new.state")
    page, twin = tmp_path / "r.html", tmp_path / "r.json"
    states = [str(tmp_path / name) for name in ("old.state", "new.state")]
    assert not main(["report", *states, "-o", str(page), "--json", str(twin)])
    text = text_of(page.read_text())
    assert all(name in text for name in ("a", "f", "kappa"))
    models = json.loads(twin.read_text())["models"]
    assert [list(each["metrics"]) for each in models.values()] == [["a", "f"], ["a", "kappa"]]
