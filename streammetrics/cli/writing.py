"""Files written whole or not at all."""

from __future__ import annotations

import os

from streammetrics.cli.errors import CommandError


def check_writable(path: str) -> None:
    """Raise before the work is done where its result could not be written after it."""
    folder = os.path.dirname(path) or "."
    if _is_stream(path):
        return
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: cannot be written, there is no folder {folder!r}")
    if os.path.isdir(path):
        raise CommandError(f"{path}: cannot be written, it is a folder")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: cannot be written, {folder!r} is read-only")


def write(path: str, data: bytes) -> None:
    """Write a file so that at any moment it is the old one or the new one."""
    if _is_stream(path):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
