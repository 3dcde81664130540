"""The TOML of a service: read whole, and a mistake named by file, line and key."""

from __future__ import annotations

import os
import random
import re
import socket
from datetime import datetime

import pytest

import streammetrics as sm
from streammetrics.live.service.config import TEMPLATE, settings
from streammetrics.live.service.replicas import ReplicaSettings
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
    template, merge = without_merge()
    lines = [line.removeprefix("# ") if " = " in line else line for line in template.splitlines()]
    lines = [line for line in lines if "of a regression" not in line and "TLS" not in line]
    text = "\n".join(lines).replace('"STREAMMETRICS_TOKEN"', '"PATH"')
    text = text.replace('"READ_TOKEN"', '"PATH"')
    sm.MetricSet({"auc": sm.ROCAUC()}).save(tmp_path / "v1.state")
    found = settings(written(tmp_path, text.replace("PATH", "HOME")))
    assert dict(found.view.groups) == {"Ranking": ("auc",), "Decisions": ("accuracy",)}
    assert [name for name, _ in found.view.references] == ["version 1"]
    assert [receiver.kind for receiver in found.delivery.receivers] == ["webhook"]
    assert len(found.delivery.silences[0].weekly) == 7
    assert (found.names.label_time, found.options["default_label"]) == ("label_time", 0)
    assert found.options["labels"] == [0, 1]
    assert [*found.options["inputs"]] == ["age", "country", "score"]
    assert found.view.exported.inputs
    assert found.server.body == 16_000_000
    assert found.server.socket == str(tmp_path / "live.sock")
    text = template.replace('store = "live.db"', "") + re.sub("(?m)^# ", "", merge)
    found = settings(written(tmp_path, text.replace("READ_TOKEN", "HOME")))
    assert len(found.merging.urls) == 2
    assert found.merging == ReplicaSettings(found.merging.urls, os.environ["HOME"])


def without_merge():
    """Return the template without its table [merge], which excludes a store, and this table."""
    before, start, after = TEMPLATE.partition("# [merge]")
    merge, end, after = after.partition("\n\n")
    return before + after, start + merge + end


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
    ('store = "live.db"', 'max_store = "1GB"', "live.max_store", "there is no store: remove it"),
    ('store = "live.db"', "durable = true", "live.durable", "there is no store to write to"),
    ('label_ttl = "1d"', 'max_store = "1kB"', "live.max_store", "at least 16,777,216 bytes are"),
    ('window = "1h"', 'window = "61s"', "page.window", "is not a whole number of panes"),
    ('every = "5min"', 'every = "90s"', "page.every", "is not a whole number of panes"),
    (
        "[page]",
        "[pages]",
        "pages",
        "did you mean 'page'? There are: alerts, columns, deliver, inputs",
    ),
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
    with pytest.raises(ConfigError, match="has characters that no header or address can have"):
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


DELIVERIES = """\
[metrics]
accuracy = "Accuracy"
[alerts]
low = { rule = 'Below("accuracy", 0.8)', labels = { team = "ml" }, runbook = "https://r.org/1" }
[deliver.desk]
kind = "webhook"
url = "https://desk.org/hook"
labels = { team = "ml", severity = "page" }
[deliver.pager]
kind = "pagerduty"
key_env = "PAGER_KEY"
[[silence]]
rule = "lo*"
weekly = "fri-sun,tue 22:00-06:00"
[[silence]]
start = 2026-12-01T22:00:00Z
end = 2026-12-02T06:00:00+01:00
"""


