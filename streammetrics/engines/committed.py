"""A live state in a folder, beside the number of the last batch that is in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics.core.loading import load
from streammetrics.live.live import Live

if TYPE_CHECKING:
    import os

_NAME = re.compile(r"batch-([0-9]{12})\.state")


class Committed:
    """A live state that takes numbered batches, each once, whoever is killed at whatever moment.

    The number is the name of the file that holds the state: both are there, or neither, as a file
    is renamed to its name once it is whole. A batch that comes again, with a number that is not
    above that of the file, changes nothing. For one writer at a time.

    Args:
        live: An empty live state, of the configuration that is meant.
        folder: Where the files are; it is made where there is none.

    Raises:
        IncompatibleMetricsError: The folder has a state of another configuration.

    Example:
        >>> import tempfile
        >>> import streammetrics as sm
        >>> from streammetrics.engines.committed import Committed
        >>> folder, live = tempfile.mkdtemp(), sm.Live(sm.Mean())
        >>> batch = live.copy().observe(time=60, values=3.0)
        >>> held = Committed(live, folder)
        >>> held.take(0, [batch]), held.take(0, [batch]), Committed(live, folder).number
        (True, False, 0)
    """

    def __init__(self, live: Live, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self.live, self.number = live.copy(), -1
        for number, path in self._files()[-1:]:
            found = load(path)
            if isinstance(found, Live):
                self.live.merge(found)
            self.number = number

    def take(self, number: int, states: list[Live]) -> bool:
        """Merge the states of a batch, unless it was; return whether it was new."""
        if number <= self.number:
            return False
        live = self.live.copy().merge(*states)
        live.save(self._folder / f"batch-{number:012}.state")
        before, self.live, self.number = self.number, live, number
        for earlier, path in self._files():
            if earlier < before:  # one is left, for whoever is just reading
                path.unlink(missing_ok=True)
        return True

    def _files(self) -> list[tuple[int, Path]]:
        found = ((_NAME.fullmatch(path.name), path) for path in self._folder.iterdir())
        return sorted((int(match[1]), path) for match, path in found if match is not None)
