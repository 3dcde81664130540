"""Lines of JSON, or an array of objects, as columns of events by their kind."""

from __future__ import annotations

import io
import json
from operator import itemgetter
from typing import TYPE_CHECKING, NoReturn

from streammetrics.live.events import KINDS
from streammetrics.live.service.groups import BodyError, Group, no_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.types import Document, Json


def of_lines(body: bytes, kind: str | None) -> list[Group]:
    """Return the objects of a request, which say their kind unless it is said of all.

    Raises:
        BodyError: A row is no object, has no kind, or is unlike the others of its kind.
    """
    found: dict[str, tuple[list[int], list[Document]]] = {}
    for row, event in enumerate(_objects(body)):
        if type(event) is not dict:
            raise BodyError(f"row {row} is no JSON object", None, row)
        which = event.pop("kind", kind)
        if which not in KINDS:
            no_kind(which, row)
        rows, events = found.setdefault(which, ([], []))
        rows.append(row)
        events.append(event)
    return [_alike(which, *mine) for which, mine in found.items()]


def _alike(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Json]]) -> Group:
    """Return events of a kind as columns."""
    keys = tuple(events[0])
    if {*map(len, events)} != {len(keys)}:
        _differ(kind, rows, events)
    try:
        columns = {key: [*map(itemgetter(key), events)] for key in keys}
    except KeyError:
        _differ(kind, rows, events)
    return Group(kind, rows, columns)  # type: ignore[arg-type]  # it is one of `KINDS`


def _differ(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Json]]) -> NoReturn:
    """Raise about the first event that has other keys than the first one."""
    first = events[0]
    row, other = next(
        (row, event)
        for row, event in zip(rows, events, strict=True)
        if event.keys() != first.keys()
    )
    here, there = ", ".join(other) or "nothing", ", ".join(first) or "nothing"
    raise BodyError(
        f"row {row} has {here}, and the first to {kind} {there}: in a request all events of "
        "a kind have the same keys",
        None,
        row,
    )


def _objects(body: bytes) -> Iterator[Json]:
    """Yield what the lines that are not empty hold, or an array; raise about the first bad one."""
    if body.lstrip().startswith(b"["):
        yield from _decoded(body, 0)
        return
    row = 0
    for line in io.BytesIO(body):  # one by one, as most of what is none is known by its first
        if not line.isspace():
            yield _decoded(line, row)
            row += 1


def _decoded(line: bytes, row: int) -> Json:
    try:
        return _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise BodyError(f"row {row} is no JSON: {error}", None, row) from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
