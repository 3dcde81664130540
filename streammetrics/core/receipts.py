"""Receipts: identification of a result, small enough for a paper or a pull request."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.kernels.active import kernels
from streammetrics.core.registry import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streammetrics.core.types import Json, Options

RECEIPT = 1  # version of the fields below


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
        StreamMetricsError: The text is not a receipt, or a later version wrote it.
    """
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StreamMetricsError(f"this is not a receipt: it is not JSON: {error}") from error
    version = found.get("receipt") if isinstance(found, dict) else None
    if not isinstance(found, dict) or type(version) is not int or "sha256" not in found:
        raise StreamMetricsError("this is not a receipt: it has no 'receipt' and 'sha256'")
    if version > RECEIPT:
        raise StreamMetricsError(
            f"a later version wrote this receipt (version {version}, and {RECEIPT} is read here)"
        )
    return found


def differences(receipt: Mapping[str, object], state: Mapping[str, object]) -> Iterator[str]:
    """Yield the differences between a receipt and that of a state; nothing if the hashes agree.

    Kernels are ignored, because all of them give the same bytes. A different version of
    streammetrics is only reported together with other differences, which it may have caused.
    """
    if receipt["sha256"] == state["sha256"]:
        return
    for name in ("rows", "omitted"):
        if receipt.get(name) != state[name]:
            yield f"{name}: {_shown(receipt.get(name))} in the receipt, {_shown(state[name])} here"
    if receipt.get("configuration") != state["configuration"]:
        yield f"configuration: {json.dumps(receipt.get('configuration'))} in the receipt"
        yield f"configuration: {json.dumps(state['configuration'])} here"
    yield f"sha256: {receipt['sha256']} in the receipt, {state['sha256']} here"
    if receipt.get("streammetrics") != state["streammetrics"]:
        there, here = receipt.get("streammetrics"), state["streammetrics"]
        yield f"streammetrics: {there} wrote the receipt, this is {here}"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
