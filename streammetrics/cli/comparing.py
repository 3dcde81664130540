"""Several models compared: on the same rows in one pass, or as two saved states."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.running import progress_bar, state_of
from streammetrics.cli.slicing import unit_of
from streammetrics.cli.tasks import OF_MODELS
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric_set import MetricSet
from streammetrics.engines.local import evaluate
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.inference.comparing.families import refused
from streammetrics.inference.comparing.states import compare
from streammetrics.ledger.ledger import Ledger
from streammetrics.readers import formats, trec
from streammetrics.show.report import ModelReports, report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.cli.planning import Plan
    from streammetrics.core.types import Options
    from streammetrics.readers.paths import Found
    from streammetrics.readers.pieces import Piece


@dataclass(frozen=True)
class Duel:
    """What is read to compare models: those of the metrics that can be compared, and the pieces.

    It is `whole` where it has all metrics of every model, so that nothing is read again for them.
    """

    comparison: Comparison
    pieces: Sequence[Piece]
    whole: bool

    def fought(self, *, workers: int, batch_rows: int) -> Comparison:
        """Read the rows of all models."""
        with progress_bar(self.pieces, "comparing") as progress:
            return evaluate(
                self.comparison,
                self.pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )


def of_files(plans: Mapping[str, Plan], found: Found) -> Duel | None:
    """Return the duel of models that are columns of the same files."""
    first = next(iter(plans.values()))
    needed = {name for metric in _able(first).values() for name in metric.inputs}
    own = [key for key in OF_MODELS if key in needed]
    models = {name: {key: plan.asked[key] for key in own} for name, plan in plans.items()}
    duel = _between(first, models)
    if duel is None:
        return None
    pieces = formats.pieces_of(found.sources, duel._asked, duel._kinds).pieces
    omits = any(metric.config["nan_policy"] == "omit" for metric in first.suite.values())
    # A row that lacks one model's score is left out for all where they are compared.
    return Duel(duel, pieces, whole=len(duel.of_metrics) == len(first.suite) and not omits)


def of_runs(plans: Mapping[str, Plan], qrels: str, runs: Mapping[str, str]) -> Duel | None:
    """Return the duel of runs by the same judgments."""
    first = next(iter(plans.values()))
    duel = _between(first, {name: {"score": f"score of {name}"} for name in runs})
    if duel is None:
        return None
    pieces: dict[str, trec.TrecPiece] = {}
    for name, run in runs.items():
        for piece in trec.pieces(qrels, run):
            key = str(piece) if piece.judged else f"{name}/{piece}"
            pieces[key] = piece if piece.judged else replace(piece, score=f"score of {name}")
    return Duel(duel, list(pieces.values()), whole=False)  # counts of rows are of each run's


def _able(plan: Plan) -> Options:
    return {name: metric for name, metric in plan.suite.items() if not refused(metric)}


def _between(plan: Plan, models: Mapping[str, Mapping[str, str]]) -> Comparison | None:
    """Return the comparison of the metrics that can be, nothing where there is nothing to it."""
    metrics = _able(plan)
    if len(models) < 2 or not metrics:
        return None
    needed = {name for metric in metrics.values() for name in metric.inputs}
    shared = {
        key: text
        for key, text in plan.suite.columns.items()
        if key not in OF_MODELS and (key in needed or key == "sample_weight")
    }
    if len({tuple(texts.items()) for texts in models.values()}) < len(models):
        return None  # what is read of two of them is the same
    return Comparison(MetricSet(metrics, columns=shared), models)


def of_comparison(
    what: Comparison, about: Mapping[str, object], notes: Sequence[str]
) -> ModelReports:
    """Read a saved comparison: every model, and how they differ."""
    reports = {name: report(suite, about, notes) for name, suite in what.items()}
    differences = what.compute() if what.n_rows else None
    return ModelReports(reports, differences)


def of_states(paths: Sequence[str], confidence: float, unit: str | None) -> ModelReports:
    """Compare two saved states of different rows, as samples of units where one is named."""
    names = [os.path.basename(path) for path in paths]
    if len({*names}) < 2:
        names = list(paths)
    if names[0] == names[1]:
        raise CommandError(f"{names[0]} is named twice: name the state of another model or time")
    states = [_merged(path) for path in paths]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = compare(
                *states,
                confidence=confidence,
                names=(names[0], names[1]),
                unit=unit_of(unit),
            )
        except (StreamMetricsError, TypeError, ValueError) as error:
            raise CommandError(str(error)) from error
    notes = [*dict.fromkeys(str(warning.message) for warning in caught), UNPAIRED]
    reports = {
        name: report(state, {"state": path}, notes)
        for name, state, path in zip(names, states, paths, strict=True)
    }
    return ModelReports(reports, found)


UNPAIRED = (
    "the states are of different rows, which is the weaker test: models that judge the same rows "
    "are compared by evaluate with several --y-score or --run"
)


def _merged(path: str) -> Any:
    state = state_of(path)
    return state.merged() if isinstance(state, Ledger) else state
