"""Receipts: identification of a result, small enough for a paper or a pull request."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.kernels.active import kernels
from streammetrics.core.registry import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streammetrics.core.types import Json, Options

RECEIPT = 1  # version of the fields below
FIELDS = {
    "receipt": int,
    "sha256": str,
    "rows": int,
    "omitted": int,
    "configuration": dict,
    "streammetrics": str,
    "kernels": str,
}
KINDS = {int: "a whole number", str: "text", dict: "an object"}


def receipt_of(blob: bytes, configuration: Options, *, rows: int, omitted: int) -> Options:
    """Return the receipt of a state.

    Args:
        blob: The bytes of the state.
        configuration: Configuration of the metric or set; tuples become lists, as in JSON.
        rows: The number of rows seen.
        omitted: The number of omitted rows.
    """
    return {
        "receipt": RECEIPT,
        "sha256": hashlib.sha256(blob).hexdigest(),
        "rows": rows,
        "omitted": omitted,
        "configuration": json.loads(json.dumps(configuration)),
        "streammetrics": VERSION,
        "kernels": kernels(),
    }


def read_receipt(text: str | bytes) -> Options:
    """Parse a receipt from JSON.

    Raises:
        StreamMetricsError: The text is not a receipt, lacks a field or has an unknown one, or a
            later version wrote it.
    """
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_receipt(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _no_receipt("it is not an object")
    version = found.get("receipt")
    if type(version) is int and version > RECEIPT:
        raise StreamMetricsError(
            f"a later version wrote this receipt (version {version}, and {RECEIPT} is read here)"
        )
    if lacking := [name for name in FIELDS if name not in found]:
        raise _no_receipt(f"it lacks {', '.join(map(repr, lacking))}")
    for name, value in found.items():
        if name not in FIELDS:
            raise _no_receipt(f"it has an unknown field {name!a}")
        if type(value) is not FIELDS[name]:
            raise _no_receipt(f"{name!r} is not {KINDS[FIELDS[name]]}")
    return found


def _no_receipt(why: str) -> StreamMetricsError:
    return StreamMetricsError(f"this is not a receipt: {why}; `evaluate --receipt` writes one")


def differences(receipt: Mapping[str, object], state: Mapping[str, object]) -> Iterator[str]:
    """Yield the differences between a receipt and that of a state, in what the state determines."""
    yield from _differing(("rows", "omitted"), receipt, state)
    there, here = (json.dumps(each["configuration"], sort_keys=True) for each in (receipt, state))
    if there != here:
        yield f"configuration: {there} in the receipt"
        yield f"configuration: {here} here"
    yield from _differing(("sha256",), receipt, state)


def circumstances(receipt: Mapping[str, object], state: Mapping[str, object]) -> Iterator[str]:
    """Yield the differences in versions and kernels, which need not change a state."""
    yield from _differing(("streammetrics", "kernels"), receipt, state)


def _differing(
    names: Iterable[str], receipt: Mapping[str, object], state: Mapping[str, object]
) -> Iterator[str]:
    for name in names:
        if receipt[name] != state[name]:
            yield f"{name}: {_shown(receipt[name])} in the receipt, {_shown(state[name])} here"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else json.dumps(value)[1:-1]
