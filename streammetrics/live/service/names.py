"""Names of event columns, and the view that the page shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """The names of the columns of events and files that no metric reads."""

    id: str = "id"
    time: str = "time"
    label_time: str = "label_time"
    version: str = "version"


@dataclass(frozen=True)
class PageView:
    """What the page and the default queries show: successive windows."""

    title: str = "Live metrics"
    window: str = "1h"
    every: str = "5min"
    target_range: tuple[float, float] | None = None
