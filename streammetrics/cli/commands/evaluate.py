"""`streammetrics evaluate`: what was typed becomes what is asked, and is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.cli import options as inputs
from streammetrics.cli import options as typed
from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import (
    MOST,
    EvaluateOptions,
    finish,
    measured,
    opened,
    outputs_of,
    reported,
    unit_of,
)
from streammetrics.cli.outputs import (
    Outcome,
    Output,
    check_outputs,
    check_places,
    is_like,
    say,
    write,
)
from streammetrics.cli.tasks import TASKS, character, depths, literal, literals, parse, shares
from streammetrics.metrics.specs import WORDS
from streammetrics.readers.pieces import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Options


def evaluate(
    task: typed.Task,
    paths: inputs.Paths = None,
    y_true: inputs.YTrue = None,
    y_score: inputs.YScore = None,
    y_pred: inputs.YPred = None,
    values: inputs.Values = None,
    weight: inputs.Weight = None,
    query: inputs.Query = None,
    relevance: inputs.Relevance = None,
    score: inputs.Score = None,
    doc: inputs.Doc = None,
    query_weight: inputs.QueryWeight = None,
    qrels: inputs.Qrels = None,
    run: inputs.Run = None,
    labels_true: inputs.LabelsTrue = None,
    labels_pred: inputs.LabelsPred = None,
    features: inputs.Features = None,
    labels: inputs.Labels = None,
    scale: inputs.Scale = None,
    y_low: inputs.YLow = None,
    y_high: inputs.YHigh = None,
    y_mean: inputs.YMean = None,
    y_std: inputs.YStd = None,
    y_ensemble: inputs.YEnsemble = None,
    y_quantiles: inputs.YQuantiles = None,
    levels: inputs.Levels = None,
    pit: inputs.Pit = None,
    ratings: inputs.Ratings = None,
    item: inputs.Item = None,
    category: inputs.Category = None,
    popularity: inputs.Popularity = None,
    time: inputs.Time = None,
    event: inputs.Event = None,
    reference: inputs.Reference = None,
    prediction: inputs.Prediction = None,
    true_boxes: inputs.TrueBoxes = None,
    true_labels: inputs.TrueLabels = None,
    true_crowd: inputs.TrueCrowd = None,
    true_areas: inputs.TrueAreas = None,
    pred_boxes: inputs.PredBoxes = None,
    pred_labels: inputs.PredLabels = None,
    pred_scores: inputs.PredScores = None,
    annotations: inputs.Annotations = None,
    results: inputs.ResultsFiles = None,
    metrics: typed.Metrics = None,
    threshold: typed.Threshold = None,
    max_bins: typed.MaxBins = None,
    nan_policy: typed.NanPolicy = None,
    from_logits: typed.FromLogits = False,
    ignore_index: typed.IgnoreIndex = None,
    pos_label: typed.PosLabel = None,
    average: typed.Average = None,
    box_format: inputs.BoxFormat = None,
    k: typed.K = None,
    preset: typed.Preset = None,
    ties: typed.Ties = None,
    relevant_at: typed.RelevantAt = None,
    no_relevant: typed.NoRelevant = None,
    unretrieved: typed.Unretrieved = None,
    per_query: typed.PerQuery = False,
    by: typed.By = None,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    max_slices: typed.MaxSlices = MOST,
    confidence: typed.Confidence = None,
    unit: typed.Unit = None,
    input_format: typed.InputFormat = None,
    format: typed.OldFormat = None,  # noqa: A002, ARG001 - the option's name; it is refused
    delimiter: typed.Delimiter = None,
    batch_rows: typed.BatchRows = BATCH_ROWS,
    workers: typed.Workers = 1,
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    save: typed.Save = None,
    force: typed.Force = False,
) -> Outcome:
    """Compute metrics of files of predictions."""
    columns = {
        "y_true": y_true, "y_score": y_score, "y_pred": y_pred, "values": values,
        "sample_weight": weight, "query": query, "relevance": relevance, "score": score,
        "doc": doc, "query_weight": query_weight, "labels_true": labels_true,
        "labels_pred": labels_pred, "X": features,
        "scale": scale, "y_low": y_low, "y_high": y_high, "y_mean": y_mean, "y_std": y_std,
        "y_ensemble": y_ensemble, "y_quantiles": y_quantiles, "pit": pit, "ratings": ratings,
        "item": item, "category": category, "popularity": popularity, "time": time,
        "event": event, "reference": reference, "prediction": prediction,
        "true_boxes": true_boxes, "true_labels": true_labels, "true_crowd": true_crowd,
        "true_areas": true_areas, "pred_boxes": pred_boxes, "pred_labels": pred_labels,
        "pred_scores": pred_scores,
    }  # fmt: skip
    options: Options = {
        "threshold": threshold,
        "max_bins": max_bins,
        "nan_policy": nan_policy,
        "from_logits": from_logits or None,
        "ignore_index": ignore_index,
        "pos_label": None if pos_label is None else literal(pos_label),
        "average": average,
        "box_format": box_format,
        "k": depths(k) if k else None,
        "preset": preset,
        "ties": ties,
        "relevant_at": relevant_at,
        "no_relevant": no_relevant,
        "unretrieved": unretrieved,
        "levels": None if levels is None else shares(levels),
    }
    if task in TASKS and "labels" in TASKS[task].inputs:
        columns["labels"] = labels
    else:
        options["labels"] = None if labels is None else literals(labels)
    options = {key: value for key, value in options.items() if value is not None}
    if average is not None and WORDS.get(average.lower(), average) is None:
        options["average"] = None
    if per_query and task != "ranking":
        raise CommandError(f"--per-query is not for --task {task}")
    asked = EvaluateOptions(
        task=task,
        columns={key: _each(given) for key, given in columns.items() if given},
        options=options,
        specs=parse(metrics) if metrics else None,
        paths=paths or (),
        qrels=qrels,
        runs=run or (),
        annotations=annotations,
        results=results or (),
        format=input_format,
        delimiter=None if delimiter is None else character(delimiter),
        by=by or (),
        max_slices=max_slices,
        min_rows=min_rows,
        worst=worst,
        confidence=confidence,
        unit=unit,
    )
    reading = {"workers": workers, "batch_rows": batch_rows}
    outputs = outputs_of(json, csv, markdown)
    return _done(asked, outputs, save, reading, force=force, per_query=per_query)


def _done(
    asked: EvaluateOptions,
    outputs: list[Output],
    save: str | None,
    reading: Mapping[str, int],
    *,
    force: bool,
    per_query: bool,
) -> Outcome:
    """Check where results are to be written, read the files, and write."""
    if save is None and asked.confidence is None and isinstance(unit_of(asked.unit), str):
        raise CommandError("--unit requires --confidence, e.g. --confidence 0.95, or --save")
    saved = [] if save is None else [save]
    check_places([*outputs, *(Output("--save", path, bool) for path in saved)])
    work = opened(asked)
    like = is_like(work.to_save() if saved else None)
    outputs += [Output("--save", path, like) for path in saved]
    check_outputs(outputs, work.files, force=force, asked=asked.patterns, fmt=asked.format)
    for note in work.notes:
        say(f"note: {note}")
    found = measured(work, **reading)
    results = reported(work, found, asked, per_query=per_query)
    if save is not None:
        (state, *_) = found.states.values()
        write(save, (found.comparison or state).to_bytes())
    return finish(results, outputs)


def _each(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given
