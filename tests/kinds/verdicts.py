"""Which forged states are taken: of every array of every kind of state, one change at a time.

    python tests/kinds/verdicts.py

writes them anew to `verdicts.json`, where a change of what is refused is meant: look at its lines.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)] if __name__ == "__main__" else []

from fuzz.seedlings import Seedling, seedlings  # noqa: E402 - found by the lines above
from fuzz.states import TYPES, parts, written  # noqa: E402

import streammetrics as sm  # noqa: E402

WRITTEN = Path(__file__).with_suffix(".json")
TAKEN, REFUSED = "+-"
BITS = (1, 8, 21, 31, 42, 53, 62)
BETWEEN = 6  # entries that are looked at between the first and the last
MOST = 2  # arrays of one name: of every group, of every model


def compared():
    """Return what the seeds of the fuzzer do not have: models compared by labels and by groups."""
    rng = np.random.default_rng(3)
    rows = {name: rng.integers(0, 5, 24) for name in ("y_true", "a", "b")}
    metrics = {"accuracy": sm.Accuracy(), "kappa": sm.CohenKappa()}
    plain = sm.Comparison(metrics, {"a": "a", "b": "b"})
    named = {name: np.array(list("vwxyz"))[column] for name, column in rows.items()}
    fed = [(plain, rows), (plain, {**named, "sample_weight": rng.random(24)})]
    return [Seedling(empty, rows, empty.copy().update(**rows)) for empty, rows in fed]


@cache
def kinds():
    """Return one of every kind of state that is read at once, by name: arrays tell kinds apart."""
    found = {}
    for seedling in [*seedlings(), *compared()]:
        if isinstance(seedling.empty, sm.Live | sm.Ledger):
            continue
        _, arrays = parts(seedling.blobs[1])
        read = seedling.empty.statistics() if isinstance(seedling.empty, sm.Metric) else ()
        key = (type(seedling.empty) if not read else None, *map(type, read))
        key = (*key, *((name, told[0], len(told[1])) for name, told in sorted(arrays.items())))
        found.setdefault(key, seedling)
    named = {}
    for seedling in found.values():
        name = repr(seedling.empty).partition(" <")[0].partition("\n")[0]
        same = sum(each.partition("#")[0] == name for each in named)
        named[f"{name}#{same}" if same else name] = seedling
    return named


def _entries(values):
    """Yield an array with one entry changed."""
    n = values.size
    for place in sorted({0, n - 1}) if n else ():
        old = values.reshape(-1)[place]
        if values.dtype.kind == "f":
            others = [np.nextafter(old, np.inf), -old, 0.0, -0.0, np.nan, np.inf, old + 1, old / 2]
        elif values.dtype.kind == "i":
            top = 8 * values.dtype.itemsize - 1
            flips = [int(old) ^ 1 << bit for bit in BITS if bit < top]
            limits = np.iinfo(values.dtype)
            one = [min(int(old) + 1, limits.max), max(int(old) - 1, limits.min)]
            others = [*one, 0, -1, *flips]
        else:
            others = [int(old) ^ 1, int(old) ^ 32]
        for other in others:
            yield _with(values, place, other)
    if values.dtype.kind == "i":
        for place in range(1, n - 1, max(1, n // BETWEEN)):
            yield from (_with(values, place, other) for other in (0, -1))


def _with(values, place, other):
    changed = values.copy()
    changed.reshape(-1)[place] = other
    return changed


def _forms(values):
    """Yield an array with entries more, fewer, in other order and in another shape."""
    yield from (
        values.reshape(-1),
        values.reshape(-1, 1),
        values[..., None],
        values.reshape(-1)[:0],
    )
    if values.ndim:
        yield from (values[:-1], values[1:], np.concatenate([values, values[-1:]]), values[::-1])
    if values.ndim > 1:
        yield from (values[:, :-1], np.concatenate([values, values[:, -1:]], axis=1))
        yield np.concatenate([values, 0 * values[:, -1:]], axis=1)


def verdicts(seedling):
    """Return of each array, by name, what became of each change of it."""
    meta, arrays = parts(seedling.blobs[1])
    seen, found = dict[str, int](), {}
    for name, (kind, shape, data) in arrays.items():
        last = name.rpartition("/")[2]
        seen[last] = seen.get(last, 0) + 1
        if seen[last] > MOST:
            continue
        values = np.frombuffer(data, TYPES[kind]).reshape(shape)
        told = ""
        for changes in (_entries, _forms):
            for changed in changes(values):
                forged = [kind, list(changed.shape), changed.tobytes()]
                told += _verdict(written(meta, {**arrays, name: forged}, in_order=True))
            told += " "
        found[name] = told.rstrip()
    return found


def _verdict(blob):
    try:
        sm.from_bytes(blob)
    except sm.StateFormatError:
        return REFUSED
    return TAKEN


def main():
    """Write the verdicts."""
    told = {name: verdicts(seedling) for name, seedling in kinds().items()}
    WRITTEN.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
