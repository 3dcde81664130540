"""Alerts delivered by HTTP: receivers, silences, and the queue."""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from hashlib import blake2b
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.exporting.files import Notice
from streammetrics.live.service.logs import append, log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Alert, Alerts
    from streammetrics.live.journal import Journal
    from streammetrics.live.service.toml import Section


class Match(NamedTuple):
    """Rules selected by the patterns of their names, and by labels that all have to be equal."""

    rules: tuple[str, ...] = ("*",)
    labels: tuple[tuple[str, str], ...] = ()

    def fits(self, notice: Notice) -> bool:
        """Return whether a rule is selected."""
        labels = notice.every_label
        named = any(fnmatchcase(notice.alert, pattern) for pattern in self.rules)
        return named and all(labels.get(name) == value for name, value in self.labels)


def match_of(table: Section, notices: Sequence[Notice]) -> Match:
    """Return the selection in a table, which has to select at least one rule."""
    found: Json = table.take("rule", object, "*")
    rules: list[Json] = found if isinstance(found, list) else [found]
    if not all(isinstance(rule, str) for rule in rules):
        table.fail("rule", 'expected the name of a rule, with * for any text, or a list: "auc_*"')
    names = [notice.alert for notice in notices]
    if not names:
        table.fail("", "there is no rule: write [alerts], and below it the rules")
    for rule in rules:
        if not any(fnmatchcase(name, rule) for name in names):
            table.fail("rule", f"no rule of [alerts] is called {rule!r}{near(rule, names)}")
    labels = table.table("labels").rest()
    if not all(isinstance(value, str) for value in labels.values()):
        table.fail("labels", 'expected text in quotes: labels = { severity = "page" }')
    match = Match(tuple(rules), tuple(labels.items()))
    if not any(map(match.fits, notices)):
        table.fail("labels", f"no rule of [alerts] has the labels {labels}")
    return match


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

    def redirect_request(self, *_: object) -> None:
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


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = 24 * 60  # minutes
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # minutes from the beginning of POSIX time to a Monday
_WEEKLY = re.compile(r"([a-z]{3}(?:[,-][a-z]{3})*) +(\d\d):(\d\d) *- *(\d\d):(\d\d)")


class MuteInterval(NamedTuple):
    """When changes of some rules are not delivered.

    Attributes:
        match: The rules.
        start: The beginning, in POSIX seconds.
        end: The end, in POSIX seconds.
        weekly: Times of each week, as the first minute after Monday, 0:00 UTC, and the number of
            minutes; if empty, all times from `start` to `end`.
        reason: Why they are silenced.
    """

    match: Match
    start: float = -math.inf
    end: float = math.inf
    weekly: tuple[tuple[int, int], ...] = ()
    reason: str = ""

    def mutes(self, notice: Notice, now: float) -> bool:
        """Return whether a change of a rule is not delivered at a time in POSIX seconds."""
        if not (self.start <= now < self.end and self.match.fits(notice)):
            return False
        minute = now / 60 - _MONDAY
        return not self.weekly or any((minute - first) % _WEEK < n for first, n in self.weekly)


def silence_of(table: Section, notices: Sequence[Notice]) -> MuteInterval:
    """Return the silence in a table of the configuration."""
    match, reason = match_of(table, notices), table.take("reason", str, "")
    start, end = _time(table, "start", -math.inf), _time(table, "end", math.inf)
    if start >= end:
        table.fail("end", "end is not after start")
    found: object = table.take("weekly", object, [])
    weekly = [
        each
        for text in (found if isinstance(found, list) else [found])
        for each in _weekly(table, text)
    ]
    if end == math.inf and not weekly:
        table.fail("", 'a silence has an end: write end = 2026-12-01T06:00:00Z, or weekly = "..."')
    table.end()
    return MuteInterval(match, start, end, tuple(weekly), reason)


def _time(table: Section, key: str, default: float) -> float:
    found: object = table.take(key, object)
    if found is None:
        return default
    if not isinstance(found, datetime) or found.tzinfo is None:
        table.fail(
            key, f"expected a time with its zone, without quotes: {key} = 2026-12-01T06:00:00Z"
        )
    return found.timestamp()


