"""Several models in one service: each as if it were alone, one port, one scrape, one page."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from service.looking import browser, look, text, violations
from service.serving import Service, until
from service.test_endpoints import TestClient, lines

from streammetrics.cli import main
from streammetrics.live.exporting import files
from streammetrics.live.service import running
from streammetrics.live.service.config import models_of, settings
from streammetrics.live.service.toml import ConfigError

NOW = time.time() - 60
CONFIG = """
[model.fraud]
title = "Fraud"
[model.fraud.metrics]
auc = "ROCAUC"
accuracy = "Accuracy(threshold=0.5)"
[model.fraud.columns]
y_true = "label"
y_score = "score"
[model.fraud.live]
store = "fraud.db"
by = [["country"]]
[model.fraud.alerts]
low = 'Below("accuracy", 0.9, window="1h", min_rows=1, after="1min")'

[model.price.metrics]
error = "MAE"
[model.price.live]
store = "price.db"
on_invalid = "dead_letter"

[server]
"""


@pytest.fixture
def config(tmp_path):
    def write(old="", new="", server=""):
        path = tmp_path / "live.toml"
        path.write_text(CONFIG.replace(old, new) + server)
        return path

    return write


@pytest.fixture
def client(config):
    with TestClient(running._made(models_of(config())), base_url="http://localhost") as asked:
        yield asked


def scored(n):
    return [
        {"kind": "observe", "time": NOW, "label": i % 2, "score": i % 10 / 10, "country": "DE"}
        for i in range(n)
    ]


def priced(n):
    return [{"kind": "observe", "time": NOW, "y_true": 1.0 * i, "y_pred": 2.0} for i in range(n)]


def test_each_model_takes_its_events_and_answers_as_if_it_were_alone(client, tmp_path):
    assert client.post("/models/fraud/events", content=lines(*scored(40))).status_code == 202
    assert client.post("/models/price/events", content=lines(*priced(5))).status_code == 202
    assert client.post("/models/price/events", content=lines(*scored(1))).json()["refused"] == 1
    assert (tmp_path / "refused-price.jsonl").exists()
    fraud, price = (client.get(f"/models/{name}/api/now").json() for name in ("fraud", "price"))
    assert (fraud["title"], fraud["n_rows"], [*fraud["metrics"]]) == (
        "Fraud", 40, ["auc", "accuracy"],
    )  # fmt: skip
    assert (price["title"], price["n_rows"], [*price["metrics"]]) == ("price", 5, ["error"])
    assert client.get("/models/fraud/api/alerts").json()["alerts"][0]["name"] == "low"
    assert client.get("/models/other/api/now").status_code == 404
    assert client.post("/events", content=lines(*scored(1))).status_code == 404


def test_one_scrape_has_all_models_with_a_label_and_the_process_once(client):
    client.post("/models/fraud/events", content=lines(*scored(40)))
    client.post("/models/price/events", content=lines(*priced(5)))
    told = client.get("/metrics").text.splitlines()
    assert 'streammetrics_rows{model="fraud",window="1h"} 40.0' in told
    assert 'streammetrics_rows{model="price",window="1h"} 5.0' in told
    assert 'streammetrics_info{model="price",title="price"} 1.0' in told
    assert [line for line in told if line.startswith("process_open_fds ")]
    own = [line for line in told if line.startswith("streammetrics_")]
    assert own
    assert all('model="' in line for line in own)
    heads = [line for line in told if line.startswith("# TYPE")]
    assert len({*heads}) == len(heads)


def test_health_and_the_page(client):
    told = client.get("/health").json()
    assert told["status"] == "ok"
    assert [*told["models"]] == ["fraud", "price"]
    assert told["models"]["fraud"]["store"]["trouble"] == ""
    assert client.get("/ready").json() == {"status": "ready"}
    page = client.get("/")  # leads to the first model
    assert (page.url.path, page.status_code) == ("/models/fraud/", 200)
    assert 'id="models"' in page.text
    for name in ("fraud", "price"):
        found = client.get(f"/models/{name}/api/view").json()
        assert (found["model"], found["models"]) == (name, ["fraud", "price"])
    assert client.get("/models/price/page.js").status_code == 200


# The width of the page, and how many sections are no cards within it.
WIDTHS = """
    return [document.documentElement.scrollWidth, [...document.querySelectorAll(
        "#inputs, #coverage, #slices, #rivals, #history")].filter((section) => !section.hidden && (
            section.getBoundingClientRect().right > innerWidth
            || getComputedStyle(section).borderTopWidth !== "1px")).length];
