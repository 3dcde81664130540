"""The TOML of a service: read whole, and a mistake named by file, line and key."""

from __future__ import annotations

import re
import socket

import pytest

import streammetrics as sm
from streammetrics.live.service.config import TEMPLATE, settings
from streammetrics.live.service.toml import ConfigError


def written(tmp_path, text):
    path = tmp_path / "live.toml"
    path.write_text(text)
    return path


def test_the_template_is_a_configuration(tmp_path):
    found = settings(written(tmp_path, TEMPLATE))
    assert list(found.suite) == ["auc", "loss", "accuracy"]
    assert found.suite.columns == {"y_true": "label", "y_score": "score"}
    assert found.options["store"] == str(tmp_path / "live.db")
    with found.live(store=False) as live:
        live.observe(time=1_700_000_000, label=1, score=0.5)
        assert live.window("1h")["accuracy"].compute() == 1.0
    assert list(tmp_path.iterdir()) == [tmp_path / "live.toml"]


def test_every_key_of_the_template_means_something(tmp_path):
    lines = [line.removeprefix("# ") if " = " in line else line for line in TEMPLATE.splitlines()]
    lines = [line for line in lines if "of a regression" not in line and "TLS" not in line]
    text = "\n".join(lines).replace('"STREAMMETRICS_TOKEN"', '"PATH"')
    text = text.replace('"READ_TOKEN"', '"PATH"')
    found = settings(written(tmp_path, text.replace("PATH", "HOME")))
    assert (found.names.label_time, found.options["default_label"]) == ("label_time", 0)
    assert found.options["labels"] == [0, 1]
    assert found.server.body == 16_000_000
    assert found.server.socket == str(tmp_path / "live.sock")


MISTAKES = [
    ('"ROCAUC"', '"ROCAC"', "metrics.auc", "no metric 'ROCAC'; did you mean 'ROCAUC'"),
    ('"ROCAUC"', '"ROCAUC(max_bin=7)"', "metrics.auc", "ROCAUC has no parameter 'max_bin'"),
    ('"ROCAUC"', '"FBetaAtK"', "metrics.auc", "FBetaAtK needs k, "),
    ('"ROCAUC"', '"F1,MAE"', "metrics.auc", "are several metrics"),
    ('"ROCAUC"', "1", "metrics.auc", "expected a metric in quotes"),
    ("y_score =", "y_scor =", "columns.y_scor", "did you mean 'y_score'"),
    ('"score"', "3", "columns.y_score", "expected the name of a column in quotes"),
    ('"3h"]', '"61s"]', "live.tiers", "not a whole number of panes"),
    ('label_ttl = "1d"', 'label_ttl = "soon"', "live.label_ttl", "is not a duration"),
    ('label_ttl = "1d"', "label_ttl = 5", "live.label_ttl", "5 is not text in quotes"),
    ('window = "1h"', 'window = "61s"', "page.window", "is not a whole number of panes"),
    ('every = "5min"', 'every = "90s"', "page.every", "is not a whole number of panes"),
    ("[page]", "[pages]", "pages", "did you mean 'page'? There are: alerts, columns, live, metr"),
    ("port = 8000", "port = 80000", "server.port", "80000 is not between 0 and 65,535"),
    ("workers = 1", "workers = true", "server.workers", "true is not a whole number"),
    ('"127.0.0.1"', '"0.0.0.0"', "server.host", "open to other machines, and there is no"),
    ("port =", "prt =", "server.prt", "did you mean 'port'"),
    (
        "# auc_is_low = ",
        "low = 'Bellow(1)' #",
        "alerts.low",
        "no rule 'Bellow'; did you mean 'Below'",
    ),
    (
        "# auc_is_low = ",
        """low = 'Below("auc", 0.8, windw="1h")' #""",
        "alerts.low",
        "Below has no parameter 'windw'; did you mean 'window'",
    ),
]


