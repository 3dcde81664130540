"""What `live status` prints: one screen of a service that runs, or of what a store holds."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.outcome import Outcome
from streammetrics.live.service import answers
from streammetrics.live.service.config import settings
from streammetrics.show.grids import Grid
from streammetrics.show.report import number
from streammetrics.show.terminal import drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PATIENCE = 60.0  # seconds; a long history takes some at first
_COUNTS = ("predicted", "labelled", "pending", "expired", "displaced", "late", "conflicting")


def standing(target: str, token_env: str | None) -> Outcome:
    """Return the newest window of a service or a store: its metrics, coverage and alerts."""
    if not target.startswith(("http://", "https://")):
        now, alerts = _read(target)
    else:
        token = os.environ.get(token_env, "") if token_env else ""
        if token_env and not token:
            raise CommandError(f"the environment has no {token_env}, or an empty one: export it")
        base = target.rstrip("/")
        now, alerts = (_asked(f"{base}/api/{name}", token) for name in ("now", "alerts"))
    try:
        grids = [_metrics(now), *_coverage(now["coverage"]), *_alerts(alerts["alerts"])]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CommandError(f"{target} answers, but not as a live service does") from error
    return Outcome(drawn(grids))


def _read(config: str) -> tuple[Any, Any]:
    found = settings(config)
    store = found.options["store"]
    if store is None or not os.path.exists(store):
        lack = "has no store" if store is None else f"has a store, {store}, which is not there yet"
        raise CommandError(f"{config} {lack}: give the address of the service, http://...")
    with found.live() as live:
        if found.server.clock == "wall":
            live.now(time.time())
        return answers.now(live, found.view), answers.alerts(live, found.rules)


def _asked(url: str, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            hint = "; --token-env names the variable with its token" if error.code == 401 else ""
        raise CommandError(f"{url} answers {error.code} {error.reason}{hint}") from error
    except OSError as error:
        raise CommandError(f"{url} does not answer: {getattr(error, 'reason', error)}") from error
    except ValueError as error:
        raise CommandError(f"{url} answers with no JSON: is it a live service?") from error


def _metrics(now: Mapping[str, Any]) -> Grid:
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


def _coverage(found: Mapping[str, Any]) -> list[Grid]:
    if not found["predicted"]:
        return []
    lines: list[tuple[str, ...]] = [(name, f"{found[name]:,}") for name in _COUNTS if found[name]]
    return [Grid(f"{found['coverage']:.1%} have their label", ("Predictions", "Count"), lines)]


def _alerts(found: Sequence[Mapping[str, Any]]) -> list[Grid]:
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
