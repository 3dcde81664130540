"""Receivers of alerts: their settings, and their requests."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.service.delivery.matching import Match, match_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.types import Document, Json
    from streammetrics.live.exporting.files import Notice
    from streammetrics.live.service.toml import Section

_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
_LEVELS = {"page": "critical", "ticket": "warning"}  # PagerDuty's names of severities
_KNOWN = ("critical", "error", "warning", "info")
_AGAIN = frozenset({408, 425, 429})  # statuses of requests to repeat, besides those from 500 on
_STAYS = 300  # seconds for which Alertmanager keeps an alert that is not sent again
_SAID = 200  # characters of an answer in a message


class DeliveryError(StreamMetricsError):
    """A request has failed.

    Attributes:
        is_final: Whether the receiver would refuse it again.
        wait: The least number of seconds to wait, if the receiver says so.
    """

    def __init__(self, why: str, *, is_final: bool, wait: float = 0.0) -> None:
        super().__init__(why)
        self.is_final, self.wait = is_final, wait


@dataclass(frozen=True)
class Receiver:
    """Where changes of alerts are sent.

    Attributes:
        name: Its name in the configuration.
        kind: The form of its requests.
        url: Its address.
        match: The rules whose alerts it gets.
        token: The bearer token of requests; if empty, they have none.
        key: The routing key of PagerDuty.
        dead_letters: The file for changes that it did not take.
        timeout: The seconds to wait for an answer.
        give_up: The seconds after which a change is not sent again.
    """

    name: str
    kind: str
    url: str = field(repr=False)
    match: Match
    token: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    dead_letters: str = "undelivered.jsonl"
    timeout: float = 10.0
    give_up: float = 86_400.0

    def send(self, change: Document) -> None:
        """Send a change once.

        Raises:
            DeliveryError: The receiver did not take it.
        """
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": change["id"],
            "User-Agent": "streammetrics",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        body = json.dumps(_BODIES[self.kind](self, change)).encode()
        try:
            request = Request(self.url, body, headers, method="POST")
            _OPENER.open(request, timeout=self.timeout).close()
        except HTTPError as error:
            with error:
                said = error.read(_SAID).decode(errors="replace")
            is_final = error.code not in _AGAIN and error.code < 500
            after = error.headers.get("Retry-After", "")
            wait = float(after) if after.isdecimal() else 0.0
            why = f"{error.code} {error.reason} {said}".strip()
            raise DeliveryError(why, is_final=is_final, wait=wait) from None
        except (OSError, HTTPException) as error:  # the text of others may have the address
            why = getattr(error, "reason", None) or str(error) or type(error).__name__
            raise DeliveryError(str(why), is_final=False) from None


class _NoRedirect(HTTPRedirectHandler):
    """Turns redirects into errors: they would lose the body, and give the token to others."""

    def redirect_request(self, *_: Any) -> None:
        """Return nothing, which makes the redirect an `HTTPError`."""


_OPENER = build_opener(_NoRedirect)


def _webhook(_: Receiver, change: Document) -> Json:
    return change


def _slack(_: Receiver, change: Document) -> Json:
    """Return a message; Slack needs three characters escaped."""
    state = "resolved" if change["state"] == "ok" else change["state"]
    head, why = (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for text in (f"{change['service']}: {change['alert']}", change["why"])
    )
    link = f"\n<{change['runbook']}|Runbook>" if change["runbook"] else ""
    return {"text": f"*{state.upper()}* ({change['severity']}) {head}\n{why}{link}"}


def _pagerduty(receiver: Receiver, change: Document) -> Json:
    action = "resolve" if change["state"] == "ok" else "trigger"
    of = f"{change['service']}\0{change['alert']}".encode()
    event = {
        "routing_key": receiver.key,
        "event_action": action,
        "dedup_key": blake2b(of, digest_size=16).hexdigest(),
    }
    if action == "resolve":
        return event
    severity = change["severity"]
    found = _LEVELS.get(severity, severity if severity in _KNOWN else "error")
    links = [{"href": change["runbook"], "text": "Runbook"}] if change["runbook"] else []
    payload = {
        "summary": f"{change['alert']}: {change['why']}"[:1024],
        "source": change["service"],
        "severity": found,
        "timestamp": change["time"],
        "custom_details": change,
    }
    return {**event, "client": change["service"], "links": links, "payload": payload}


def _alertmanager(_: Receiver, change: Document) -> Json:
    names = {"alertname": change["alert"], "service": change["service"]}
    labels = {**change["labels"], **names, "severity": change["severity"]}
    notes = {"summary": change["why"], "runbook_url": change["runbook"]}
    firing = change["state"] != "ok"
    until = datetime.fromtimestamp(time.time() + (_STAYS if firing else 0), UTC).isoformat()
    begins = {"startsAt": change["time"]} if firing else {}
    notes = {name: text for name, text in notes.items() if text}
    return [{"labels": labels, "annotations": notes, **begins, "endsAt": until}]


_BODIES: dict[str, Callable[[Receiver, Document], Json]] = {
    "webhook": _webhook,
    "slack": _slack,
    "pagerduty": _pagerduty,
    "alertmanager": _alertmanager,
}


def receiver_of(name: str, table: Section, notices: Sequence[Notice]) -> Receiver:
    """Return the receiver in a table of the configuration."""
    kind: str | None = table.take("kind", str)
    if kind not in _BODIES:
        told = "expected" if kind is None else f"no kind {kind!r}{near(kind, _BODIES)}: expected"
        table.fail("kind", f"{told} one of {', '.join(_BODIES)}")
    plain: str = table.take("url", str, _PAGERDUTY if kind == "pagerduty" else "")
    if kind == "slack" and plain:
        table.fail("url", "the address of a Slack webhook is a secret: write url_env or url_file")
    url = table.secret("url") or plain
    _check_url(table, url)
    token, key = table.secret("token"), table.secret("key")
    if kind == "pagerduty" and not key:
        table.fail("", 'PagerDuty needs a routing key: write key_env = "NAME", or key_file')
    give_up, timeout = table.seconds("give_up", "1d"), table.seconds("timeout", "10s")
    letters = table.output("dead_letters", "undelivered.jsonl")
    match = match_of(table, notices)
    table.end()
    if kind == "alertmanager":
        url = f"{url.rstrip('/')}/api/v2/alerts"
    return Receiver(name, kind, url, match, token, key, letters, timeout, give_up)


def _check_url(table: Section, url: str) -> None:
    """Raise if an address cannot be used; the message does not show it, as it may be a secret."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        good = good and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        good, parts = False, urlsplit("")
    if not good:
        table.fail("url", "expected an address, as https://host/path, in url, url_env or url_file")
    if parts.username is not None:
        table.fail("url", "an address with a password is not supported: write token_env")