def _weekly(table: Section, text: object) -> list[tuple[int, int]]:
    """Return the first minute and the number of minutes of ``"sat,sun 22:00-06:00"``, by day."""
    found = _WEEKLY.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None:
        table.fail("weekly", f'{text!r}: expected days and times in UTC: "mon-fri 22:00-06:00"')
    hours, minutes = ([int(found[n]) for n in places] for places in ((2, 4), (3, 5)))
    first, last = (60 * hour + minute for hour, minute in zip(hours, minutes, strict=True))
    if max(first, last) > _DAY or max(minutes) > 59 or first in {last, _DAY}:
        table.fail("weekly", f'{text!r}: times are from 00:00 to 24:00, as in "sun 00:00-24:00"')
    days: list[int] = []
    for part in found[1].split(","):
        ends = part.split("-")
        if len(ends) > 2 or not {*ends} <= {*_DAYS}:
            table.fail("weekly", f"{part!r} is not a day or a range of days: write mon or mon-fri")
        begin, n = _DAYS.index(ends[0]), (_DAYS.index(ends[-1]) - _DAYS.index(ends[0])) % 7 + 1
        days += [(begin + day) % 7 for day in range(n)]
    return [(day * _DAY + first, (last - first) % _DAY or _DAY) for day in days]


_EVERY = 2.0  # seconds between two evaluations of the rules
_LEASE = 15.0  # seconds after which another worker delivers, if the one that did is gone
_REPEAT = 60.0  # seconds after which Alertmanager gets alerts that fire again
_FIRST, _LONGEST = 1.0, 300.0  # seconds before the first retry, and between two at most
_QUEUE = 1000  # maximum number of changes that wait for a receiver
_HISTORY = 500  # maximum number of changes that are remembered
_SHOWN = 20  # maximum number of changes of an alert in an answer
_GRACE = 2.0  # seconds for requests to end when the service ends


class Delivery(NamedTuple):
    """Which changes of alerts are delivered where."""

    notices: Sequence[Notice] = ()
    receivers: Sequence[Receiver] = ()
    silences: Sequence[MuteInterval] = ()


class _Queue:
    """The changes that wait for a receiver, oldest first, and counts of those that do not."""

    def __init__(self) -> None:
        self.waiting: deque[Document] = deque()
        self.delivered = self.undelivered = 0
        self.retries = 0  # of the oldest change
        self.rests = 0.0  # monotonic time until which it waits
        self.trouble = ""

    def pop(self) -> Document:
        """Remove and return the oldest change."""
        self.retries, self.rests = 0, 0.0
        return self.waiting.popleft()


