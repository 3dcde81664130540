"""What the rows of a key agree on, as text: equal facts are equal text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.statistics.grouped.columns import from_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Json


def facts_text(facts: Mapping[str, object]) -> str:
    """Return facts as text."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def facts_of(text: object) -> Json:
    """Return the facts that a text tells."""
    return from_bytes(np.frombuffer(str(text).encode(), np.uint8))


def are_facts(facts: object) -> bool:
    """Whether what a text tells are facts: text, integers and booleans by name."""
    return isinstance(facts, dict) and all(
        type(value) in {str, int, bool} for value in facts.values()
    )
