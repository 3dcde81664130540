"""CoNLL files: tagged text in columns, one token per line, an empty line after each sentence.

Columns are separated by whitespace, or by tabs if the first line contains one. Their names are
their numbers, starting at 1. A row is a sentence, and its values are lists. A line that begins with
# is a comment if it has the form ``# key = value`` or its number of columns differs.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import File, FilePiece
from streammetrics.readers.selection import needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.readers.selection import WantedColumn

_TOKENS = 1 << 16  # approximate tokens per batch; sentences are not split


@dataclass(frozen=True)
class ConllPiece(FilePiece):
    """A whole CoNLL file."""

    width: int  # number of columns
    separator: str | None

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Parse the file, some sentences at a time."""
        sentences: list[list[list[str]]] = []
        tokens = 0
        for sentence in self._sentences():
            sentences.append(sentence)
            tokens += len(sentence)
            if tokens >= _TOKENS:
                yield self._batch(sentences)
                sentences, tokens = [], 0
        yield self._batch(sentences)

    def _sentences(self) -> Iterator[list[list[str]]]:
        """Yield each sentence as a list of tokens, each a list of its fields."""
        sentence: list[list[str]] = []
        with self.source.open() as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                fields = _fields(line, self.separator)
                if line.startswith("#") and (len(fields) != self.width or fields[2:3] == ["="]):
                    continue
                if fields and len(fields) != self.width:
                    raise InvalidBatchError(
                        f"{self.source}, line {number}: expected {self.width} columns as before, "
                        f"found {len(fields)}"
                    )
                if fields:
                    sentence.append(fields)
                elif sentence:
                    yield sentence
                    sentence = []
        if sentence:
            yield sentence

    def _batch(self, sentences: list[list[list[str]]]) -> pa.RecordBatch:
        names = needed(self.columns)
        columns = [
            [[token[int(name) - 1] for token in sentence] for sentence in sentences]
            for name in names
        ]
        lists = [pa.array(column, pa.list_(pa.string())) for column in columns]
        return pa.RecordBatch.from_arrays(lists, names=names)


class Conll(File):
    """A CoNLL file."""

    def read_names(self) -> Sequence[str]:
        """Return the column numbers, from the first line that holds a token."""
        with self.source.peek() as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
            lines = (line for line in file if not line.isspace() and not line.startswith("#"))
            first = next(lines, None)
        if first is None:
            raise InvalidBatchError(
                f"{self.source}: is empty; a token and its tags a line are expected"
            )
        self.separator = "\t" if "\t" in first else None
        return [str(at + 1) for at in range(len(_fields(first, self.separator)))]

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece: text has to be read from its start."""
        return [ConllPiece(self.source, columns, None, len(self.names), self.separator)]


def _fields(line: str, separator: str | None) -> list[str]:
    return [] if line.isspace() else [field.strip() for field in line.split(separator)]
