"""Forged states: one that is not refused has to be a state in all that can be done with it."""

from __future__ import annotations

import copy
import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import streammetrics as sm
from fuzz.forging import joined, split

if TYPE_CHECKING:
    from fuzz.seedlings import Seedling

ODD = [
    None, True, False, 0, 1, -1, 2, 7, 1.0, 1.5, -0.5, 1e308, 2**31, 2**53 + 1, 2**63 - 1, 2**63,
    10**9, 10**12, 10**40, 10**400, "", "x", "integers", "strings", "booleans", "a" * 5000, [], {},
    [0], [[]], ["a", "b"], [1, 2, 3], {"a": 1}, {"float": "nan"}, {"float": "inf"}, {"float": 1},
]  # fmt: skip
EDGES = {
    "i": [0, 1, -1, 2, 3, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)],
    "u": [0, 1, 2, 127, 128, 255],
    "b": [0, 1],
    "f": [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan],
}
TYPES = {  # in the order in which they stand in a file
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4",
    "F16": "<f2", "U16": "<u2", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


def parts(blob: bytes) -> tuple[Any, dict[str, list[Any]]]:
    """Return what a file says, and the type, shape and bytes of each of its arrays."""
    header, body = split(blob)
    meta = json.loads(header.pop("__metadata__")["streammetrics"])
    return meta, {
        name: [told["dtype"], list(told["shape"]), body[slice(*told["data_offsets"])]]
        for name, told in header.items()
    }


def mutated(blob: bytes, rng: np.random.Generator) -> bytes:
    """Return a state after one to three changes, with a checksum that fits."""
    meta, arrays = parts(blob)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.4 or not arrays:
            meta = _changed(meta, rng)
        else:
            _spoil(arrays, rng)
    return written(meta, arrays, in_order=rng.random() < 0.95)


def _changed(meta: Any, rng: np.random.Generator) -> Any:
    """Return what a file says, with one thing in it replaced, repeated or left out."""
    meta = copy.deepcopy(meta)
    inside: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            inside.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(meta)
    inside = [(where, key) for where, key in inside if key != "checksum"]
    if not inside:  # earlier changes of the same state left nothing to change
        return meta
    where, key = inside[int(rng.integers(len(inside)))]
    action = rng.integers(4)
    if action == 0 and isinstance(where, list):
        where.insert(int(rng.integers(len(where) + 1)), copy.deepcopy(where[key]))
    elif action == 1:
        del where[key]
    elif action == 2 and type(where[key]) is int:
        where[key] += int(rng.integers(-3, 4))
    else:
        where[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    return meta


def _spoil(arrays: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """Change one array in place."""
    names = list(arrays)
    name = names[int(rng.integers(len(names)))]
    kind, shape, data = arrays[name]
    if kind == "U8" and rng.random() < 0.8 and _is_state(data):
        inner = mutated(data, rng)  # a state in a state
        arrays[name] = [kind, [len(inner)], inner]
        return
    values = np.frombuffer(data, TYPES[kind]).copy()
    action = int(rng.integers(8))
    if action == 0:
        del arrays[name]
    elif action == 1:
        arrays[names[int(rng.integers(len(names)))]] = list(arrays[name])
    elif action == 2:
        kind = list(TYPES)[int(rng.integers(len(TYPES)))]
        width = np.dtype(TYPES[kind]).itemsize
        if len(data) % width == 0:
            arrays[name] = [kind, [len(data) // width], data]
    elif action == 3:
        shape = [[values.size], [1, values.size], [values.size, 1], [0, 1 << 16]][rng.integers(4)]
        arrays[name] = [kind, shape, data if 0 not in shape else b""]
    elif action == 4:
        more = np.resize(values, max(0, values.size + int(rng.integers(-3, 4))))
        arrays[name] = [kind, [more.size] if len(shape) == 1 else shape, more.tobytes()]
    elif values.size:
        at = int(rng.integers(values.size))
        if action == 5:
            edges = EDGES[values.dtype.kind]
            with np.errstate(all="ignore"):
                values[at] = np.array(edges[int(rng.integers(len(edges)))]).astype(values.dtype)
        elif action == 6:
            values = rng.permutation(values)
        else:
            spoilt = values.view(np.uint8)
            spoilt[int(rng.integers(spoilt.size))] ^= np.uint8(1 << int(rng.integers(8)))
        arrays[name] = [kind, shape, values.tobytes()]


def _is_state(data: bytes) -> bool:
    try:
        sm.from_bytes(data)
    except sm.StateFormatError:
        return False
    return True


def written(meta: Any, arrays: dict[str, list[Any]], *, in_order: bool) -> bytes:
    """Return the state of arrays, each with its type, shape and bytes."""
    order = list(TYPES)
    names = sorted(arrays, key=lambda name: (order.index(arrays[name][0]), name))
    names = names if in_order else names[::-1]
    meta = {"format": 1, "checksum": "", **meta} if isinstance(meta, dict) else meta
    if isinstance(meta, dict):
        meta["checksum"] = "0" * 64
    header: dict[str, Any] = {
        "__metadata__": {"streammetrics": json.dumps(meta, separators=(",", ":"))}
    }
    end = 0
    for name in names:
        kind, shape, data = arrays[name]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    return joined(header, b"".join(arrays[name][2] for name in names))


def attempt(blob: bytes, seedling: Seedling) -> bool:
    """Try everything with a state that may be forged; return whether it was taken for one."""
    told = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            back = sm.from_bytes(blob)
        except sm.StateFormatError as error:
            told = str(error)
    assert len(told) < 2100, "an error of many words"
    if told:
        return False
    assert back.to_bytes() == blob, "other bytes come back"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _use(back, seedling)
    assert back.to_bytes() == blob, "using it has changed it"
    return True


def _use(back: Any, seedling: Seedling) -> None:
    for call in seedling.calls(back):
        try:
            call()
        except sm.StreamMetricsError:
            continue
        except ValueError as error:
            if "has no shards and no metric" not in str(error):
                raise
