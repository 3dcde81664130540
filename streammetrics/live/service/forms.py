"""Lines of JSON that look as others before them did, read at once as what they are known to be.

A form is what the rows of a request have in common: the kinds, and the keys of each. It is told by
the first row, and learnt from a request that was read line by line and taken. What a form reads is
what `of_lines` reads, to the type; where a row is otherwise, it reads nothing.
"""

from __future__ import annotations

import io
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from streammetrics.core.needs import needs
from streammetrics.live.service.groups import Group

with needs("msgspec", "live"):
    import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.live.events import Kind

    Told = tuple[str | None, frozenset[str]]  # the kind said of all, and the keys of the first row

_MOST = 64  # forms that are known; more are others' junk, or nobody's
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class LineForm(NamedTuple):
    """What reads a line, and what its rows are: a class for each kind, and its keys in order."""

    read: Callable[[bytes], Any]
    keys: Mapping[Kind, tuple[str, ...]]
    kinds: Mapping[type, Kind]

    @classmethod
    def of(cls, keys: Mapping[Kind, tuple[str, ...]], *, tagged: bool) -> LineForm:
        """Return the form of rows with some keys; `tagged`: each says its kind."""
        classes = {_row(keys[kind], kind if tagged else None): kind for kind in keys}
        # A class that is alone would not ask a row for its kind.
        every = [*classes, _row((), "")] if tagged else [*classes]
        read = msgspec.json.Decoder(Union[tuple(every)]).decode  # noqa: UP007 - of any number
        return cls(read, keys, classes)


class Forms:
    """The forms of requests that were taken, by how the first row of each looks."""

    def __init__(self) -> None:
        self._known: dict[Told, LineForm] = {}

    def read(self, body: bytes, kind: str | None) -> list[Group] | None:
        """Return the rows of a body, ``None`` where it is of no form that is known."""
        form = self._known.get(_told(body, kind))
        if form is None:
            return None
        try:
            rows = [*map(form.read, io.BytesIO(body))]
        except _ERRORS:
            return None
        return _groups(form, rows)

    def learn(self, body: bytes, kind: str | None, groups: Sequence[Group]) -> None:
        """Learn of what form a body is, of which these are the rows."""
        told = _told(body, kind)
        tagged = "kind" in told[1]
        if not told[1] or (len(groups) > 1 and not tagged):
            return
        keys = {group.kind: tuple(group.columns) for group in groups}
        if told in self._known:  # it began as others did, and went on otherwise
            keys = {**self._known[told].keys, **keys}
        if len(self._known) >= _MOST:
            self._known.clear()
        with suppress(ValueError):  # of names that it does not take
            self._known[told] = LineForm.of(keys, tagged=tagged)


def _told(body: bytes, kind: str | None) -> Told:
    """Return what tells the form of lines, nothing where there are not several."""
    line, several, _ = body.partition(b"\n")
    try:
        row = msgspec.json.decode(line) if several else None
    except _ERRORS:
        row = None
    return kind, frozenset(row if type(row) is dict else ())


def _row(keys: Sequence[str], kind: str | None) -> type:
    """Return the class of rows of a kind, which have exactly these keys."""
    names = [f"value_{place}" for place in range(len(keys))]
    row: type = msgspec.defstruct(
        "Row",
        [(name, Any) for name in names],
        rename=dict(zip(names, keys, strict=True)),
        tag_field=None if kind is None else "kind",
        tag=kind,
        forbid_unknown_fields=True,
        gc=False,
    )
    return row


def _groups(form: LineForm, rows: Sequence[Any]) -> list[Group] | None:
    """Return rows by their kinds, in the order in which they come."""
    found = []
    types = [*map(type, rows)]
    classes = dict.fromkeys(types)
    for cls in classes:
        kind = form.kinds.get(cls)
        if kind is None:
            return None
        mine: Sequence[int] = range(len(rows))
        if len(classes) > 1:
            mine = [row for row in mine if types[row] is cls]
        some = [rows[row] for row in mine]
        columns = {
            key: [*map(attrgetter(f"value_{place}"), some)]
            for place, key in enumerate(form.keys[kind])
        }
        found.append(Group(kind, mine, columns))
    return found
