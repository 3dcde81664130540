"""A service that watches itself: threads predict, labels come later, each second somebody looks.

    python examples/live_service.py [SECONDS]

The model is good for most requests and bad for those of one new client, whose labels come late: the
value over what is labelled, and what the missing labels could still make of it, tell both.
"""

from __future__ import annotations

import queue
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import streammetrics as sm

THREADS = 3


def serve(live: sm.Live, labels: queue.Queue[tuple[float, str, int]], until: float) -> None:
    """Answer requests: each is a prediction, whose label is known a moment later."""
    dice = random.Random()
    while time.time() < until:
        name, new = f"{dice.getrandbits(64):x}", dice.random() < 0.1
        score = dice.random()
        truth = dice.random() < (0.5 if new else score)
        live.predict(id=name, time=time.time(), y_score=score)
        labels.put((time.time() + dice.random() * (3 if new else 1), name, int(truth)))
        time.sleep(0.002)


def answer(live: sm.Live, labels: queue.Queue[tuple[float, str, int]], until: float) -> None:
    """Bring labels when they are known."""
    while time.time() < until:
        try:
            when, name, truth = labels.get(timeout=0.1)
        except queue.Empty:
            continue
        time.sleep(max(when - time.time(), 0) / 20)  # others wait meanwhile, too
        live.label(id=name, time=time.time(), y_true=truth)


def main(seconds: float) -> None:
    path = Path(tempfile.mkdtemp()) / "live.db"
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "accuracy": sm.Accuracy(threshold=0.5)})
    until = time.time() + seconds
    labels: queue.Queue[tuple[float, str, int]] = queue.Queue()
    with sm.Live(suite, store=path, label_ttl="1h", label_lateness="1h") as live:
        threads = [
            threading.Thread(target=work, args=(live, labels, until))
            for work in [serve] * THREADS + [answer]
        ]
        for thread in threads:
            thread.start()
        while time.time() < until:
            time.sleep(min(1.0, seconds / 3))
            found, hour = live.coverage("1h"), live.window("1h")
            if hour.n_rows > 20:  # else there may be one class alone
                low, high = live.possible("1h")["auc"]
                print(
                    f"{found.predicted:6,} predicted, {found.coverage:4.0%} labelled, "
                    f"AUC {hour.compute()['auc']:.3f}, and certainly in [{low:.3f}, {high:.3f}]"
                )
        for thread in threads:
            thread.join()
    with sm.Live(suite, store=path, label_ttl="1h", label_lateness="1h") as restarted:
        print(f"after a restart: {restarted.coverage('1h').predicted:,} predicted")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 10.0)
