"""Readings in background threads: callers wait briefly, then get the last known result."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from streammetrics.live.alerts.rule import Alert, Alerts, alert_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.queries import Queries

PATIENCE = 0.5  # seconds that a request for alerts waits for new ones

T = TypeVar("T")


class Latest(Generic[T]):
    """A value that is read in a background thread whenever it is requested.

    Args:
        read: Reads the value.
        known: The value before the first reading is complete.
        name: The name of the thread.
    """

    def __init__(self, read: Callable[[], T], known: T, name: str) -> None:
        self._read, self._known, self._name = read, known, name
        self._guard = threading.Lock()
        self._made: Future[T] | None = None
        self._rests = 0.0  # time until which it pauses

    def get(self, patience: float) -> T:
        """Return the current value, or the last known one if reading takes longer than `patience`.

        After a slow reading, reads pause for as long as it took, so that events get through.

        Args:
            patience: Seconds to wait.
        """
        with self._guard:
            self._take()
            if self._made is None and time.monotonic() >= self._rests:
                self._made = Future()
                arguments = (self._made, patience)
                threading.Thread(
                    target=self._make, args=arguments, name=self._name, daemon=True
                ).start()
            made = self._made
        if made is not None:
            wait([made], patience)
        with self._guard:
            self._take()
            return self._known

    def _take(self) -> None:
        """Store the result of a finished reading."""
        if self._made is not None and self._made.done():
            made, self._made = self._made, None
            self._known = made.result()

    def _make(self, made: Future[T], patience: float) -> None:
        began = time.monotonic()
        try:
            found = self._read()
        except Exception as error:  # any exception is passed to the caller
            made.set_exception(error)
        else:
            took = time.monotonic() - began
            self._rests = time.monotonic() + (took if took > patience else 0.0)
            made.set_result(found)


class Watching:
    """Alert rules that are evaluated in a background thread.

    The first evaluation over weeks of panes takes long. Until it is complete, requests get the last
    evaluation, which is kept in the store, so that a restart ends no alert.

    Args:
        queries: The live state.
        rules: The rules.

    Attributes:
        unjudged: The alerts of rules before any evaluation.
    """

    def __init__(self, queries: Queries, rules: Sequence[Rule]) -> None:
        self._queries, self._rules = queries, tuple(rules)
        self.unjudged = Alerts(alert_of(rule, (), rule.reach) for rule in self._rules)
        journal = queries.ingest.journal if self._rules else None
        self._saved = {} if journal is None else journal.alerts()
        self._judged = Latest(self._judge, self._restored(), "rules")

    def alerts(self) -> Alerts:
        """Return the alerts of the current or the last evaluation; none before the first."""
        return self._judged.get(PATIENCE) if self._rules else Alerts()

    def _judge(self) -> Alerts:
        """Evaluate the rules, and write the alerts to the store if they have changed."""
        found, journal = self._queries.alerts(self._rules), self._queries.ingest.journal
        told = {alert.name: json.dumps(alert.to_dict()) for alert in found}
        if journal is not None and told != self._saved and journal.put_alerts(told):
            self._saved = told
        return found

    def _restored(self) -> Alerts:
        """Return the alerts that any worker stored last, for rules that have not changed."""
        found = []
        for rule in self._rules:
            with suppress(KeyError, ValueError, TypeError):
                told = json.loads(self._saved[rule.title])
                if told["rule"] == repr(rule):
                    found.append(Alert.from_dict(told, rule))
        return Alerts(found)
