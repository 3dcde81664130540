"""The state of one shard: a snapshot of a metric, or a row of a file as long as nobody reads it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from streammetrics.ledger.rows import StateRow, alike, contents, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable


class Held:
    """A state that never changes, in one of two forms; the metric without rows says of what.

    Neither its arrays nor a hash are made before they are asked for, and a state is built of a row
    only for as long as somebody reads it: most shards are only kept, and written again, and the row
    is a hundredth of the state.
    """

    __slots__ = ("empty", "form")

    def __init__(self, empty: Mergeable, form: State | StateRow) -> None:
        self.empty, self.form = empty, form

    @classmethod
    def of(cls, empty: Mergeable, metric: Mergeable) -> Held:
        """Return the present state of a metric."""
        return cls(empty, metric._accumulator.part(metric._layout))

    @property
    def state(self) -> State:
        """The state as its metric takes it."""
        (state,) = states_of([self])
        return state

    @property
    def metric(self) -> Any:
        """A metric, or a set, at this state."""
        return self.empty._at(self.state)

    @property
    def digest(self) -> str:
        """What stands for the state once it is sealed."""
        return digest(self.metric.to_bytes())

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        form = self.form
        if isinstance(form, StateRow):
            return sum(array.nbytes for array in contents(form)[1].values())
        return sum(statistic.nbytes for statistic in form.statistics)

    def equals(self, other: Held) -> bool:
        """Whether both are the same state."""
        return self.form is other.form or alike(self.form, other.form)


def states_of(every: Sequence[Held]) -> list[State]:
    """Return the states of many, of which rows of files are opened together."""
    rows = [held.form for held in every if isinstance(held.form, StateRow)]
    new = iter(opened(rows, every[0].empty._layout) if rows else ())
    return [next(new) if isinstance(held.form, StateRow) else held.form for held in every]


def digest(blob: bytes) -> str:
    """Return what stands for the bytes of a state."""
    return hashlib.sha256(blob).hexdigest()
