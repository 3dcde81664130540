"""A `Live` as it stands in a file: the panes of all tiers in columns, states alike side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.state.arrays import take_array
from streammetrics.core.stateful import from_bytes, registered_name
from streammetrics.ledger.columns import kinds_of, rows_of, written
from streammetrics.live.config import Config
from streammetrics.live.panes import NEVER, Panes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Arrays = dict[str, "NDArray[Any]"]


def described(
    cls: type, suite: Mergeable, config: Config, panes: Panes
) -> tuple[dict[str, Any], Arrays, str]:
    """Return what a file says, its arrays, and no opening."""
    numbers, states = [], []
    for row in panes.rows:
        numbers.append(np.array(list(row.states), np.int64))
        states += [state for number in numbers[-1].tolist() if (state := row.settled(number))]
    kinds, index = kinds_of(states)
    said, columns = written(kinds)
    arrays: Arrays = {
        "suite": np.frombuffer(suite.to_bytes(), np.uint8),
        "numbers": np.concatenate(numbers),
        "tiers": np.array([len(part) for part in numbers], np.int64),
        "states": index,
        **columns,
    }
    told = {"class": registered_name(cls), "config": config.described(), "newest": panes.newest}
    return {**told, "kinds": said}, arrays, ""


def read(
    meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[Mergeable, Config, Panes]:
    """Return what was described, after checking all of it."""
    suite = from_bytes(take_array(arrays, "suite", "uint8").tobytes())
    if not isinstance(suite, Mergeable) or suite.n_rows:
        raise StateFormatError("a Live holds a metric, or a set, without rows")
    config, newest = Config.read(meta.get("config")), meta.get("newest")
    panes = Panes(suite._layout, config.tiers)
    if type(newest) is not int or not NEVER <= newest < 1 << 63:
        raise StateFormatError("the state does not say how new it is")
    numbers, counts = take_array(arrays, "numbers", "int64"), take_array(arrays, "tiers", "int64")
    index = take_array(arrays, "states", "int64")
    if len(counts) != len(config.tiers) or counts.min() < 0 or counts.sum() != len(numbers):
        raise StateFormatError("the panes of the state do not fit its tiers")
    if len(index) != len(numbers):
        raise StateFormatError("the states do not fit their panes")
    states = rows_of(meta.get("kinds"), arrays, index, suite._layout)
    opened = iter([state.opened(suite._layout) for state in states])
    ends = np.cumsum(counts).tolist()
    for tier, row, start, end in zip(config.tiers, panes.rows, [0, *ends], ends, strict=False):
        mine = numbers[start:end]
        if len(mine) and not (
            newest >= 0
            and (np.diff(mine) > 0).all()
            and tier.oldest(newest) <= mine[0]
            and mine[-1] <= tier.number(newest)
        ):
            raise StateFormatError("the numbers of the panes are not those that are kept")
        row.put(dict(zip(mine.tolist(), opened, strict=False)))
    panes.newest = newest
    try:
        panes.agree()
    except InvalidBatchError as error:
        raise StateFormatError(f"the panes saw different kinds of rows: {error}") from error
    return suite, config, panes
