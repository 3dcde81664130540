"""Locks of objects that threads share; a forked process gets new ones."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An owner of a lock.

    The lock is reentrant because a signal handler, a finalizer or a user's array may re-enter the
    object in the thread that holds it, where a plain lock would deadlock. A forked process replaces
    the lock: the thread that held it does not exist there, and would never release it.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _OWNERS.add(self)


_OWNERS: weakref.WeakSet[Locked] = weakref.WeakSet()


def _unlock() -> None:
    for owner in list(_OWNERS):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unlock)
