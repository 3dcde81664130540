"""What `evaluate` does once the files are open: read the rows of each model, and report."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.cli.running import advice, progress_bar
from streammetrics.cli.slicing import slices_of
from streammetrics.cli.tasks import WEIGHT
from streammetrics.engines.local import evaluate
from streammetrics.show.report import ModelReport, ModelReports, report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.cli.opening import Asked, Model, Work
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.inference.comparing.comparison import Comparison


@dataclass(frozen=True)
class Evaluated:
    """The state of every model, and of all together where they are compared."""

    states: Mapping[str, MetricSet]
    comparison: Comparison | None = None


def measured(work: Work, *, workers: int, batch_rows: int) -> Evaluated:
    """Read every model's rows, and those of all together: once, where this has all metrics."""
    comparison = None
    if work.duel is not None:
        with advice(next(iter(work.models.values())).plan):
            comparison = work.duel.fought(workers=workers, batch_rows=batch_rows)
        if work.duel.whole:
            return Evaluated(dict(comparison.items()), comparison)
    found = {}
    for name, model in work.models.items():
        with progress_bar(model.pieces, name) as progress, advice(model.plan):
            found[name] = evaluate(
                model.plan.suite,
                model.pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )
    return Evaluated(found, comparison)


def reported(work: Work, found: Evaluated, asked: Asked, *, per_query: bool) -> ModelReports:
    """Read the metrics of every model, and how models differ."""
    reports = {
        name: _report(work.models[name], state, asked, per_query)
        for name, state in found.states.items()
    }
    differences = None
    if found.comparison is not None and all(report.n_rows for report in reports.values()):
        with warnings.catch_warnings(), advice(next(iter(work.models.values())).plan):
            warnings.simplefilter("ignore")  # the reports have told
            differences = found.comparison.compute()
    return ModelReports(reports, differences)


def _report(model: Model, state: MetricSet, asked: Asked, per_query: bool) -> ModelReport:
    about = {**model.about, "options": dict(model.plan.options)}
    weight = model.plan.asked.get(WEIGHT)
    notes = [] if weight is None else [f"weighted by {weight}"]
    with advice(model.plan):
        slices = slices_of(state, asked.min_rows, asked.worst, asked.confidence)
        return report(
            state, about, notes, per_query=per_query, slices=slices, confidence=asked.confidence
        )
