"""Metrics over time: panes, windows, late labels, a persistent state, and a service's client."""

from streammetrics.live.client import Client, ClientError

__all__ = ["Client", "ClientError"]