@pytest.mark.parametrize(("good", "bad", "key", "why"), MISTAKES)
def test_a_mistake_is_named_by_line_and_key(tmp_path, good, bad, key, why):
    before, _, after = TEMPLATE.partition(good)
    path, line = written(tmp_path, f"{before}{bad}{after}"), before.count("\n") + 1
    said = re.escape(f"{path}: line {line}, {key}: ") + ".*" + re.escape(why)
    with pytest.raises(ConfigError, match=f"(?s)^{said}"):
        settings(path)


UNFIT = [
    ('mae = "MAE"', "", 'types = { y_true = "integers" }', "live.types: y_true is 'integers', and"),
    (
        'mae = "MAE"',
        "",
        "types = { y_pred = 3 }",
        "no event can match: y_true has 1 numbers a row, y_pred",
    ),
    ('top = "TopKAccuracy"', "", "", "live.types: no event can match: y_score has one number a r"),
    (
        'n = "NDCG"',
        "",
        'types = { sample_weight = "number" }',
        "ranking metrics do not accept weights",
    ),
    ('n = "NDCG"', "", "types = { sample_weight = 2 }", "types = { sample_weight = 'number' }"),
    ('auc = "ROCAUC"', 'y_score = "score"', 'by = [["score"]]', 'bins, by = [["score:0.5"]], or'),
    ('auc = "ROCAUC"', 'y_score = "kind"', "", "columns.y_score: 'kind' is reserved"),
    ('auc = "ROCAUC"', 'sample_weight = "time"', "", "columns.time: 'time' is also what is read"),
    ('auc = "ROCAUC"', 'id = "kind"', "", "columns.id: 'kind' is reserved"),
    ('auc = "ROCAUC"', 'id = ""', "", "columns.id: expected the name of a column"),
    ('auc = "ROCAUC"', "", 'by = [["id"]]', "live.by: 'id' is of the event itself"),
    ('auc = "ROCAUC"', "", 'by = [["kind"]]', "live.by: 'kind' is of the event itself"),
    ('auc = "ROCAUC"', "", 'label_ttl = "20000d"', "live.label_ttl: label_ttl is 20000d: at mo"),
    ('auc = "ROCAUC"', "", 'label_lateness = "20000d"', "live.label_lateness: label_lateness is"),
    ('mae = "MAE"', "", 'target_range = ["a", "b"]', "live.target_range: expected the least"),
    ('m = "MSLE"', "", "target_range = [-9, -2]", "live.target_range: target_range=(-9.0, -2.0) "),
    (
        'mae = "MAE"',
        "",
        "target_range = [0, 1]\ndefault_label = 5",
        "live.default_label: default_la",
    ),
    (
        'a = "Accuracy"',
        "",
        'labels = ["x", "y"]\ntypes = { y_pred = "integers" }',
        "leave out 'y_p",
    ),
    ('a = "Accuracy"', "", 'labels = ["x", "y"]\nby = [["y_pred:0.5"]]', "which is text: slice by"),
]


@pytest.mark.parametrize(("metric", "columns", "live", "why"), UNFIT, ids=range(len(UNFIT)))
def test_what_no_event_fits_is_refused_with_its_line(mistake, tmp_path, metric, columns, live, why):
    text = f"[metrics]\n{metric}\n[columns]\n{columns}\n[live]\n{live}\n"
    told = mistake("live", "check", written(tmp_path, text))
    assert why in told
    line, key = re.match(r".*: line (\d+), ([^:]*): ", told).groups()
    assert text.splitlines()[int(line) - 1].startswith(
        (key.rpartition(".")[2], f"[{key.split('.')[0]}")
    )


def test_a_model_s_version_may_be_a_slice(tmp_path):
    text = '[metrics]\nauc = "ROCAUC"\n[live]\nby = [["version"]]\n'
    assert settings(written(tmp_path, text)).options["by"] == [["version"]]


