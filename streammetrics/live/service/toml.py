"""TOML read table by table; errors name the file, line and key."""

from __future__ import annotations

import os
import re
import tomllib
from typing import TYPE_CHECKING, NoReturn

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.events import SECOND, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streammetrics.core.types import Document, Json

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")
_WORDS = {
    str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list in brackets", dict: "a table",
}  # fmt: skip

_UNREAD = "http://unread"  # a valid address, token and key

Path = tuple[str | int, ...]


class ConfigError(StreamMetricsError, ValueError):
    """An invalid configuration; a line of the message names file, line and key of each mistake."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class Section:
    """A table of a file; every key has to be taken, and keys that remain are errors."""

    def __init__(
        self,
        file: str,
        lines: Mapping[Path, int],
        values: Mapping[str, Json],
        path: Path = (),
        *,
        secrets: bool = True,
    ) -> None:
        self.file, self.path, self._secrets = file, path, secrets
        self._lines, self._values = lines, dict(values)
        self._known: list[str] = []

    def take(self, key: str, kind: type, default: object = None) -> Json:
        """Return the value of a key after checking its type, or the default if it is missing."""
        self._known.append(key)
        value = self._values.pop(key, None)
        if value is None:
            return default
        allowed = (int, float) if kind is float else kind
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind in {int, float}):
            self.fail(key, f"{_shown(value)} is not {_WORDS[kind]}")
        return value

    def table(self, key: str) -> Section:
        """Return a subtable; it is empty if missing."""
        values = self.take(key, dict, {})
        return self._inside(values, key)

    def named_tables(self, key: str) -> dict[str, Section]:
        """Return the tables of a table, by their names, which are arbitrary."""
        table = self.table(key)
        return {name: table.table(name) for name in list(table._values)}

    def tables(self, key: str) -> list[Section]:
        """Return the tables of an array of tables."""
        found = self.take(key, list, [])
        if not all(isinstance(values, dict) for values in found):
            self.fail(key, f"expected tables: write [[{key}]] on a line, and its keys below")
        return [self._inside(values, key, place) for place, values in enumerate(found)]

    def _inside(self, values: Mapping[str, Json], *keys: str | int) -> Section:
        path = (*self.path, *keys)
        return Section(self.file, self._lines, values, path, secrets=self._secrets)

    def seconds(self, key: str, default: str) -> float:
        """Return a duration in seconds."""
        text: str = self.take(key, str, default)
        try:
            return duration(text, key) / SECOND
        except ValueError:
            self.fail(key, f'{text!r} is not a duration: write "30s"')

    def size(self, key: str, default: int) -> int:
        """Return a number of bytes."""
        text = self.take(key, str)
        if text is None:
            return default
        try:
            return size(text)
        except ValueError as error:
            self.fail(key, str(error))

    def beside(self, path: str) -> str:
        """Return the path of a file whose relative name starts at the folder of this file."""
        return os.path.join(os.path.dirname(self.file), path)

    def output(self, key: str, default: str | None = None) -> Json:
        """Return the path of a file to write, whose folder has to exist, if there is one."""
        name = self.take(key, str, default)
        if name is None:
            return None
        path = self.beside(name)
        if not name or os.path.isdir(path):
            self.fail(key, f"{name!r} is not a file: name one, or leave the line out")
        if not os.path.isdir(folder := os.path.dirname(path) or "."):
            self.fail(key, f"there is no folder {folder!r}")
        return path

    def secret(self, key: str) -> str:
        """Return a secret from the environment or a file; it is empty if neither is named.

        If secrets are not read, a named one is replaced by a text that is a valid one.
        """
        variable, path = self.take(f"{key}_env", str), self.take(f"{key}_file", str)
        named = f"{key}_env" if path is None else f"{key}_file"
        found = ""
        if variable is not None and path is not None:
            self.fail(named, f"write either {key}_env or {key}_file")
        if not self._secrets:
            return "" if variable is None and path is None else _UNREAD
        if variable is not None:
            found = os.environ.get(variable, "")
            if not found:
                self.fail(named, f"the environment has no {variable}, or an empty one: export it")
        elif path is not None:
            try:
                with open(self.beside(path), encoding="utf-8") as file:
                    found = file.read().strip()
            except (OSError, ValueError) as error:
                self.fail(named, f"cannot read {path!r}: {error}")
            if not found:
                self.fail(named, f"{path!r} is empty")
        if not found.isascii() or not found.isprintable() or " " in found:
            self.fail(named, "its text has characters that no header or address can have")
        return found

    def rest(self) -> Document:
        """Return all remaining keys, whose names are arbitrary."""
        values, self._values = self._values, {}
        return values

    def end(self) -> None:
        """Raise if there is an unknown key."""
        for key in self._values:
            self.fail(key, f"no such key{near(key, sorted(self._known))}")

    def fail(self, key: str, why: str) -> NoReturn:
        """Raise with the line of a key, or of its table if the key is missing."""
        path = (*self.path, key) if key else self.path
        shown = ".".join(map(str, path))
        line = next(
            (self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 0
        )
        where = f"line {line}, " if line else ""
        raise ConfigError(f"{self.file}: {where}{shown or 'the file'}: {why}")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def read(path: str, *, secrets: bool = True) -> Section:
    """Read a file; with `secrets`, also those that it names.

    Raises:
        ConfigError: The file cannot be read, or is not valid TOML.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; streammetrics live init writes one") from None
    name = os.fspath(path)
    try:
        text = data.decode()
        return Section(name, dict(_lines(text)), tomllib.loads(text), secrets=secrets)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}: line {line}: is not UTF-8, as TOML must be") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: is not valid TOML: {error}") from None
    except (ValueError, RecursionError):  # Python's limits, whose advice is not for its author
        raise ConfigError(f"{name}: has an integer that is too long, or is too deep") from None


def _lines(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the paths of tables and keys with their line numbers, for messages."""
    table: Path = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.fullmatch(line):
            brackets, name = found.groups()
            table = _path(name)
            if brackets == "[[":
                table = (*table, counts.setdefault(name, 0))
                counts[name] += 1
            yield table, number
        elif found := _KEY.match(line):
            yield (*table, *_path(found[1])), number


def _path(name: str) -> Path:
    if name[:1] in {"'", '"'}:
        return (name.strip("'\""),)
    return tuple(part.strip().strip("'\"") for part in name.split("."))
