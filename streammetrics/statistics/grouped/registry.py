"""Which form the states of a statistic are held in for many groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.statistics.grouped.split import Split

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.grouped.forms import Form

_FORMS: dict[type[Statistic], type[Form]] = {}


def form_of(statistic: Statistic) -> type[Form]:
    """Return the form for a statistic; that of any class without one sorts and splits rows."""
    return _FORMS.get(type(statistic), Split)