def test_receivers_and_silences(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGER_KEY", "secret")
    found = settings(written(tmp_path, DELIVERIES)).delivery
    (notice,), (desk, pager), (weekly, once) = found
    assert notice.every_label == {"severity": "page", "team": "ml"}
    assert (desk.url, desk.match.fits(notice)) == ("https://desk.org/hook", True)
    assert not desk.match.fits(notice._replace(severity="ticket"))
    assert (pager.key, pager.url) == ("secret", "https://events.pagerduty.com/v2/enqueue")
    assert "secret" not in repr(pager)
    assert "desk.org" not in repr(desk)
    assert desk.dead_letters == str(tmp_path / "undelivered.jsonl")

    def muted(silence, text):
        return silence.mutes(notice, datetime.fromisoformat(text).timestamp())

    for text, said in (  # the 27th is a Friday
        ("2026-11-27T21:59:59Z", False), ("2026-11-27T22:00:00Z", True),
        ("2026-11-28T05:59:59Z", True), ("2026-11-28T06:00:00Z", False),
        ("2026-11-30T05:00:00Z", True), ("2026-11-30T23:00:00Z", False),
        ("2026-12-01T23:00:00Z", True), ("2026-12-02T05:00:00Z", True),
    ):  # fmt: skip
        assert muted(weekly, text) is said, text
    assert [muted(once, f"2026-12-0{day}") for day in ("1T23:00Z", "2T04:59Z", "2T05:00Z")] == [
        True, True, False,
    ]  # fmt: skip
    assert not weekly.mutes(notice._replace(alert="high"), 1e9)


MISTAKEN = [
    ('team = "ml" }, r', '"a b" = "ml" }, r', "alerts.low: no label can be called 'a b'"),
    ('team = "ml" }, r', 'severity = "x" }, r', "alerts.low: no label can be called 'severity'"),
    ('{ team = "ml" }, r', '"ml", r', "alerts.low: labels is not a table of texts"),
    ('"https://r.org/1"', '"javascript:alert(1)"', "alerts.low: runbook is not an address"),
    ("runbook =", "runbok =", "alerts.low: no such key 'runbok'; did you mean 'runbook'"),
    ('"webhook"', '"webhok"', "deliver.desk.kind: no kind 'webhok'; did you mean 'webhook'"),
    ('kind = "webhook"', "", "deliver.desk.kind: expected one of webhook, slack"),
    ('"webhook"', '"slack"', "deliver.desk.url: the address of a Slack webhook is a secret"),
    ('"https://desk.org/hook"', '"ftp://desk.org"', "deliver.desk.url: expected an address"),
    ('"https://desk.org/hook"', '"https://a:b@desk.org"', "deliver.desk.url: an address with a p"),
    ("url = ", "url_env = ", "deliver.desk.url_env: the environment has no https"),
    ("url = ", "url_file = ", "deliver.desk.url_file: cannot read"),
    ("key_env", "key", "deliver.pager: PagerDuty needs a routing key"),
    ('{ team = "ml", s', '{ team = "mm", s', "deliver.desk.labels: no rule of [alerts] has the"),
    ('"lo*"', '"lw"', "silence.0.rule: no rule of [alerts] is called 'lw'; did you mean 'low'"),
    ('"fri-sun,tue 22:00-06:00"', '"friday"', "silence.0.weekly: 'friday': expected days and"),
    ("fri-sun", "fri-sum", "silence.0.weekly: 'fri-sum' is not a day"),
    ('06:00"', '25:00"', "silence.0.weekly: 'fri-sun,tue 22:00-25:00': times are from"),
    ("2026-12-01T22:00:00Z", "2026-12-01T22:00:00", "silence.1.start: expected a time with its"),
    ("2026-12-01T22:00:00Z", "2027-12-01T22:00:00Z", "silence.1.end: end is not after start"),
    ("end = 2026", "# end = 2026", "silence.1: a silence has an end"),
]


def test_a_receiver_needs_a_rule(mistake, tmp_path):
    text = (
        '[metrics]\naccuracy = "Accuracy"\n[deliver.desk]\nkind = "webhook"\nurl = "http://a.b"\n'
    )
    assert "deliver.desk: there is no rule" in mistake("live", "check", written(tmp_path, text))


@pytest.mark.parametrize(("old", "new", "why"), MISTAKEN, ids=range(len(MISTAKEN)))
def test_a_mistake_in_deliveries_is_named(mistake, tmp_path, monkeypatch, old, new, why):
    monkeypatch.setenv("PAGER_KEY", "secret")
    assert old in DELIVERIES
    told = mistake("live", "check", written(tmp_path, DELIVERIES.replace(old, new, 1)))
    assert re.match(r".*live.toml: line \d+, ", told)
    assert why in told


def test_every_mistake_has_a_line(command, tmp_path):
    text = DELIVERIES.replace('"webhook"', '"x"').replace("fri-sun", "fri-sum")
    code, _, err = command("live", "check", written(tmp_path, text))
    lines = err.splitlines()
    assert code == 2
    assert [re.search(r"line \d+, ([a-z.0-9]*)", line)[1] for line in lines] == [
        "deliver.desk.kind", "deliver.pager.key", "silence.0.weekly",
    ]  # fmt: skip
    assert all(line.startswith("error: ") for line in lines)


def checked(command, path, *words):
    code, out, _ = command("live", "check", path, *words)
    assert code == 0
    return out.splitlines()


def test_rules_that_will_flap_are_named(command, tmp_path):
    rules = (
        'burn = \'BurnRate("accuracy", 0.95, after="5min")\'',
        'never = \'BurnRate("accuracy", 0.90, after="5min")\'',
        'low = \'Below("accuracy", 0.8, after="5min")\'',
        'steady = \'Below("accuracy", 0.8, clear=0.95, after="5min")\'',
        'few = \'Below("accuracy", 0.8, min_rows=250, after="5min")\'',
        "quiet = 'Silence(\"1min\")'",
    )
    path = written(tmp_path, "\n".join(['[metrics]\naccuracy = "Accuracy"\n[alerts]', *rules]))
    burn, never, low, steady, few, quiet = checked(command, path, "--rows-per-minute", "4")[-6:]
    assert "about 240 rows in 1h, about 20 rows in 5min; it will flap" in burn
    assert 100 < int(re.search(r"changes (\d+) times a day", burn)[1]) < 300
    assert "it never fires, as its limit is an error rate of 1.44" in never
    assert "it will flap" in low
    assert steady == "steady: about 240 rows in 1h"
    assert "it often has no data, as min_rows = 250" in few
    assert "chance alone changes its state" in quiet
    lines = checked(command, path, "--rows-per-minute", "4000")[-6:]
    assert sum("flap" in line or "chance" in line for line in lines) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder that takes no files")
def test_a_store_that_cannot_be_written_is_named(mistake, tmp_path):
    path = tmp_path / "live.toml"
    path.write_text(TEMPLATE.replace('"live.db"', '"/proc/x.db"'))
    told = mistake("live", "check", path)
    assert f"{path}: live.store: '/proc/x.db' cannot be written (" in told


@pytest.mark.parametrize(
    ("file", "told"), [("live.toml", "is not a streammetrics store"), ("/dev/null", "not a file")]
)
def test_a_store_that_is_another_file_is_named(mistake, tmp_path, file, told):
    path = tmp_path / "live.toml"
    path.write_text(TEMPLATE.replace('"live.db"', f'"{tmp_path / file}"'))
    assert told in mistake("live", "check", path)


def test_memory_is_told_by_rate_and_slices(command, mistake, tmp_path):
    path = written(tmp_path, '[metrics]\nauc = "ROCAUC"\n[live]\nby = [["country"]]\n')
    memory, store = checked(command, path, "--rows-per-minute", "6", "--slices", "5")[-2:]
    assert re.match(
        r"memory: about [\d.]+ MB with 5 slices of each kind: 2,880 panes of 1min", memory
    )
    assert re.match(r"store: about [\d.]+ MB$", store)
    assert "--slices needs --rows-per-minute" in mistake("live", "check", path, "--slices", "5")


def test_a_log_shows_how_often_alerts_change(command, mistake, tmp_path):
    chance = random.Random(3)
    rows = [f"{1_700_000_000 + 15 * i},1,{int(chance.random() > 0.72)}" for i in range(17 * 240)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["time,y_true,y_pred", *rows]))
    path = written(
        tmp_path, '[metrics]\naccuracy = "Accuracy"\n[alerts]\n'
        'burn = \'BurnRate("accuracy", 0.95, after="5min")\'\n'
        'low = \'Below("accuracy", 0.1, after="5min")\'\n'
    )  # fmt: skip
    found = checked(command, path, "--reference", log)
    assert "burn: about 240 rows in 1h, about 20 rows in 5min; it will flap" in "\n".join(found)
    burn, low = found[-2:]
    changes = int(re.match(r"burn: its state changes (\d+) times in the 17 hours", burn)[1])
    assert changes > 50
    assert burn.endswith("it flaps")
    assert low == "low: its state changes 2 times in the 17 hours of the log"
    log.write_text("time,y_true,y_pred\n")
    assert command("live", "check", path, "--reference", log).code != 0
    assert "--labels needs --reference" in mistake("live", "check", path, "--labels", log)


def test_check_refuses_the_store_of_another_configuration(command, mistake, tmp_path):
    path = written(tmp_path, '[metrics]\na = "Accuracy(threshold=0.5)"\n[live]\nstore = "a.db"\n')
    assert command("live", "check", path).code == 0
    assert not (tmp_path / "a.db").exists()
    with settings(path).live() as live:
        live.observe(time=1_700_000_000, y_true=1, y_score=0.5)
    assert command("live", "check", path).code == 0
    path.write_text(path.read_text().replace("0.5", "0.25"))
    assert "a.db is of another configuration" in mistake("live", "check", path)
