"""What a request brings, lines of JSON or a table of Arrow: all of it is taken, or nothing."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from streammetrics.live.entrance import EventColumns, PartError
from streammetrics.live.events import KINDS
from streammetrics.live.service.forms import Forms
from streammetrics.live.service.groups import BodyError, Group
from streammetrics.live.service.lines import of_lines
from streammetrics.live.service.tables import of_table
from streammetrics.live.truth import kinds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.errors import InvalidBatchError
    from streammetrics.live.entrance import Entrance
    from streammetrics.live.service.names import Names

JSON_TYPES = ("application/x-ndjson", "application/jsonl", "application/json", "text/plain", "")
ARROW_TYPES = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")


class Bodies:
    """What brings requests to a live state, one after the other.

    Args:
        live: Where their events are brought.
        names: What their columns are called.
    """

    def __init__(self, live: Entrance, names: Names) -> None:
        self._live, self._names, self._forms = live, names, Forms()
        # What errors call the event's own columns, but for those that a metric reads.
        self._heads = {"id", "time", "version"} - kinds_of(live._suite).keys()

    def take(self, body: bytes, form: str, kind: str | None) -> dict[str, int]:
        """Bring the events of a request to the state, all or none; return how many of each kind.

        Args:
            body: The request's.
            form: Its type, one of those above.
            kind: That of rows which do not say their own, in `kind`.

        Raises:
            BodyError: A row is refused, or what there is are no rows; nothing has changed.
        """
        if kind is not None and kind not in KINDS:
            raise BodyError(f"no kind {kind!r}: there are {', '.join(KINDS)}")
        if form in ARROW_TYPES:
            groups = of_table(body, kind)
            self._bring(groups)
        elif (known := self._forms.read(body, kind)) is not None:
            groups = known
            self._bring(groups)
        else:
            groups = of_lines(body, kind)
            self._bring(groups)
            self._forms.learn(body, kind, groups)
        return {group.kind: len(group.rows) for group in groups}

    def _bring(self, groups: Sequence[Group]) -> None:
        try:
            self._live._take_all([_part(group, self._names) for group in groups])
        except PartError as error:
            raise self._placed(error, groups[error.place].rows) from error

    def _placed(self, error: InvalidBatchError, rows: Any) -> BodyError:
        """Return an error of a group with the row's number in the request, and the user's names."""
        text, column = str(error), error.column
        if column in self._heads:
            column = getattr(self._names, column)
            text = f"{column}{text.removeprefix(error.column or '')}"
        if error.row is None:
            return BodyError(text, column)
        row = int(rows[error.row])
        return BodyError(re.sub(rf"\brow {error.row}\b", f"row {row}", text), column, row)


def _part(group: Group, names: Names) -> EventColumns:
    """Return a group as it is taken."""
    kind, columns = group.kind, dict(group.columns)
    time = columns.pop(names.time, None)
    if time is None:
        _refuse(f"has no {names.time!r}", group)
    heads: tuple[object, ...] = ()
    if kind != "observe":
        ids = columns.pop(names.id, None)
        if ids is None:
            _refuse(f"has no {names.id!r}", group)
        heads = (ids,) if kind == "predict" else (ids, columns.pop(names.version, 1))
    return EventColumns(kind, _as_array(time), heads, columns)


def _as_array(times: object) -> object:
    """Return a list of numbers as an array, which need not be looked at one by one."""
    if type(times) is list and {*map(type, times)} <= {float, int}:
        with contextlib.suppress(OverflowError):
            return np.array(times, np.float64)
    return times


def _refuse(why: str, group: Group) -> NoReturn:
    row = int(group.rows[0])
    raise BodyError(f"an event to {group.kind} {why}, first in row {row}", None, row)
