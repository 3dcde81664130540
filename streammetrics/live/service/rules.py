"""Rules of alerts in words: ``Below("auc", 0.8, window="1h")``, as in Python, then as objects."""

from __future__ import annotations

import ast
import inspect
import os
from typing import TYPE_CHECKING, Any

from streammetrics.core.columns.naming import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.alerts.change import Change
from streammetrics.live.alerts.drift import Drift
from streammetrics.live.alerts.missing import Coverage, Silence
from streammetrics.live.alerts.thresholds import Above, Below, BurnRate
from streammetrics.live.alerts.view import delay_of
from streammetrics.live.time import shown_duration
from streammetrics.live.truth import truth_of
from streammetrics.metrics.specs import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.service.config import Settings

RULES: dict[str, type[Rule]] = {
    rule.__name__: rule for rule in (Above, Below, BurnRate, Change, Coverage, Drift, Silence)
}


def rule_of(text: str, name: str, folder: str) -> Rule:
    """Return the rule that a text is a call of; files that it names are beside the configuration.

    Raises:
        SpecError: It is something else, or there is no such rule, or no such parameter.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise TypeError("no call")  # noqa: TRY301 - told like what is no Python
        title = call.func.id
        values = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise SpecError(
            f'{text!r}: expected a rule as in Python, such as Below("auc", 0.8, window="1h")'
        ) from None
    cls = RULES.get(title)
    if cls is None:
        raise SpecError(f"no rule {title!r}{near(title, sorted(RULES))}")
    try:
        known = inspect.signature(cls.__init__)
        bound: Any = known.bind(None, *values, **{"name": name, **named})
        if isinstance(bound.arguments.get("reference"), str):
            bound.arguments["reference"] = os.path.join(folder, bound.arguments["reference"])
        return cls(*bound.args[1:], **bound.kwargs)
    except (TypeError, ValueError, OSError, StreamMetricsError) as error:
        raise SpecError(f"{title}: {error}") from error


def judging(found: Settings) -> Iterator[str]:
    """Yield for each rule of a configuration a line that says how old what it judges is."""
    with found.live(store=False) as live:
        config = live._config
    waiting, alone = (shown_duration(delay_of(config, None, waits=w)) for w in (True, False))
    for rule in found.rules:
        after = getattr(rule, "after", None)
        if isinstance(rule, Silence):
            told = f"fires as soon as nothing has come for {rule.length}"
        elif after is not None:
            told = f"judges panes {after} old, by what is there then"
        elif not truth_of(found.suite):
            told = f"judges panes {alone} old"
        else:
            told = (
                f"judges panes {waiting} old where labels come later (label_ttl + label_lateness; "
                f'after="1h" in the rule judges those an hour old), and {alone} old where none do'
            )
        yield f"{rule.title}: {told}"
