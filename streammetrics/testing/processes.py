"""The state and the value of rows in a new process, where text has other hashes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from streammetrics.core.errors import StreamMetricsError
from streammetrics.testing.laws import BytesAndValue, fed, seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric

_CODE = "from streammetrics.testing.processes import answer; answer()"
_SECONDS = 120


def seen_elsewhere(metric: Metric, batches: Sequence[dict[str, Any]]) -> list[BytesAndValue]:
    """Return what a new process makes of each batch; nothing if it cannot import the metric.

    It cannot import what a script, a notebook or a function defines.
    """
    if type(metric).__module__ == "__main__":
        return []
    own = os.environ.get("PYTHONHASHSEED")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONHASHSEED": "2" if own == "1" else "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CODE],
        input=pickle.dumps((metric.copy(), batches)),
        capture_output=True,
        env=environment,
        timeout=_SECONDS,
        check=False,
    )
    return pickle.loads(done.stdout) if done.returncode == 0 else []


def answer() -> None:
    """Answer `seen_elsewhere`: read a metric and batches, write what each makes."""
    metric, batches = pickle.load(sys.stdin.buffer)
    pickle.dump([seen_or_refused(metric, batch) for batch in batches], sys.stdout.buffer)


def seen_or_refused(metric: Metric, batch: dict[str, Any]) -> BytesAndValue:
    """Return what a batch makes of a metric: its bytes and value, or an error's text."""
    try:
        return seen(fed(metric, [batch]))
    except StreamMetricsError as error:
        return BytesAndValue(b"", str(error))
