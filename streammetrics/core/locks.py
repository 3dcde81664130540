"""Locks for what threads share, which are free again in a forked process."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An owner of a lock.

    The lock is reentrant: a signal's handler, a finalizer or a user's array may come back to the
    object in the thread that holds it, and a plain lock would then wait for itself. A process
    that is forked while another thread holds the lock would wait for a thread that it does not
    have, so there the lock is a new one.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _OWNERS.add(self)


_OWNERS: weakref.WeakSet[Locked] = weakref.WeakSet()


def _unlock() -> None:
    for owner in list(_OWNERS):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, where no process is forked
    os.register_at_fork(after_in_child=_unlock)
