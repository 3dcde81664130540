"""Champion and challengers: models compared on the rows that all of them have predicted."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import undefined_expected
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.differences import Differences
from streammetrics.inference.comparison import Comparison
from streammetrics.live.events import SliceKeys
from streammetrics.live.join import resolve
from streammetrics.live.rows import columns_of
from streammetrics.live.spans import metrics_of
from streammetrics.live.validation import truth_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Ints
    from streammetrics.live.queries import Queries

    Keys = NDArray[np.uint64]
    Rows = dict[str, Array]  # columns by name


_LABEL = "label"  # the column of the label in a table of all models


class Paired(NamedTuple):
    """Models compared on the same rows.

    Attributes:
        differences: The differences to the first model.
        n_rows: The number of rows.
        labels_differ: The number of other rows, whose label is not the same for all models.
        left_out: Metrics that only some of the models have, or that cannot be compared.
    """

    differences: Differences
    n_rows: int
    labels_differ: int
    left_out: tuple[str, ...]


def paired(models: Mapping[str, Queries], since: int = 0) -> Paired:
    """Compare models on the rows with a label that wait in each of them, joined by id.

    Rows wait for `label_ttl` and `label_lateness`; panes hold no ids, so older rows are not
    compared.

    Args:
        models: Two models or more; the others are compared with the first one.
        since: The time in nanoseconds from which on predictions of the first one are compared.

    Raises:
        ValueError: There are fewer than two models.
    """
    if len(models) < 2:
        raise ValueError("expected two models or more")
    label, metrics, left_out = _common(models)
    if not metrics:
        return Paired(Differences((), math.nan, 0), 0, 0, left_out)
    (first, queries), *others = models.items()
    keys, found = _labelled(queries, since)
    rows = {first: found}
    for name, queries in others:
        places, mine = _matching(queries, keys)
        keys = keys[places]
        rows = {n: {t: c[places] for t, c in columns.items()} for n, columns in rows.items()}
        rows[name] = mine
    none = np.empty(0)  # where no row of a model has a label
    truths = [c.get(truth_of(models[name].suite), none) for name, c in rows.items()]
    same = np.ones(len(keys), bool)
    for truth in truths[1:]:
        same &= _equal(truths[0], truth)
    table, inputs = {_LABEL: truths[0][same]}, dict[str, dict[str, str]]()
    for name, columns in rows.items():
        titles = _titles(models[name])
        inputs[name] = {of: f"{of} of {name}" for of in titles if of != label}
        table |= {own: columns.get(titles[of], none)[same] for of, own in inputs[name].items()}
    duel = Comparison(MetricSet(metrics, columns={label: _LABEL}), inputs, baseline=first)
    with undefined_expected():
        if same.any():
            duel.update(table)
        differences = duel.compute()
    return Paired(differences, int(same.sum()), int((~same).sum()), left_out)


def _common(models: Mapping[str, Queries]) -> tuple[str, dict[str, Metric], tuple[str, ...]]:
    """Return the input of the label, the metrics that all models have, and the other ones."""
    first, *others = [metrics_of(SliceKeys(queries.suite).inner) for queries in models.values()]
    truths = {
        of
        for queries in models.values()
        for of, title in _titles(queries).items()
        if title == truth_of(queries.suite)
    }
    label, found = next(iter(truths), ""), {}
    for name, metric in first.items():
        everywhere = all(name in other and other[name]._key == metric._key for other in others)
        if len(truths) == 1 and everywhere and label in metric.inputs:
            with suppress(ValueError):  # it cannot be compared
                columns = {of: [f"a {of}", f"b {of}"] for of in metric.inputs if of != label}
                pair = ({of: both[n] for of, both in columns.items()} for n in (0, 1))
                Comparison({name: metric}, dict(zip("ab", pair, strict=True)))
                found[name] = metric
    every = dict.fromkeys(name for metrics in (first, *others) for name in metrics)
    return label, found, tuple(name for name in every if name not in found)


def _titles(queries: Queries) -> dict[str, str]:
    """Return the name of the column of each input."""
    suite: Any = SliceKeys(queries.suite).inner
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    return {of: renamed.get(of, of) for of in suite.inputs}


def _labelled(queries: Queries, since: int) -> tuple[Keys, Rows]:
    """Return the keys and the columns of the rows with a label that wait, from a time on."""
    with queries.reading() as pipeline:
        table = pipeline.join.table
        rows = np.flatnonzero(table.times.values >= since)
        found = resolve(queries.suite, pipeline.join, rows, queries.clock)
        return table.keys[found.rows], _plain(found.batch)


def _matching(queries: Queries, keys: Keys) -> tuple[Ints, Rows]:
    """Return the places of those keys whose row waits here with a label, and its columns."""
    with queries.reading() as pipeline:
        every = pipeline.join.table.find(keys)
        places = np.flatnonzero(every >= 0)
        rows = every[places]
        found = resolve(queries.suite, pipeline.join, rows, queries.clock)
        order = np.argsort(rows)
        return places[order[np.searchsorted(rows[order], found.rows)]], _plain(found.batch)


def _plain(batch: Batch | None) -> Rows:
    """Return the columns of a batch as arrays."""
    columns = {} if batch is None else columns_of(batch)
    return {
        title: column.values if column.vocabulary is None else column.vocabulary[column.values]
        for title, column in columns.items()
    }


def _equal(one: Array, other: Array) -> NDArray[np.bool_]:
    """Return for each row whether two labels, or rows of labels, are equal."""
    same: Any = np.equal(one, other)
    found: NDArray[np.bool_] = same.all(axis=tuple(range(1, same.ndim)))
    return found
