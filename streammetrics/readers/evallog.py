"""Logs of Inspect (``.eval``): a row for each epoch of a sample, from the summaries of the log.

The columns are ``id``, ``epoch``, and the value of each scorer under its name, or ``scorer/key``
for a value that is a dictionary. As in Inspect, ``"C"`` (correct) is 1, ``"I"`` and ``"N"`` are 0,
and ``"P"`` (partial) is 0.5. A sample without a score, such as one that failed, has a null.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streammetrics.readers.files import File, FilePiece
from streammetrics.readers.selection import needed
from streammetrics.readers.sources import buffered, decompressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.readers.selection import WantedColumn
    from streammetrics.readers.sources import Source

_LETTERS = {"C": 1, "I": 0, "N": 0, "P": 0.5}
_JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")  # of a log that is not finished
_ZSTANDARD = 93  # how Inspect compresses; zipfile reads it from Python 3.14 on


@dataclass(frozen=True)
class EvalLogPiece(FilePiece):
    """A whole log."""

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the summaries of all samples."""
        rows, names = _rows(self.source), needed(self.columns)
        arrays = [pa.array([row.get(name) for row in rows]) for name in names]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


class EvalLog(File):
    """A log of Inspect."""

    def read_names(self) -> Sequence[str]:
        """Return ``id``, ``epoch`` and the names of the scores."""
        return list(dict.fromkeys(name for row in _rows(self.source) for name in row))

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece."""
        return [EvalLogPiece(self.source, columns, None)]


def _rows(source: Source) -> list[dict[str, Any]]:
    """Return the id, the epoch and the scores of every sample.

    Raises:
        ValueError: The file is not a log.
    """
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as log:
            names = log.namelist()
            parts = sorted(filter(None, map(_JOURNAL.fullmatch, names)), key=lambda m: int(m[1]))
            chosen = [n for n in names if n == "summaries.json"] or [part[0] for part in parts]
            every = [sample for name in chosen for sample in _content(stream, log, name)]
        return [_row(sample) for sample in every]
    except (zipfile.BadZipFile, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it has no summaries of samples ({error})") from error


def _content(stream: io.BufferedReader, log: zipfile.ZipFile, name: str) -> Any:
    """Return what a file of JSON in the archive holds."""
    info = log.getinfo(name)
    if info.compress_type != _ZSTANDARD:
        return json.loads(log.read(info))
    stream.seek(info.header_offset + 26)  # the lengths of the name and of the extra field
    lengths = stream.read(4)
    stream.seek(lengths[0] + (lengths[1] << 8) + lengths[2] + (lengths[3] << 8), io.SEEK_CUR)
    text = decompressed(buffered(io.BytesIO(stream.read(info.compress_size)))).read()
    if zlib.crc32(text) != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 of {name}")
    return json.loads(text)


def _row(sample: dict[str, Any]) -> dict[str, Any]:
    row = {"id": str(sample["id"]), "epoch": int(sample["epoch"])}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score["value"]
        several = value if isinstance(value, dict) else {"": value}
        for key, each in several.items():
            name = f"{scorer}/{key}" if key else scorer
            row[name] = _LETTERS.get(each, each) if isinstance(each, str) else each
    return row