class Deliverer:
    """Follows the alerts, and sends their changes in threads of its own.

    One worker leads: it holds a lease in the store, and it alone evaluates, records and sends.
    Everything is in memory, and is written to the store whenever it changes, so that another worker
    or process goes on with it. While the store cannot be written, the leader goes on in memory.

    Args:
        delivery: What is delivered.
        service: The title of the service.
        judge: Returns the current alerts.
        journal: Where the queue is kept, and shared with other workers; without it, changes that
            are not delivered when the service ends become dead letters.
    """

    def __init__(
        self,
        delivery: Delivery,
        service: str,
        judge: Callable[[], Alerts],
        journal: Journal | None,
    ) -> None:
        self._notices = {notice.alert: notice for notice in delivery.notices}
        self._receivers, self._silences = delivery.receivers, delivery.silences
        self._service, self._judge, self._journal = service, judge, journal
        self._id = uuid.uuid4().hex
        self._leads = journal is None
        self._renewed = self._repeated = 0.0
        self._followed: dict[str, Document] = {}  # what is known of each alert, by its name
        self._history: tuple[Document, ...] = ()  # all changes, oldest first
        self._queues = {receiver.name: _Queue() for receiver in self._receivers}
        self._guard = threading.Condition()
        self._ends, self._wake = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, if there is anything to deliver or to silence."""
        if not (self._receivers or self._silences):
            return
        calls: list[Callable[[], None]] = [self._run]
        calls += [partial(self._send_all, receiver) for receiver in self._receivers]
        for call in calls:
            thread = threading.Thread(target=call, name="delivery", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """End the threads, and keep what is not delivered, or write it to the dead letters."""
        if not self._threads:
            return
        self._ends.set()
        self._wake.set()
        with self._guard:
            self._guard.notify_all()
        until = time.monotonic() + _GRACE
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        with self._guard:
            if self._journal is not None:
                self._renewed = -math.inf
                self._keep(0.0)
                return
            for receiver in self._receivers:
                for entry in self._queues[receiver.name].waiting:
                    self._bury(receiver, entry, "the service has ended, and has no store")

    @property
    def health(self) -> Document:
        """The counts of each receiver, and why the last request failed."""
        names = ("delivered", "undelivered", "trouble")
        return {
            name: {"waiting": len(queue.waiting)} | {each: getattr(queue, each) for each in names}
            for name, queue in self._queues.items()
        }

    def told(self, alert: Alert) -> Document:
        """Return the labels of an alert, and its newest changes, silenced ones with the reason."""
        notice = self._notices.get(alert.name, Notice(alert.name))
        reasons = {each["id"]: each["silenced"] for each in self._history}
        history = []
        for moment, state in reversed(alert.changes[-_SHOWN:]):
            reason = reasons.get(self._key(alert.name, moment, state))
            history.append({"time": moment.isoformat(), "state": state, "silenced": reason})
        labels = {"severity": notice.severity, "labels": dict(notice.labels)}
        return {**labels, "runbook": notice.runbook, "history": history}

    def _key(self, name: str, moment: datetime, state: str) -> str:
        """Return the id of a change, the same for every worker and every request."""
        told = json.dumps([self._service, name, moment.isoformat(), state])
        return blake2b(told.encode(), digest_size=16).hexdigest()

    def _run(self) -> None:
        trouble = ""
        while not self._ends.is_set():
            try:
                self.step(time.time())
            except Exception as error:  # any exception is reported; the next evaluation may work
                before, trouble = trouble, f"{type(error).__name__}: {error}"
                if trouble != before:
                    log("warning", f"alerts are not delivered: {trouble}")
            self._wake.wait(_EVERY)
            self._wake.clear()

    def step(self, now: float) -> None:
        """Evaluate the rules if this worker leads, and record and queue what has changed."""
        with self._guard:
            if not (self._leads and self._is_fresh(now)):
                self._keep(now)
            if not self._leads:
                return
        alerts = self._judge()
        with self._guard:
            for alert in alerts:
                self._follow(alert, self._notices[alert.name], now)
            self._repeat(now)
            self._keep(now)
            self._guard.notify_all()

    # --- what has changed -----------------------------------------------------------------------

    def _follow(self, alert: Alert, notice: Notice, now: float) -> None:
        """Record the changes of an alert since the last evaluation; queue those not silenced."""
        if alert.until is None:
            return
        until, changes = alert.until.timestamp(), alert.changes
        known = self._followed.get(alert.name)
        if known is None:  # the history before the first evaluation is no news
            known = {"state": "ok", "told": "ok", "until": until, "open": False}
            self._followed[alert.name] = known
            changes = changes[-1:] if alert.firing else ()
            if not alert.firing:
                known |= {"state": alert.state, "told": alert.state}
        else:
            changes = tuple(each for each in changes if each[0].timestamp() > known["until"])
            # Late rows have changed the past. A worker that lags behind the last one knows nothing.
            if not changes and until >= known["until"]:
                changes = ((alert.until, alert.state),)
        known["until"] = max(until, known["until"])
        muted = next((one for one in self._silences if one.mutes(notice, now)), None)
        for moment, state in changes:
            if state == known["state"]:
                continue
            change = self._changed(alert, notice, moment, state, known["state"])
            noted = {**change, "silenced": muted and (muted.reason or "silenced")}
            self._history = (*self._history, noted)[-_HISTORY:]
            known |= {"state": state, "change": change}
            if muted is None:
                self._tell(notice, known)
        if muted is None and known["told"] != known["state"]:  # a silence is over
            self._tell(notice, known)

    def _changed(
        self, alert: Alert, notice: Notice, moment: datetime, state: str, before: str
    ) -> Document:
        is_last = alert.changes[-1:] == ((moment, state),) or moment == alert.until
        why = alert.why if is_last else f"{notice.says}: {before} before"
        numbers = {name: getattr(alert, name) for name in ("value", "low", "high")}
        return {
            "id": self._key(alert.name, moment, state),
            "service": self._service,
            "alert": alert.name,
            "state": state,
            "before": before,
            "time": moment.isoformat(),
            **{n: x if is_last and math.isfinite(x) else None for n, x in numbers.items()},
            "rows": alert.rows if is_last else None,
            "why": why,
            "severity": notice.severity,
            "labels": dict(notice.labels),
            "runbook": notice.runbook,
        }

    def _tell(self, notice: Notice, known: Document) -> None:
        """Queue the last change of an alert for the receivers that get it."""
        change, was_open = known["change"], known["open"]
        known["told"] = change["state"]
        # Without data, an incident neither begins nor ends.
        known["open"] = {"firing": True, "ok": False}.get(change["state"], was_open)
        if change["state"] == "firing":
            known["opened"] = change
        turns = known["open"] != was_open
        for receiver in self._receivers:
            if receiver.match.fits(notice) and (turns or receiver.kind == "webhook"):
                self._put(receiver, change)

    def _put(self, receiver: Receiver, change: Document, *, repeats: bool = False) -> None:
        queue = self._queues[receiver.name]
        queue.waiting.append({"change": change, "since": time.time(), "repeats": repeats})
        if len(queue.waiting) > _QUEUE:
            self._bury(receiver, queue.pop(), f"{_QUEUE} later changes wait")

    def _repeat(self, now: float) -> None:
        """Queue the alerts that fire for Alertmanager, which ends those not sent again."""
        if 0 <= now - self._repeated < _REPEAT:
            return
        self._repeated = now
        for receiver in self._receivers:
            if receiver.kind == "alertmanager" and not self._queues[receiver.name].waiting:
                for name, known in self._followed.items():
                    notice = self._notices.get(name)
                    if known["open"] and notice is not None and receiver.match.fits(notice):
                        self._put(receiver, known["opened"], repeats=True)

    # --- what is sent ---------------------------------------------------------------------------

    def _send_all(self, receiver: Receiver) -> None:
        """Send the changes of a receiver, one after the other, until the service ends."""
        queue = self._queues[receiver.name]
        while not self._ends.is_set():
            with self._guard:
                rest = queue.rests - time.monotonic()
                if not (queue.waiting and self._leads) or rest > 0:
                    self._guard.wait(min(rest, _EVERY) if rest > 0 else _EVERY)
                    continue
                entry = queue.waiting[0]
            failure = None
            try:
                receiver.send(entry["change"])
            except DeliveryError as error:
                failure = error
            except Exception as error:  # any exception is reported; the others can be sent
                failure = DeliveryError(f"{type(error).__name__}: {error}", is_final=True)
            with self._guard:
                if queue.waiting and queue.waiting[0] is entry:  # another worker may lead by now
                    self._sent(receiver, queue, failure)
            self._wake.set()

    def _sent(self, receiver: Receiver, queue: _Queue, failure: DeliveryError | None) -> None:
        """Remove the oldest change if it is delivered or hopeless; otherwise plan a retry."""
        if failure is None:
            queue.trouble = ""
            queue.delivered += 1
            queue.pop()
            return
        if not queue.trouble and not failure.is_final:
            log("warning", f"{receiver.name} does not take alerts: {failure}")
        queue.trouble = str(failure)
        longest = min(_FIRST * 2.0 ** min(queue.retries, 30), _LONGEST)
        wait = longest * random.uniform(0.5, 1.0)
        wait = max(wait, min(failure.wait, _LONGEST))
        if failure.is_final or time.time() + wait - queue.waiting[0]["since"] > receiver.give_up:
            self._bury(receiver, queue.pop(), str(failure))
        else:
            queue.retries += 1
            queue.rests = time.monotonic() + wait

    def _bury(self, receiver: Receiver, entry: Document, why: str) -> None:
        """Append a change to the dead letters of a receiver."""
        if entry["repeats"]:
            return
        change = entry["change"]
        self._queues[receiver.name].undelivered += 1
        now = datetime.now(UTC).isoformat()
        letter = {"receiver": receiver.name, "why": why, "given_up": now, "change": change}
        told = f"{receiver.name} did not take that {change['alert']} is {change['state']}: {why}"
        try:
            append(receiver.dead_letters, letter)
        except OSError as error:
            told += f"; {receiver.dead_letters} cannot be written: {error.strerror}"
        log("warning", told)

    # --- what is kept ---------------------------------------------------------------------------

    def _keep(self, now: float) -> None:
        """Renew the lease, and write what has changed; learn whether this worker leads."""
        if self._journal is None:
            return
        written: dict[str, str] = {}
        done = self._journal.exchange(lambda stored: self._exchanged(stored, now, written))
        if done and "lease" in written:
            self._renewed, self._leads = now, now > 0

    def _is_fresh(self, now: float) -> bool:
        """Return whether the lease need not be renewed yet."""
        return self._journal is None or 0 <= now - self._renewed < _LEASE / 3

    def _exchanged(
        self, stored: dict[str, str], now: float, written: dict[str, str]
    ) -> Mapping[str, str]:
        """Return the texts to replace, none if another worker leads; collects them in `written`."""
        holder, until = json.loads(stored.get("lease", '["", 0]'))
        if holder != self._id:
            self._leads = False
            self._load(stored)
            if not now or now < until <= now + _LEASE:
                return {}
        queues = {name: [*queue.waiting] for name, queue in self._queues.items()}
        kept = {"alerts": self._followed, "queues": queues, "history": [*self._history]}
        texts = {name: json.dumps(each) for name, each in kept.items()}
        written.update({name: text for name, text in texts.items() if text != stored.get(name)})
        if holder != self._id or not self._is_fresh(now):
            written["lease"] = json.dumps([self._id, now + _LEASE if now else 0])
        return written

    def _load(self, stored: Mapping[str, str]) -> None:
        """Go on with what another worker has written."""
        self._followed = json.loads(stored.get("alerts", "{}"))
        self._history = tuple(json.loads(stored.get("history", "[]")))
        waiting = json.loads(stored.get("queues", "{}"))
        for name, queue in self._queues.items():
            queue.waiting = deque(waiting.get(name, ()))
            queue.retries, queue.rests = 0, 0.0
