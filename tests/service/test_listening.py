"""How a service listens: unix sockets, TLS, and tokens for reading and for writing."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from service.serving import PATIENCE, free_port
from service.test_endpoints import client, lines, observed

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.live.service.config import settings
from streammetrics.live.service.toml import ConfigError

NOW = time.time() - 60


@contextmanager
def serving(path, **environment):
    """Run a service, and yield the process and the address that it prints."""
    words = [sys.executable, "-m", "streammetrics", "live", "serve", str(path)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process, process.stdout.readline().removeprefix("serving on ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=PATIENCE)[1]
    assert err == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_unix_socket_is_for_its_owner_and_group(config, tmp_path, workers, capsys):
    path = config(server=f'socket = "live.sock"\nworkers = {workers}')
    place = tmp_path / "live.sock"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(place))  # left by a service that was killed
    with serving(path) as (_, url):
        assert url == f"unix://{place}"
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o660
        with sm.live.Client(url) as sender:
            for n in range(20):
                sender.observe(time=NOW + n, label=n % 2, score=n / 20)
        assert sender.taken == 20
        assert main(["live", "status", url]) == 0
        assert "A service: last 1h" in capsys.readouterr().out
        words = [sys.executable, "-m", "streammetrics", "live", "serve", str(path)]
        second = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert second.returncode == 2
        assert f"cannot listen on {place}" in second.stderr
        assert place.exists()
    assert not place.exists()
    for address, why in [(url, "does not answer: No such file"), ("unix:", "is not an address")]:
        assert main(["live", "alerts", address]) == 2
        assert f"error: {address}" in (told := capsys.readouterr().err) or "'unix:'" in told
        assert why in told or "No such file" in told
    with settings(path).live() as live:
        assert live.n_rows == 20


def test_tls_of_files(config, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = f'certificate = "cert.pem"\nkey = "key.pem"\nport = {free_port()}'
    with serving(config(server=server)) as (_, url):
        assert url.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=cert)
        with urllib.request.urlopen(f"{url}health", context=trust, timeout=30) as answer:
            assert answer.status == 200
    key.write_text("no key")
    for text, why in [
        (server, "cannot be used"),
        ('certificate = "cert.pem"', "TLS needs both"),
        ('certificate = "cert.pem"\nkey = "gone.pem"', "cannot be used"),
    ]:
        with pytest.raises(ConfigError, match=why):
            settings(config(server=text))


def test_tokens_for_reading_and_for_writing():
    asked = client(token="all", read_token="read", write_token="write")
    body = lines(*observed(2))
    statuses = {}
    for token in ("all", "read", "write", "none", ""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        sent = asked.post("/events", content=body, headers=headers).status_code
        statuses[token] = (sent, asked.get("/api/now", headers=headers).status_code)
        health = asked.get("/health", headers=headers).json()
        assert ("newest" in health) is (token in {"all", "read"})
    assert statuses == {
        "all": (202, 200), "read": (403, 200), "write": (202, 403),
        "none": (401, 401), "": (401, 401),
    }  # fmt: skip
    asked = client(read_token="read", write_token="write")
    assert asked.get("/api/now").status_code == 401
    assert asked.get("/api/now", headers={"Authorization": "Bearer read"}).status_code == 200
    assert "bearer" in asked.get("/openapi.json").json()["components"]["securitySchemes"]


def test_tokens_come_from_the_environment_or_files(config, monkeypatch, tmp_path):
    monkeypatch.setenv("READ", "r")
    monkeypatch.setenv("WRITE", "w")
    words = 'host = "0.0.0.0"\nread_token_env = "READ"'
    with pytest.raises(ConfigError, match="write_token_env: nobody could write"):
        settings(config(server=words))
    found = settings(config(server=f'{words}\nwrite_token_env = "WRITE"')).server
    assert (found.token, found.read_token, found.write_token) == ("", "r", "w")
    with pytest.raises(ConfigError, match="the environment has no GONE"):
        settings(config(server='write_token_env = "GONE"'))
    with pytest.raises(ConfigError, match="open to other machines"):
        settings(config(server='host = "0.0.0.0"'))
    (tmp_path / "token").write_text("secret\n")
    assert settings(config(server='token_file = "token"')).server.token == "secret"
    with pytest.raises(ConfigError, match="write either token_env or token_file"):
        settings(config(server='token_env = "READ"\ntoken_file = "token"'))
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match="'token' is empty"):
        settings(config(server='token_file = "token"'))
