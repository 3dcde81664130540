"""How a report of a state is written: importing this registers it, and loads nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.reports import reported
from streammetrics.core.state.files import write_whole
from streammetrics.live.live import Live

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from streammetrics.live.alerts.rule import Rule


@reported.register(Metric)
@reported.register(MetricSet)
@reported.register(Live)
def write_report(
    state: Metric | MetricSet | Live,
    path: str | os.PathLike[str],
    *,
    title: str,
    confidence: float,
    rules: Sequence[Rule] = (),
) -> None:
    """Write the report of one state; the file is replaced in one step."""
    from streammetrics.show.pages.page import as_page  # noqa: PLC0415 - as few ask for it
    from streammetrics.show.pages.subjects import findings  # noqa: PLC0415 - as few ask for it

    found = findings({"model": state}, {"model": {}}, confidence=confidence, rules={"model": rules})
    write_whole(path, as_page(found, title).encode(errors="backslashreplace"))
