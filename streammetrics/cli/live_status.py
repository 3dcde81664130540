"""`streammetrics live status` and `alerts`: the current state of a service or its store."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from streammetrics.cli.outputs import Output, check_outputs, write
from streammetrics.cli.result import CommandError, CommandResult
from streammetrics.live.client import connecting
from streammetrics.live.panes import TOLD
from streammetrics.live.service import answers
from streammetrics.live.service.config import settings
from streammetrics.show.formats import Grid, drawn
from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from http.client import HTTPConnection, HTTPResponse

    from streammetrics.core.types import Json
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

_FIRING = 1  # exit code if an alert fires
_TIMEOUT = 60.0  # seconds; the first read of a long history is slow


def status(target: str, token_env: str | None) -> CommandResult:
    """Return the newest window of a service or a store: metrics, coverage and alerts."""
    now, alerts = _answers(target, token_env, "now", "alerts")
    with _expecting(target):
        grids = [_metrics(now), *_coverage(now["coverage"]), *_alerts(alerts["alerts"])]
    return CommandResult(drawn(grids))


def alerts(target: str, token_env: str | None, out: str | None, *, force: bool) -> CommandResult:
    """Return the state of every rule of a service or a store; exit code 1 if one fires."""
    outputs = [] if out is None else [Output("--json", out)]
    check_outputs(outputs, [target], force=force)
    (found,) = _answers(target, token_env, "alerts")
    with _expecting(target):
        grids = _alerts(found["alerts"])
        code = _FIRING if any(each["state"] == "firing" for each in found["alerts"]) else 0
    text = drawn(grids) if grids else f"{target} has no rules: add some to [alerts]\n"
    if out is not None:
        whole = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
        if outputs[0].is_stdout:
            return CommandResult(whole, code)
        write(out, whole)
    return CommandResult(text, code)


@contextmanager
def _expecting(target: str) -> Iterator[None]:
    """Name the address if an answer is unexpected."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CommandError(f"{target} answers, but not like a live service") from error


def _answers(target: str, token_env: str | None, *names: str) -> list[Json]:
    """Return the answers of a service, or of the store of a configuration."""
    if not target.startswith(("http://", "https://", "unix:")):
        return _read(target, names)
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise CommandError(f"the environment variable {token_env} is not set, or empty: export it")
    if target.startswith("unix:"):
        try:
            connect = connecting(target, _TIMEOUT)
        except ValueError as error:
            raise CommandError(str(error)) from error
        opened = urllib.request.build_opener(_OverSocket(connect)).open
        return [_asked(f"http://localhost/api/{name}", token, opened, target) for name in names]
    _check_address(target)
    base = target.rstrip("/")
    return [_asked(f"{base}/api/{name}", token) for name in names]


class _OverSocket(urllib.request.HTTPHandler):
    """Sends requests over a unix socket, whatever host they name."""

    def __init__(self, connect: Callable[[], HTTPConnection]) -> None:
        super().__init__()
        self._connect = connect

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        """Return the answer to a request."""
        return self.do_open(lambda *_, **__: self._connect(), request)


def _check_address(target: str) -> None:
    """Raise unless an address has a host and a valid port, if any."""
    try:
        parts = urllib.parse.urlsplit(target)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host = ""
    if not host or any(c.isspace() for c in target):
        raise CommandError(
            f"{target} is not an address of a service, such as http://127.0.0.1:8080"
        )


@contextmanager
def open_store(
    found: Settings, advice: str = "give the address of the service, http://..."
) -> Iterator[Live]:
    """Open the live state in the store of a configuration.

    Raises:
        CommandError: There is no store; the message ends with `advice`.
    """
    store = found.options["store"]
    if store is None or not os.path.exists(store):
        lack = "has no store" if store is None else f"has a store, {store}, that does not exist yet"
        raise CommandError(f"{found.path} {lack}: {advice}")
    with found.live() as live:
        if found.server.clock == "wall":
            live.now(time.time())
        yield live


def _read(config: str, names: Sequence[str]) -> list[Json]:
    found = settings(config, secrets=False)
    with open_store(found) as live:
        every: dict[str, Callable[[], Json]] = {
            "now": partial(answers.now, live._queries, found.view),
            "alerts": lambda: answers.alerts(live.alerts(found.rules)),
        }
        return [every[name]() for name in names]


def _asked(
    url: str, token: str, opened: Callable[..., Any] = urllib.request.urlopen, shown: str = ""
) -> Json:
    """Return the answer of a service; errors name the address that is `shown`, if it is another."""
    shown = shown or url
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with opened(request, timeout=_TIMEOUT) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            hint = "; --token-env names the variable with its token" if error.code == 401 else ""
        raise CommandError(f"{shown} answers {error.code} {error.reason}{hint}") from error
    except OSError as error:
        raise CommandError(f"{shown} does not answer: {getattr(error, 'reason', error)}") from error
    except ValueError as error:
        raise CommandError(f"{shown} answers, but not with JSON: is it a live service?") from error


def _metrics(now: Mapping[str, Json]) -> Grid:
    title = f"{now['title']}: last {now['window']}, until {_moment(now['end'])} (UTC)"
    lines: list[tuple[str, ...]] = [
        (
            name,
            _shown(found["value"]),
            _between(found["sure_low"], found["sure_high"]),
            _between(*(found["possible"] or (None, None))),
        )
        for name, found in now["metrics"].items()
    ]
    header = ("Metric", "Value", "95 % confidence", "With all labels")
    return Grid(f"{title}, {now['n_rows']:,} rows", header, lines)


def _coverage(found: Mapping[str, object]) -> list[Grid]:
    if not found["predicted"]:
        return []
    lines: list[tuple[str, ...]] = [(name, f"{found[name]:,}") for name in TOLD if found[name]]
    return [Grid(f"{found['coverage']:.1%} have their label", ("Predictions", "Count"), lines)]


def _alerts(found: Sequence[Mapping[str, Json]]) -> list[Grid]:
    lines: list[tuple[str, ...]] = [
        (each["name"], each["state"], _moment(each["since"]), each["why"] or "") for each in found
    ]
    return [Grid("Alerts", ("Alert", "State", "Since", "Why"), lines)] if lines else []


def _shown(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def _moment(text: str | None) -> str:
    return "" if text is None else text[:16].replace("T", " ")
