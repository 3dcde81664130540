"""Triples of labels are counted as a plain loop counts them, whether labels are few or many."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streammetrics.core.columns.conversion import as_column
from streammetrics.statistics.joint import JointTable


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [[0, 1], [-3, 7, 10**6], ["ant", "bee"], range(0, 400, 2)])
def test_joint_tables(labels, weighted):
    rng, table, weights, squares = np.random.default_rng(2), JointTable(), Counter(), Counter()
    for n in (1, 60, 300):
        columns = [rng.choice(np.array(labels), n) for _ in range(3)]
        weight = rng.integers(1, 9, n) / 4 if weighted else None
        table.update(*[as_column(column, "labels") for column in columns], weight=weight)
        every = zip(*[column.tolist() for column in columns], strict=True)
        for triple, w in zip(every, np.ones(n) if weight is None else weight, strict=True):
            weights[triple] += w
            squares[triple] += w * w
    found = table.triples
    triples = [tuple(found.labels[cell].tolist()) for cell in found.cells]
    assert triples == sorted(weights)
    assert np.asarray(found.amount.to_float()).tolist() == [weights[each] for each in triples]
    assert np.asarray(found.squares.to_float()).tolist() == [squares[each] for each in triples]
    table.check()
