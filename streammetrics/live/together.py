"""Events of several kinds that come together: all of them are taken, or none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.types import ArrayLike
    from streammetrics.live.entrance import Entrance
    from streammetrics.live.events import Events, Kind


class EventColumns(NamedTuple):
    """Columns of events of one kind."""

    kind: Kind
    time: ArrayLike
    heads: tuple[object, ...]  # the ids of predictions, the ids and versions of labels
    columns: Mapping[str, ArrayLike]


class PartError(InvalidBatchError):
    """One of several parts is refused, and so are all; `place` says which."""

    def __init__(self, place: int, error: InvalidBatchError) -> None:
        super().__init__(str(error), error.column, error.row)
        self.place = place


@contextmanager
def _naming(place: int) -> Iterator[None]:
    try:
        yield
    except InvalidBatchError as error:
        raise PartError(place, error) from error


def take_all(live: Entrance, parts: Sequence[EventColumns]) -> None:
    """Take columns of events of several kinds, or raise and leave all as it was.

    Raises:
        PartError: One of them is refused.
        StreamMetricsError: The live state is closed.
    """
    live._check_open()
    ready = [_ready(live, place, part, alone=len(parts) == 1) for place, part in enumerate(parts)]
    with live._guard._lock:
        live._drain()
        with live._holding("taking"):
            if len(ready) > 1:
                _try(live, ready)
            for place, events in enumerate(ready):
                with _naming(place):
                    live._came(events, checked=False)
            live._stream.tidy()
    live._entered()


def _ready(live: Entrance, place: int, part: EventColumns, *, alone: bool) -> Events:
    """Return columns as events, after checking them by themselves."""
    buffer = dict(zip(KINDS, live._buffers, strict=True))[part.kind]
    with _naming(place):
        live._check_names(buffer, part.columns)
        times = live._times(part.time)
        events = live._events(buffer, times, part.heads, part.columns, several=True)
        if part.kind == "observe" and not alone:
            buffer.check(part.columns)
        return events


def _try(live: Entrance, ready: Sequence[Events]) -> None:
    """Raise where a part does not go with what came before: none of them is taken yet."""
    refusing = live._suite._layout.can_refuse  # of what the other parts have brought, too
    stream = live._stream.copy() if refusing else live._stream
    for place, events in enumerate(ready):
        with _naming(place):
            if events.kind != "observe":
                stream.check(events.columns)
            if refusing:
                stream.take(events)
