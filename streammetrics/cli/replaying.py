"""What `live replay` does around a history: progress, the series, and where it is written."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streammetrics.cli.errors import CommandError
from streammetrics.cli.outcome import Outcome, say
from streammetrics.cli.outputs import Output, check_outputs, write
from streammetrics.cli.running import NO_ROWS, progress_of
from streammetrics.core.results.table import csv_text
from streammetrics.live.service.history import history, series_rows
from streammetrics.show.grids import Grid
from streammetrics.show.report import number
from streammetrics.show.terminal import drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

    Series = dict[str, Array]

OUT = "--series-out"
_HEAD = b"time,n_rows,coverage"
_SHOWN = 48  # lines of a series that are printed


def replayed(
    found: Settings,
    predictions: Sequence[str],
    labels: Sequence[str],
    fmt: str | None,
    out: str | None,
    *,
    force: bool,
) -> Outcome:
    """Feed files to the live state of a configuration, and return its series as text."""
    outputs = [] if out is None else [Output(OUT, out, is_series)]
    if out is not None and not outputs[0].is_stdout and _form(out) not in {".csv", ".parquet"}:
        raise CommandError(f"{OUT} {out}: expected a file that ends in .csv or .parquet, or -")
    events = history(found, predictions, labels, fmt)
    store = found.options["store"]
    check_outputs(outputs, [*events.sources, *([store] if store else [])], force=force)
    for note in events.notes:
        say(f"note: {note}")
    with found.live() as live:
        with progress_of(events.n_events, "replay") as progress:
            events.feed(live, progress)
        series = live.series(found.view.window, every=found.view.every)
        told = [_counted(live, found), *_alerts(live, found)]
    if out is None:
        text = drawn([_grid(series, found), *told])
    elif outputs[0].is_stdout:
        text = _csv(series)
    else:
        write(out, _csv(series) if _form(out) == ".csv" else _parquet(series))
        text = drawn(told)
    if not events.n_events:
        return Outcome(text, NO_ROWS, "no rows: nothing was measured")
    return Outcome(text)


def _form(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def is_series(path: str) -> bool:
    """Whether a file is a series that was written before."""
    with open(path, "rb") as file:
        if file.read(len(_HEAD)) == _HEAD:
            return True
    try:
        return pq.read_schema(path).names[:3] == ["time", "n_rows", "coverage"]
    except (OSError, pa.ArrowException):
        return False


def _csv(series: Series) -> str:
    return csv_text(series_rows(series))


def _parquet(series: Series) -> bytes:
    sink = io.BytesIO()
    columns: dict[str, Any] = {name: pa.array(column) for name, column in series.items()}
    for name in ("start", "time"):
        columns[name] = pa.array(series[name], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _grid(series: Series, found: Settings) -> Grid:
    """Return the newest windows as a table."""
    total = len(series["time"])
    some = np.flatnonzero(series["n_rows"] > 0)[-_SHOWN:]
    title = f"Windows of {found.view.window} (UTC), longer where only coarser panes are kept"
    if len(some) < total:
        title += f": the last {len(some)} of {total:,} that have rows; {OUT} has all"
    names = [name for name in found.suite if name in series]
    starts, times = (series[name].astype("datetime64[m]") for name in ("start", "time"))
    lines = [
        (
            str(starts[row]).replace("T", " "),
            str(times[row]).replace("T", " "),
            f"{series['n_rows'][row]:,}",
            "" if np.isnan(share := series["coverage"][row]) else f"{share:.1%}",
            *(number(float(series[name][row])) for name in names),
        )
        for row in some.tolist()
    ]
    return Grid(title, ("From", "Until", "Rows", "Labelled", *names), lines)


def _alerts(live: Live, found: Settings) -> list[Grid]:
    """Return what the alerts would have done."""
    alerts = live.alerts(found.rules)
    lines: list[tuple[str, ...]] = [
        (alert.name, state, f"{time:%Y-%m-%d %H:%M}", alert.why if last else "")
        for alert in alerts
        for place, (time, state) in enumerate(alert.changes)
        for last in [place == len(alert.changes) - 1]
    ]
    return [Grid("Alerts", ("Alert", "State", "Since", "Why"), lines)] if lines else []


def _counted(live: Live, found: Settings) -> Grid:
    """Return what became of all events, as far back as the coarsest panes reach."""
    tier = found.options["tiers"][-1]
    counts = live.coverage(tier[1])
    wanted = (
        "predicted", "labelled", "pending", "expired", "displaced", "corrected",
        "labels_waiting", "labels_unmatched", "predictions_refused", "labels_refused",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = [("rows", f"{live.n_rows:,}")]
    lines += [
        (name.replace("_", " "), f"{getattr(counts, name):,}")
        for name in wanted
        if getattr(counts, name)
    ]
    if live.dropped:
        lines.append(("older than any pane", f"{live.dropped:,}"))
    return Grid(f"In {tier[1]}", ("Events", "Count"), lines)
