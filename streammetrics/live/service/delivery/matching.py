"""Selection of alerts by the name and the labels of their rules."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.batch import near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Json
    from streammetrics.live.exporting.files import Notice
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
