"""The state of one shard: a snapshot of a metric, or its bytes as long as nobody reads it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from streammetrics.core.errors import StateFormatError
from streammetrics.core.mergeable import described, filled
from streammetrics.core.state.container import disclosed, enclosed

if TYPE_CHECKING:
    from streammetrics.core.layout import State
    from streammetrics.core.mergeable import Mergeable


class Held:
    """A state that never changes, in one of two forms; the metric without rows says of what.

    Neither bytes nor their hash are made before they are asked for, and no state is built of
    bytes before somebody reads it: most shards are only kept, and written again.
    """

    __slots__ = ("_form", "empty")

    def __init__(self, empty: Mergeable, form: State | bytes) -> None:
        self.empty = empty
        self._form = form  # replaced in one assignment, by its equal

    @classmethod
    def of(cls, empty: Mergeable, metric: Mergeable) -> Held:
        """Return the present state of a metric."""
        return cls(empty, metric._accumulator.part(metric._layout))

    @property
    def state(self) -> State:
        """The state as its metric takes it."""
        form = self._form
        if isinstance(form, bytes):
            form = filled(self.empty._layout, *disclosed(form))
            if enclosed(*described(form)) != self._form and isinstance(self._form, bytes):
                raise StateFormatError("the state of a shard is not one that is written")
            self._form = form
        return form

    @property
    def metric(self) -> Any:
        """A metric, or a set, at this state."""
        return self.empty._at(self.state)

    @property
    def blob(self) -> bytes:
        """The bytes of the state: of no others than of equal ones."""
        form = self._form
        return form if isinstance(form, bytes) else enclosed(*described(form))

    @property
    def digest(self) -> str:
        """What stands for the state once it is sealed."""
        return digest(self.metric.to_bytes())

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        form = self._form
        if isinstance(form, bytes):
            return len(form)
        return sum(statistic.nbytes for statistic in form.statistics)

    def equals(self, other: Held) -> bool:
        """Whether both are the same state."""
        return self._form is other._form or self.blob == other.blob


def digest(blob: bytes) -> str:
    """Return what stands for the bytes of a state."""
    return hashlib.sha256(blob).hexdigest()
