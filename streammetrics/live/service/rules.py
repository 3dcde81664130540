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
from streammetrics.metrics.specs import SpecError

if TYPE_CHECKING:
    from streammetrics.live.alerts.rule import Rule

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
    known = inspect.signature(cls.__init__)
    names = [each for each in known.parameters if each != "self"]
    for unknown in (each for each in named if each not in names):
        raise SpecError(f"{title} has no parameter {unknown!r}{near(unknown, names)}")
    try:
        bound: Any = known.bind(None, *values, **{"name": name, **named})
        if isinstance(bound.arguments.get("reference"), str):
            bound.arguments["reference"] = os.path.join(folder, bound.arguments["reference"])
        return cls(*bound.args[1:], **bound.kwargs)
    except (TypeError, ValueError, OSError, StreamMetricsError) as error:
        raise SpecError(f"{title}: {error}") from error