"""
RIVALS = """
[model.rival.metrics]
accuracy = "Accuracy(threshold=0.5)"
[model.rival.columns]
y_true = "label"
y_score = "score"
[server]
"""


def joined(n, good):
    """Yield predictions, of which a share is right, and their labels."""
    for i in range(n):
        at = {"id": f"r{i}", "time": NOW}
        right = i % 10 < good
        yield {"kind": "predict", **at, "score": float(right == i % 2), "country": "DE"}
        yield {"kind": "label", **at, "label": i % 2}


def sent(asked, n):
    for name, good in (("fraud", 6), ("rival", 9)):
        events = [
            {k: v for k, v in event.items() if k != "country" or name == "fraud"}
            for event in joined(n, good)
        ]
        assert asked(f"/models/{name}/events", events)


def test_models_are_compared_on_the_same_requests(config):
    path = config("[server]\n", RIVALS)
    with TestClient(running._made(models_of(path)), base_url="http://localhost") as asked:
        sent(lambda url, events: asked.post(url, content=lines(*events)).status_code == 202, 200)
        found = asked.get("/api/compare?models=fraud,rival").json()
        (line,) = found["differences"]
        assert (line["metric"], line["model"], line["against"]) == ("accuracy", "rival", "fraud")
        assert (line["value"], line["other"], line["verdict"]) == (0.9, 0.6, "rival better")
        assert (found["n_rows"], found["left_out"]) == (200, ["auc"])
        tagged = asked.get("/api/compare?models=fraud,rival")
        again = asked.get(
            "/api/compare?models=fraud,rival", headers={"if-none-match": tagged.headers["etag"]}
        )
        assert again.status_code == 304
        assert asked.get("/api/compare?models=fraud,rival&window=1h").json()["n_rows"] == 200
        assert asked.get("/api/compare").json()["differences"] == []  # nothing in common with price
        for query, told in (
            ("models=fraud", "two models or more"),
            ("models=fraud,rivla", "no model 'rivla'; did you mean 'rival'"),
            ("model=fraud", "no parameter 'model': it reads models, window; did you mean 'models'"),
            ("models=fraud,rival&window=x", "window"),
        ):
            answer = asked.get(f"/api/compare?{query}")
            assert answer.status_code == 422
            assert told in answer.json()["error"]


DUEL = """
[model.NAME.metrics]
accuracy = "Accuracy()"
[model.NAME.live]
label_ttl = "1h"
label_lateness = "1h"
"""


@pytest.mark.parametrize("store", ["", 'store = "NAME.db"\n'])
def test_models_are_compared_whatever_came_first(tmp_path, store):
    path = tmp_path / "live.toml"
    tables = "".join((DUEL + store).replace("NAME", name) for name in "ab")
    path.write_text(f'{tables}[server]\nclock = "events"\n')

    def events(kind, after, n=10, **columns):
        return [
            {"kind": kind, "id": f"r{i}", "time": NOW - 100 + i + after, **columns}
            for i in range(n)
        ]

    rows, labels = events("predict", 0, y_pred=1), events("label", 1, y_true=1)
    corrected = events("label", 2, 5, y_true=0, version=2)
    with TestClient(running._made(models_of(path)), base_url="http://localhost") as asked:
        found = asked.get("/api/compare").json()
        assert (found["n_rows"], found["labels_differ"]) == (0, 0)
        assert [line["verdict"] for line in found["differences"]] == ["no evidence"]
        for name, parts in (("a", [corrected, labels, rows]), ("b", [rows, labels, corrected])):
            for part in parts:
                answer = asked.post(f"/models/{name}/events", content=lines(*part))
                assert answer.status_code == 202
        until(lambda: asked.get("/api/compare").json()["n_rows"] == 10)
        found = asked.get("/api/compare").json()
        (line,) = found["differences"]
        assert (line["value"], line["other"], found["labels_differ"]) == (0.5, 0.5, 0)


def test_a_model_that_is_degraded_shows_at_the_top(client):
    service = client.app.routes[0].app.state.service
    service.queries.ingest.journal.trouble = "disk is full"
    told = client.get("/health").json()
    assert told["status"] == told["models"]["fraud"]["status"] == "degraded"
    assert told["models"]["price"]["status"] == "ok"
    service.queries.ingest.journal.trouble = ""


def test_tokens_and_hosts_are_checked_everywhere(config, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    path = config(server='token_env = "TOKEN"\n')
    with TestClient(running._made(models_of(path)), base_url="http://localhost") as asked:
        for url in ("/metrics", "/models/fraud/api/now", "/models/price/state"):
            assert asked.get(url).status_code == 401, url
            given = {"authorization": "Bearer secret"}
            assert asked.get(url, headers=given).status_code == 200, url
        assert asked.get("/").status_code == asked.get("/models/price/page.css").status_code == 200
        assert asked.get("/health").json() == {
            "status": "ok", "models": {"fraud": {"status": "ok"}, "price": {"status": "ok"}},
        }  # fmt: skip
    with TestClient(running._made(models_of(config())), base_url="http://evil.example") as asked:
        for url in ("/", "/metrics", "/health", "/models/fraud/", "/models/fraud/api/now"):
            assert asked.get(url).status_code == 421, url
        assert "content-security-policy" in asked.get("/").headers


def test_what_was_taken_is_in_the_store_of_its_model(config):
    path = config()
    with TestClient(running._made(models_of(path)), base_url="http://localhost") as asked:
        asked.post("/models/fraud/events", content=lines(*scored(40)))
        asked.post("/models/price/events", content=lines(*priced(5)))
    for name, n in (("fraud", 40), ("price", 5)):
        with settings(f"{path}#{name}").live() as live:
            assert live.n_rows == n


def test_commands_name_a_model(config, capsys):
    path = config()
    with settings(f"{path}#fraud").live() as live:
        live.observe(time=NOW, label=1, score=0.75, country="DE")
    assert main(["live", "status", f"{path}#fraud"]) == 0
    assert "Fraud: last 1h" in capsys.readouterr().out
    assert main(["live", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"{path}#fraud is good" in out
    assert f"{path}#price is good" in out
    for name, told in (
        ("", f"has several models, fraud, price: name one, as {path}#fraud"),
        ("#frud", "no model 'frud'; did you mean 'fraud'"),
    ):
        assert main(["live", "status", f"{path}{name}"]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
    assert main(["live", "check", str(path), "--reference", "log.csv"]) == 2
    assert f"name one model, as {path}#fraud" in capsys.readouterr().err


def test_the_memory_of_all_models_is_estimated(config, capsys):
    path, told = config(), []
    for each in (f"{path}#fraud", f"{path}#price", path):
        assert main(["live", "check", str(each), "--rows-per-minute", "5"]) == 0
        told.append(capsys.readouterr().out.replace("#fraud", "").replace("#price", ""))
    assert told[0] + told[1] == told[2]
    assert told[2].count("memory: ") == 2


def test_status_of_several_models_names_them(client, capsys):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer = client.get(self.path)
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for command in ("status", "alerts"):
            assert main(["live", command, f"{url}/"]) == 2
            told = f"has several models, fraud, price: name one, as {url}/models/fraud\n"
            assert capsys.readouterr().err == f"error: {url}/ {told}"
        assert main(["live", "status", f"{url}/models/price"]) == 0
        assert main(["live", "status", f"{url}/models/other"]) == 2
        assert "answers 404" in capsys.readouterr().err
        server.shutdown()


def test_rules_and_dashboards_select_the_model(config):
    found = settings(f"{config()}#fraud")
    rules = files.rules(found.view.title, found.delivery.notices)
    assert 'on (job, instance, model) streammetrics_info{job=\\"live\\",title=\\"Fraud\\"}' in rules
    board = json.loads(files.dashboard("Fraud", [*found.suite], "1h", "fraud"))
    every = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert all('model="fraud"' in expression for expression in every)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"price.db"', '"fraud.db"', "model.price.live.store: another model has it"),
        ('"price.db"', '"./fraud.db"', "model.price.live.store: another model has it"),
        ('"Fraud"', '"price"', "title: two models are called 'price'"),
        ("[model.price.live]", "[model.price.lvie]", "model.price.lvie: no such key; did you mean"),
        ('"ROCAUC"', '"ROCAC"', "model.fraud.metrics.auc: no metric 'ROCAC'"),
        ("[server]", "[page]", "page: no such key"),
        ("model.price", 'model."a b"', "model.a b: no model can be called 'a b'"),
        ('store = "price.db"', "", "server.workers: several workers share a store"),
    ],
)
def test_mistakes_are_named(config, old, new, told):
    workers = "workers = 2\n" if "workers" in told else ""
    with pytest.raises(ConfigError, match=told):
        models_of(config(old, new, workers))


def test_two_models_have_no_store_of_two_names(config, tmp_path):
    (tmp_path / "price.db").symlink_to("fraud.db")
    with pytest.raises(ConfigError, match=r"model\.price\.live\.store: another model has it"):
        models_of(config())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:::selenium")
def test_the_page_of_one_leads_to_that_of_another_with_several_workers(config, tmp_path):
    path = config("[server]\n", f'{RIVALS.replace("[server]", "[model.rival.live]")}'
                  'store = "rival.db"\n[server]\nworkers = 2\n')  # fmt: skip
    with Service(path) as service:
        root = service.url
        for name, events in (("fraud", scored(40)), ("price", priced(5))):
            service.url = f"{root}/models/{name}"
            assert service.post(events)["taken"] == len(events)
        service.url = root
        sent(lambda url, events: _post(root + url, events), 200)
        with browser(tmp_path / "profile") as driver:
            look(driver, f"{root}/")
            until(lambda: "fraud better" in text(driver, "#rivals tbody").replace("rival", "fraud"))
            until(lambda: text(driver, "h1") == "Fraud")
            assert not violations(driver)
            for width in (390, 1600):
                look(driver, f"{root}/", width=width)
                until(lambda: text(driver, "#rivals tbody"))
                assert driver.execute_script(WIDTHS) == [width, 0]
            until(lambda: text(driver, "#models option") == "fraud")
            driver.execute_script(
                "const choice = document.querySelector('#models select');"
                "choice.value = 'price'; choice.dispatchEvent(new Event('change'))"
            )
            until(lambda: text(driver, "h1") == "price")
            assert not text(driver, "#rivals tbody")
            assert driver.current_url == f"{root}/models/price/"
        service.url = root
        assert "Traceback" not in service.end()
        assert service.process.returncode == 0


def _post(url, events):
    with urllib.request.urlopen(url, lines(*events).encode(), timeout=30) as answer:
        return answer.status == 202
