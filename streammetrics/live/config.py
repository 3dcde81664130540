"""The parameters of a `Live`: part of its bytes, and compared before a merge."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.live.events import DAY, QUARTER, Tier, duration, shown_duration, tiers_of
from streammetrics.live.validation import Declared

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Arrays, Document

LONGEST = 10_000 * DAY  # twice this after the latest time still fits int64
DEDUPE = "1h"  # the default, which states do not mention
_SCALARS = (int, float, str, bool)


@dataclass(frozen=True)
class Config:
    """The parameters that the state depends on, with durations in nanoseconds."""

    tiers: tuple[Tier, ...]
    label_ttl: int
    label_lateness: int
    default_label: int | float | str | bool | None
    max_pending: int
    keep_rows: int
    dedupe: int
    declared: Declared  # types of the columns; compared by description

    @classmethod
    def of(
        cls,
        tiers: Sequence[Sequence[object]],
        label_ttl: str | timedelta,
        label_lateness: str | timedelta,
        default_label: object,
        max_pending: int,
        keep_rows: int,
        declared: Declared,
        dedupe: str | timedelta = DEDUPE,
    ) -> Config:
        """Validate the user's parameters and return them."""
        if isinstance(default_label, np.generic):
            default_label = default_label.item()
        if default_label is not None and not isinstance(default_label, _SCALARS):
            raise ValueError(f"default_label={default_label!r} is not a label")
        ttl, lateness = duration(label_ttl, "label_ttl"), duration(label_lateness, "label_lateness")
        copies = duration(dedupe, "dedupe")
        parts = tiers_of(tiers)
        panes = (("the length of a pane", tier.length) for tier in parts)
        waits = (("label_ttl", ttl), ("label_lateness", lateness), ("dedupe", copies))
        for name, length in (*waits, *panes):
            if length > LONGEST:
                said, most = shown_duration(length), shown_duration(LONGEST)
                raise ValueError(f"{name} is {said}: at most {most}")
        return cls(
            parts,
            ttl,
            lateness,
            default_label,
            _count(max_pending, "max_pending", 1),
            _count(keep_rows, "keep_rows", 0),
            copies,
            declared,
        )

    @property
    def horizon(self) -> int:
        """How long a row waits for its label and for corrections, in nanoseconds."""
        return self.label_ttl + self.label_lateness

    @property
    def of_observations(self) -> Config:
        """The parameters by which observations with ids wait: for `dedupe`, without labels."""
        return replace(self, label_ttl=self.dedupe, label_lateness=0, default_label=None)

    @property
    def with_all_panes(self) -> Config:
        """These parameters, without the panes that expired early."""
        return replace(self, tiers=tuple([replace(tier, floor=0) for tier in self.tiers]))

    @property
    def unit(self) -> int:
        """The length of the panes of waiting rows, which divides the panes of every tier.

        Since 1972, midnight in every time zone has been a whole quarter of an hour.
        """
        tier = self.tiers[0]
        zoned = any(tier.zone for tier in self.tiers)
        return math.gcd(tier.length, QUARTER) if zoned else tier.length

    def described(self) -> Document:
        """Return the parameters as JSON values for a file."""
        tiers = [[tier.length, tier.count, tier.zone] for tier in self.tiers]
        return {**self._parameters(), "tiers": tiers}

    def _parameters(self) -> Document:
        """Return the parameters by name, including those of the declaration."""
        mine = {name: getattr(self, name) for name in _own()}
        if self.dedupe == duration(DEDUPE, "dedupe"):
            del mine["dedupe"]
        return mine | self.declared.described()

    @classmethod
    def read(cls, told: object, suite: Mergeable, references: Arrays) -> Config:
        """Return the parameters stored in a file, validated together with its metrics."""
        names = [*_own(), "labels", "types", "target_range"]
        if isinstance(told, dict) and "dedupe" not in told:
            names.remove("dedupe")
        if isinstance(told, dict) and told.get("proxy") is not None:
            names.append("proxy")
        if isinstance(told, dict) and told.get("inputs"):
            names.append("inputs")
        if not isinstance(told, dict) or list(told) != names or not _is_tiers(told["tiers"]):
            raise StateFormatError("the state does not say how it keeps time")
        durations = [name for name in ("label_ttl", "label_lateness", "dedupe") if name in told]
        times = {name: _shown(told[name]) for name in durations}
        tiers = [
            (_shown(length), _shown(length * count), *([zone] if zone else []))
            for length, count, zone in told["tiers"]
        ]
        declared = Declared.read(suite, told, references)
        try:
            mine = {name: told[name] for name in _own() if name in told}
            return cls.of(**{**mine, **times, "tiers": tiers, "declared": declared})
        except (TypeError, ValueError) as error:
            raise StateFormatError(f"the state has unknown parameters: {error}") from error

    def differing(self, other: Config) -> str:
        """Return the differences to another configuration, for a message."""
        here, there = _flat(self._parameters()), _flat(other._parameters())
        return "; ".join(
            f"{name} is {_said(there.get(name))} there and {_said(here.get(name))} here"
            for name in here | there
            if here.get(name) != there.get(name)
        )


def _own() -> list[str]:
    """Return the names of all parameters except `declared`."""
    return [field.name for field in fields(Config) if field.name != "declared"]


def _flat(parameters: Document) -> Document:
    """Return the parameters with one entry per column type and per input."""
    types = {f"the type of {name}": what for name, what in parameters["types"].items()}
    inputs = {f"the input {name}": what for name, what in parameters.get("inputs", {}).items()}
    rest = {n: value for n, value in parameters.items() if n not in {"types", "inputs"}}
    return rest | types | inputs


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(tier.shown for tier in value)
    return shown_duration(value) if type(value) is int and value >= 10**9 else repr(value)


def _shown(nanoseconds: object) -> str:
    return shown_duration(nanoseconds) if type(nanoseconds) is int and nanoseconds > 0 else ""


def _is_tiers(told: object) -> bool:
    return isinstance(told, tuple) and all(
        isinstance(tier, tuple)
        and len(tier) == 3
        and all(type(n) is int and 0 < n < 1 << 64 for n in tier[:2])
        and isinstance(tier[2], str)
        for tier in told
    )


def _count(value: object, name: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not an integer")
    if value < least:
        raise ValueError(f"{name}={value} is less than {least}")
    return value
