"""Files written whole or not at all, and locked while they are read, changed and written.

A file is written under another name beside it and renamed when it is on the disk, so that at any
moment its name is of the old file or of the new one, whoever is killed and when. The other name is
locked while its writer lives: what is there and not locked was left by one that died, and goes.
Locks are those of `flock`, which network file systems do not promise to keep.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "win32":  # where leftovers stay, and nothing is locked
    import fcntl

_NAMES = 1000  # of temporary files of one file, each a writer that lives


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file in one step, through links; its permissions stay, new ones are as usual.

    So do its owner and group where the process may set them. What is no file, as a pipe or a
    terminal, is just written to.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    path = os.fspath(path)
    if not os.path.basename(path):
        raise OSError(errno.EISDIR if path else errno.ENOENT, "the name of a file is needed", path)
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    target = os.path.realpath(path)
    try:
        temporary, handle = _temporary(target, 0o666 if mode is None else mode & 0o777 | 0o600)
    except OSError as error:  # of the file that was asked for, not of the one beside it
        raise OSError(error.errno, error.strerror, path) from error
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        if mode is not None:
            _give(temporary, target)
            os.chmod(temporary, stat.S_IMODE(mode))
        os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(handle)
    _sync_folder(os.path.dirname(target))


@contextmanager
def locked(path: str | os.PathLike[str], timeout: float = 60.0) -> Iterator[None]:
    """Keep all others out who lock the same file, in this process or another on this machine.

    The lock is a file of its own beside it, as the file itself is replaced, and it goes with the
    last one that waits.

    Raises:
        TimeoutError: Somebody else has held it for `timeout` seconds.
        OSError: There is no folder to lock in, or the system has no locks.
    """
    lock = _beside(os.path.realpath(path), "lock")
    end = time.monotonic() + timeout
    while (handle := _opened_locked(lock, os.O_RDWR | os.O_CREAT)) is None:
        if time.monotonic() > end:
            raise TimeoutError(
                errno.ETIMEDOUT, f"locked by another process for {timeout:g} s", os.fspath(path)
            )
        time.sleep(0.01)
    try:
        yield
    finally:
        os.unlink(lock)
        os.close(handle)


def _temporary(target: str, mode: int) -> tuple[str, int]:
    """Return a new file beside another, which is open and locked; take away what dead ones left.

    From the first moment on nobody can open it who could not open the file that it replaces.
    """
    found = None
    for number in range(_NAMES):
        name = _beside(target, f"{number}.tmp")
        if found is None:
            found = _created(name, mode)
        elif not _removed(name):
            return found
    if found is None:
        raise FileExistsError(errno.EEXIST, "too many processes write this file", target)
    return found


def _created(name: str, mode: int) -> tuple[str, int] | None:
    for _ in range(10):
        with suppress(FileExistsError):
            handle = _opened_locked(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            if handle is not None:
                return name, handle
        if not _removed(name):
            return None
    return None


def _removed(name: str) -> bool:
    """Take away a temporary file whose writer is dead; return whether it was there and is not."""
    if sys.platform == "win32":
        return False
    try:
        handle = _opened_locked(name, os.O_RDWR)
    except OSError:  # it is not there, or not ours
        return False
    if handle is None:
        return False
    os.unlink(name)
    os.close(handle)
    return True


def _opened_locked(name: str, flags: int, mode: int = 0o666) -> int | None:
    """Return a file, open and locked, or None where somebody else has it or took it away."""
    handle = os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    try:
        if _lock(handle) and os.path.samestat(os.fstat(handle), os.stat(name)):
            return handle
    except FileNotFoundError:  # whoever had it took it away before this one was locked
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _lock(handle: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _beside(target: str, kind: str) -> str:
    """Return a hidden name in the folder of a file, of bounded length and its own."""
    folder, name = os.path.split(target)
    hashed = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    return os.path.join(folder, f".{name[:40]}.{hashed}.streammetrics.{kind}")


def _give(path: str, like: str) -> None:
    """Give a file the owner and the group of another, as far as the process may."""
    if sys.platform == "win32":
        return
    told = os.stat(like)
    for owner, group in ((-1, told.st_gid), (told.st_uid, -1)):
        with suppress(PermissionError):
            os.chown(path, owner, group)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    if sys.platform == "win32":  # which does not open folders
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may write into a folder and not read it
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
