"""A worker that shares a store and is scraped: python worker.py STORE PORT FIRST N."""

from __future__ import annotations

import sys
import time

import numpy as np
from prometheus_client import CollectorRegistry, start_http_server

import streammetrics as sm
from streammetrics.live.exporting.prometheus import LiveCollector


def opened(store):
    suite = sm.MetricSet({"auc": sm.ROCAUC(max_bins=1024), "loss": sm.LogLoss()})
    return sm.Live(suite, tiers=[("1min", "3h")], store=store)


def main(store, port, first, n):
    live = opened(store)
    rng = np.random.default_rng(first)
    times = first + np.arange(n) / 4
    live.observe(time=times, y_true=rng.integers(0, 2, n), y_score=rng.random(n))
    live.flush()
    registry = CollectorRegistry()
    registry.register(LiveCollector(live, window="1h", rules=[sm.Below("auc", 0.9)]))
    start_http_server(port, "127.0.0.1", registry)
    print("ready", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
