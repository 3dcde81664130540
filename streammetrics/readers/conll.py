"""Tagged text in columns: a token a line, an empty line after a sentence, as CoNLL's tasks had it.

Columns are separated by blanks, or by tabs where the first line has one, and are called by their
number, 1 for the first; a row is a sentence, whose values are lists. A line that begins with # is a
comment where it has not as many columns as others, or says ``# key = value``.
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

_TOKENS = 1 << 16  # at a time, and what belongs to the last sentence


@dataclass(frozen=True)
class ConllPiece(FilePiece):
    """A whole file of tagged text."""

    width: int  # how many columns it has
    separator: str | None

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - by lines
        """Parse some sentences at a time."""
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
        """Yield the columns of the tokens of each sentence."""
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
    """A file of tagged text."""

    def read_names(self) -> Sequence[str]:
        """Number the columns of the first line of a token."""
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
        """Text has to be read from the start."""
        return [ConllPiece(self.source, columns, None, len(self.names), self.separator)]


def _fields(line: str, separator: str | None) -> list[str]:
    return [] if line.isspace() else [field.strip() for field in line.split(separator)]
