"""`live status` of a service that runs, as of the store that it writes."""

from __future__ import annotations

import pytest
from service.serving import Service

from streammetrics.cli import main

pytestmark = pytest.mark.long


def test_a_service_and_its_store_tell_the_same(config, capsys, monkeypatch):
    monkeypatch.setenv("LIVE_TOKEN", "secret")
    path = config(server='token_env = "LIVE_TOKEN"\nclock = "events"')
    with Service(path) as service:
        assert main(["live", "status", service.url]) == 2
        assert "answers 401 Unauthorized; --token-env names" in capsys.readouterr().err
        assert main(["live", "status", service.url, "--token-env", "LIVE_TOKEN"]) == 0
        asked = capsys.readouterr().out
        assert "A service: last 1h" in asked
        service.end()
    assert main(["live", "status", str(path)]) == 0
    assert capsys.readouterr().out == asked


@pytest.mark.parametrize(
    "target",
    [
        "http://",
        "http://[::1",
        "http://a:notaport",
        "http://a:99999",
        "http://exa mple",
        "http://a..b",
    ],
)
def test_what_is_no_address_is_said_to_be_none(target, capsys):
    assert main(["live", "status", target]) == 2
    assert f"{target} is not an address of a service" in capsys.readouterr().err
