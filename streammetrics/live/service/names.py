"""What a service calls its columns, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """What the columns of events and files are called that no metric reads."""

    id: str = "id"
    time: str = "time"
    label_time: str = "label_time"
    version: str = "version"


@dataclass(frozen=True)
class PageView:
    """What is looked at: windows that end one after the other."""

    title: str = "Live metrics"
    window: str = "1h"
    every: str = "5min"
    target_range: tuple[float, float] | None = None
