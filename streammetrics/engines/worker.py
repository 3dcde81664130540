"""What a worker does: reads pieces into its share of the set, and shows that it is alive."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import time
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError
from streammetrics.engines.shards import read

if TYPE_CHECKING:
    from collections.abc import MutableSequence

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.readers.files import Piece


TICK = 0.1  # seconds between two signs of life, and between two looks at them
BEATS, ROWS = 0, 1  # what a worker counts where its parent sees it


# The set of this process, if it is a worker, the rows of a batch, and its signs of life.
_share: list[tuple[MetricSet, int, MutableSequence[int]]] = []


def begin(suite: MetricSet, batch_rows: int, signs: MutableSequence[int]) -> None:
    """Start with an empty share, and give signs of life from then on."""
    _share.append((suite.copy(), batch_rows, signs))
    threading.Thread(target=_beat, args=(signs,), daemon=True).start()


def _beat(signs: MutableSequence[int]) -> None:
    """Give signs of life as long as there is somebody to see them."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        signs[BEATS] += 1
        time.sleep(TICK)
    os._exit(1)


def read_piece(piece: Piece) -> Exception | None:
    """Take the rows of a piece, and return the error of one that cannot be taken."""
    suite, batch_rows, signs = _share[0]

    def progress(rows: int) -> None:
        signs[ROWS] += rows

    try:
        read(piece, suite, batch_rows, progress)
    except Exception as error:
        return portable(error)
    return None


def portable(error: Exception) -> Exception:
    """Return an error that arrives at the parent: itself, or its text where it does not pickle."""
    with contextlib.suppress(Exception):
        same = pickle.loads(pickle.dumps(error))
        if type(same) is type(error) and str(same) == str(error):
            return error
    return StreamMetricsError(f"{type(error).__name__}: {error}")


def hand_over() -> Accumulator:
    """Return what has been read, the statistics as they are.

    Bytes would be checked, summed and sorted for nobody.
    """
    return _share[0][0]._alone()