def test_a_column_is_one_thing(tmp_path):
    path = written(tmp_path, '[metrics]\nn = "MAE"\n[columns]\ny_pred = "id"\n')
    with pytest.raises(ConfigError, match="line 3, columns.id: 'id' is also what is read as y_p"):
        settings(path)


def test_files_that_are_no_configuration(tmp_path):
    with pytest.raises(ConfigError, match="No such file or directory; streammetrics live init"):
        settings(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"is not valid TOML: .*line 2, column 5"):
        settings(written(tmp_path, "[a]\nb = c\n"))
    (tmp_path / "live.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(ConfigError, match="line 1: is not UTF-8"):
        settings(tmp_path / "live.toml")
    with pytest.raises(ConfigError, match="metrics: there is no metric"):
        settings(written(tmp_path, "[metrics]\n"))


def test_workers_need_a_store_and_other_machines_a_token(tmp_path, monkeypatch):
    text = '[metrics]\nn = "Count"\n[server]\n'
    with pytest.raises(ConfigError, match=r"line 4, server.workers: several workers share a store"):
        settings(written(tmp_path, f"{text}workers = 2\n"))
    opened = f'{text}token_env = "LIVE_TOKEN"\nhost = "0.0.0.0"\n'
    with pytest.raises(ConfigError, match="the environment has no LIVE_TOKEN"):
        settings(written(tmp_path, opened))
    monkeypatch.setenv("LIVE_TOKEN", "two words")
    with pytest.raises(ConfigError, match="has characters that no header can have"):
        settings(written(tmp_path, opened))
    monkeypatch.setenv("LIVE_TOKEN", "secret")
    assert settings(written(tmp_path, opened)).server.token == "secret"
    with pytest.raises(ConfigError, match="live.default_label: these metrics read no label"):
        settings(written(tmp_path, '[metrics]\nn = "Count"\n[live]\ndefault_label = 0\n'))


def test_the_commands(command, mistake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("live", "init").out.startswith("wrote live.toml: ")
    assert "auc" in command("live", "check", "live.toml").out
    (tmp_path / "live.toml").write_text("[metrics]\nauc = 'AUC'\n")
    assert mistake("live", "check", "live.toml").startswith("live.toml: line 2, metrics.auc: no")
    assert "add --force to overwrite it" in mistake("live", "init")
    assert command("live", "init", "--force").code == 0
    assert sm.MetricSet is type(settings("live.toml").suite)


@pytest.mark.parametrize(
    ("rule", "is_good"),
    [
        ('Below("loss", 1, window="61s")', False),
        ('Below("loss", 1, window="1h")', False),  # once predictions wait for their labels
        ('Below("loss", 1, window="1h", after="1min")', True),
        ('Coverage(0.9, window="1h", after="3h")', False),
        ('Silence("1d")', True),
    ],
)
def test_rules_judge_windows_that_are_kept_when_they_are_over(tmp_path, rule, is_good):
    text = '[metrics]\nloss = "BrierScore"\n[live]\ntiers = [["1min", "3h"]]\n[alerts]\n'
    path = written(tmp_path, f"{text}low = {rule!r}")
    if is_good:
        assert len(settings(path).rules) == 1
        return
    with pytest.raises(
        ConfigError, match=r"line 6, alerts.low: a window of .*, for which the rule"
    ):
        settings(path)


def test_a_port_that_is_taken_and_a_host_that_is_elsewhere(mistake, tmp_path, monkeypatch):
    pytest.importorskip("uvicorn", reason="needs the extra live")
    monkeypatch.setenv("LIVE_TOKEN", "secret")
    text = '[metrics]\nn = "Count"\n[server]\ntoken_env = "LIVE_TOKEN"\nhost = "{}"\n'
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = mistake("live", "serve", written(tmp_path, text.format("127.0.0.1")), "--port", port)
    assert told.endswith(f"port {port}: Address already in use; --port names another")
    told = mistake("live", "serve", written(tmp_path, text.format("203.0.113.9")))
    assert told.endswith("[server] host is an address of this machine")
