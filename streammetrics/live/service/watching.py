"""What is read beside what answers: who asks waits a moment, and is told the last that is known."""

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

PATIENCE = 0.5  # seconds that who asks for alerts waits for what is new

T = TypeVar("T")


class Latest(Generic[T]):
    """A reading that is made again and again, on a thread of its own, by whoever asks for it.

    Args:
        read: Makes it.
        known: What is told before the first is made.
        name: Of the thread.
    """

    def __init__(self, read: Callable[[], T], known: T, name: str) -> None:
        self._read, self._known, self._name = read, known, name
        self._guard = threading.Lock()
        self._made: Future[T] | None = None
        self._rests = 0.0  # until when

    def get(self, patience: float) -> T:
        """Return what is read now, or the last that is known where that takes longer.

        A reading that takes longer is followed by a rest as long as it took, so that events come
        in.

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
        """Learn what was read, if that is over."""
        if self._made is not None and self._made.done():
            made, self._made = self._made, None
            self._known = made.result()

    def _make(self, made: Future[T], patience: float) -> None:
        began = time.monotonic()
        try:
            found = self._read()
        except Exception as error:  # of whatever kind: who asks is told
            made.set_exception(error)
        else:
            took = time.monotonic() - began
            self._rests = time.monotonic() + (took if took > patience else 0.0)
            made.set_result(found)


class Watching:
    """Rules of alerts, judged on a thread of their own.

    A first look at weeks of panes takes long. Who asks meanwhile is told how the rules stood when
    they were judged last, and that is in the store: no alert ends by a restart.

    Args:
        queries: The live state.
        rules: The rules.

    Attributes:
        unjudged: How rules stand of which nothing is known yet.
    """

    def __init__(self, queries: Queries, rules: Sequence[Rule]) -> None:
        self._queries, self._rules = queries, tuple(rules)
        self.unjudged = Alerts(alert_of(rule, (), rule.reach) for rule in self._rules)
        journal = queries.ingest.journal if self._rules else None
        self._saved = {} if journal is None else journal.alerts()
        self._judged = Latest(self._judge, self._restored(), "rules")

    def alerts(self) -> Alerts:
        """Return how the rules stand, or stood when they were judged last; none before that."""
        return self._judged.get(PATIENCE) if self._rules else Alerts()

    def _judge(self) -> Alerts:
        """Judge the rules, and write to the store how they stand, where that has changed."""
        found, journal = self._queries.alerts(self._rules), self._queries.ingest.journal
        told = {alert.name: json.dumps(alert.to_dict()) for alert in found}
        if journal is not None and told != self._saved and journal.put_alerts(told):
            self._saved = told
        return found

    def _restored(self) -> Alerts:
        """Return how rules stood when any worker of the store judged them last, of those alike."""
        found = []
        for rule in self._rules:
            with suppress(KeyError, ValueError, TypeError):
                told = json.loads(self._saved[rule.title])
                if told["rule"] == repr(rule):
                    found.append(Alert.from_dict(told, rule))
        return Alerts(found)
