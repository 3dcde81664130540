"""Receipts: what identifies a result, small enough for a paper or a pull request."""

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
        configuration: What the state is of; tuples in it become lists, as in JSON.
        rows: The number of rows seen.
        omitted: The number of rows left out.
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
    """Return a receipt that was written as JSON.

    Raises:
        StreamMetricsError: It is not one, or a later version wrote it.
    """
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StreamMetricsError(f"this is no receipt: it is not JSON: {error}") from error
    version = found.get("receipt") if isinstance(found, dict) else None
    if not isinstance(found, dict) or type(version) is not int or "sha256" not in found:
        raise StreamMetricsError("this is no receipt: it has no 'receipt' and 'sha256'")
    if version > RECEIPT:
        raise StreamMetricsError(
            f"a later version wrote this receipt (version {version}, and {RECEIPT} is read here)"
        )
    return found


def differences(receipt: Mapping[str, object], state: Mapping[str, object]) -> Iterator[str]:
    """Yield how the receipt of a state differs from a given one; nothing where they agree.

    The kernels do not count, as all give the same bytes. Another version of streammetrics is told
    only beside another difference, as it may be the cause.
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
