"""Atomic replacement of files, and locks held while a file is read, changed and written.

New contents are written to a temporary file in the same folder, flushed to disk, and renamed. The
name of the file therefore refers to either the old or the new contents, even if a process is
killed. A writer holds a lock on its temporary file; an unlocked one was left by a dead process and
is deleted. Locks use `flock`, which is not reliable on some network file systems.
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

if sys.platform != "win32":  # on Windows, leftovers stay and nothing is locked
    import fcntl

_NAMES = 1000  # most temporary files of one file, one for each live writer


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the contents of a file atomically, as `replacing` does.

    Pipes, terminals and other special files are written to directly.

    Raises:
        OSError: The file cannot be written; the old contents are unchanged.
    """
    path = os.fspath(path)
    if not os.path.basename(path):
        raise OSError(errno.EISDIR if path else errno.ENOENT, "the name of a file is needed", path)
    if is_special(path):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    with replacing(path) as (_, handle), open(handle, "wb", closefd=False) as file:
        file.write(data)


def is_special(path: str) -> bool:
    """Whether a path leads to something else than a regular file, such as a pipe or a folder."""
    mode = _mode(path)
    return mode is not None and not stat.S_ISREG(mode)


@contextmanager
def replacing(path: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the handle of a temporary file, which then replaces a regular file.

    Symbolic links are followed. Permissions are kept, as are the owner and group if the process may
    set them; a new file gets default permissions. After an error nothing is replaced.
    """
    mode, target = _mode(path), os.path.realpath(path)
    try:
        temporary, handle = _temporary(target, 0o666 if mode is None else mode & 0o777 | 0o600)
    except OSError as error:  # name the requested file, not the temporary one
        raise OSError(error.errno, error.strerror, path) from error
    try:
        yield temporary, handle
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
    """Hold an exclusive lock on a file across threads and processes of this machine.

    The lock is on a separate file in the same folder, because the file itself is replaced. The lock
    file is deleted on release.

    Raises:
        TimeoutError: Another thread or process has held the lock for `timeout` seconds.
        OSError: The folder does not exist, or the file system does not support locks.
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
    """Create, open and lock a temporary file beside `target`; delete those of dead processes.

    Its permissions never allow more than those of the file that it replaces.
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
    """Delete a temporary file if its writer is dead; return whether it was deleted."""
    if sys.platform == "win32":
        return False
    try:
        handle = _opened_locked(name, os.O_RDWR)
    except OSError:  # it does not exist, or belongs to another user
        return False
    if handle is None:
        return False
    os.unlink(name)
    os.close(handle)
    return True


def _opened_locked(name: str, flags: int, mode: int = 0o666) -> int | None:
    """Open and lock a file; return ``None`` if another process has locked or deleted it."""
    handle = os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    try:
        if _lock(handle) and os.path.samestat(os.fstat(handle), os.stat(name)):
            return handle
    except FileNotFoundError:  # the previous owner deleted it before it was locked
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
    """Return a hidden name in the folder of a file, unique to it and of bounded length."""
    folder, name = os.path.split(target)
    hashed = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    return os.path.join(folder, f".{name[:40]}.{hashed}.streammetrics.{kind}")


def _give(path: str, like: str) -> None:
    """Copy owner and group of `like` to a file, as far as permitted."""
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
    if sys.platform == "win32":  # Windows cannot open folders
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder can be writable but not readable
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
