"""How rules stand, judged beside what answers: who asks waits a moment, and never for the past."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from streammetrics.live.alerts.states import Alerts, alert_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.asking import Asking

PATIENCE = 0.5  # seconds that who asks waits for what is new


class Watching:
    """Rules of alerts, judged on a thread of their own.

    A first look at weeks of panes takes long. Who asks meanwhile is told how the rules stood when
    they were judged last. Rules that take long rest as long as they took, so that events come in.

    Args:
        live: The live state.
        rules: The rules.

    Attributes:
        unjudged: How rules stand of which nothing is known yet.
    """

    def __init__(self, live: Asking, rules: Sequence[Rule]) -> None:
        self._live, self._rules = live, tuple(rules)
        self._guard = threading.Lock()
        self.unjudged = Alerts(alert_of(rule, (), rule.reach) for rule in self._rules)
        self._known = Alerts()
        self._judging: Future[Alerts] | None = None
        self._rests = 0.0  # until when

    def alerts(self) -> Alerts:
        """Return how the rules stand, or stood when they were judged last; none before that."""
        with self._guard:
            self._take()
            if self._rules and self._judging is None and time.monotonic() >= self._rests:
                self._judging = Future()
                arguments = (self._judging,)
                threading.Thread(
                    target=self._judge, args=arguments, name="rules", daemon=True
                ).start()
            if self._judging is not None:
                wait([self._judging], PATIENCE)
                self._take()
            return self._known

    def _take(self) -> None:
        """Learn what was judged, if that is over."""
        if self._judging is not None and self._judging.done():
            judged, self._judging = self._judging, None
            self._known = judged.result()

    def _judge(self, judging: Future[Alerts]) -> None:
        began = time.monotonic()
        try:
            found = self._live.alerts(self._rules)
        except Exception as error:  # of whatever kind: who asks is told
            judging.set_exception(error)
        else:
            took = time.monotonic() - began
            self._rests = time.monotonic() + (took if took > PATIENCE else 0.0)
            judging.set_result(found)
