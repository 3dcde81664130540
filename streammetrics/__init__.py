"""Exact, mergeable metrics for data that does not fit in memory, is spread out, or never ends.

    >>> import streammetrics as sm

A metric takes batches, merges with others of its kind, and can be read at any time:

    >>> auc = sm.ROCAUC()
    >>> _ = auc.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> auc.compute(), auc.exact
    (0.75, True)
    >>> other = sm.ROCAUC().update([1, 0], [0.9, 0.3])
    >>> sm.merge([auc, other]).compute()
    0.8888888888888888

Several metrics are fed together, each statistic once a batch:

    >>> suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()})
    >>> _ = suite.update({"y_true": [0, 1], "y_score": [0.25, 0.75]})
    >>> suite.compute()
    {'f1': 1.0, 'loss': 0.2876820724517809}

The state is a function of the multiset of rows: any batches, order, shards and merge tree give the
same `to_bytes()`, and the same value to the last bit. A value is exact, or `bounds()` certainly
holds the exact one.
"""

from importlib import import_module

from streammetrics import _command  # noqa: F401 - first: NumPy takes its time, and Ctrl-C may come
from streammetrics.core.registry import PUBLIC, VERSION, public

__version__ = VERSION
__all__ = list(PUBLIC)


def __getattr__(name: str) -> object:
    """Return a public name, whose module is imported now, or say which name is meant."""
    if name in PUBLIC:
        globals()[name] = value = public(name)
        return value
    if name == "live":  # `sm.live.Client`
        return import_module(f"{__name__}.live")
    hint = ""
    if not name.startswith("_"):
        from streammetrics.core.names import meant_metric  # noqa: PLC0415 - rarely used

        hint = meant_metric(name, __all__)
    raise AttributeError(f"module 'streammetrics' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """Return what is the user's: submodules are attributes too, but are imported by name."""
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__version__"])
