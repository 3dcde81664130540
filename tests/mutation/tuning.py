"""Numbers that only decide how the work is cut: no state, value, bound or error shows them.

`tests/kinds/test_boundaries.py` sets all of them to little sizes, which lets every metric take the
paths that large data take, and finds the same bytes and values. So mutants of these lines would
compute the same, and none are made. A limit that can be seen, such as the most rows a statistic
takes, is not tuning and has no place here.
"""

TUNING = {
    "core.layout": {"SLICE": 7, "_MANY": 2},
    "core.staging": {"STAGED": 16},
    "core.stateful": {"_MANY": 2, "_LONG": 64},
    "core.fields.labels": {"_NEAR": 2},
    "core.columns.strings": {"_BLOCK": 4},
    "core.columns.batch": {"_SHORT": 2},
    "core.exact.clusters": {"_ELEMENTS": 16, "_MIN_ROWS": 2},
    "core.exact.digits": {"_ROWS": 3, "_MAX_ADDITIONS": 2, "_MAX_PARTS": 1},
    "core.exact.few": {"FEW": 2},
    "core.exact.folds": {"_KEPT_BUFFERS": 2},
    "core.exact.integers": {"_BLOCK": 8},
    "core.exact.products": {"_KEPT_ROWS": 2},
    "core.exact.reductions": {"_MIN_ROWS": 2},
    "core.histograms.cells": {"READ": 4},
    "core.histograms.forms": {"SLICE": 8, "FEWEST": 4},
    "core.histograms.keys": {"BLOCK": 8},
    "core.histograms.merging": {"_UNITED": 2, "_AHEAD": 5},
    "core.histograms.waiting": {"SMALL": 4},
    "statistics.clusters.centroids": {"_BLOCK": 16},
    "statistics.clusters.distances": {"_ROWS": 4, "_MEANS": 8, "_THIN": 2},
    "statistics.clusters.rows": {"_BLOCK": 8},
    "statistics.pairs.histogram": {"_FEWEST": 4},
    "statistics.pairs.inversions": {"_GRID": 16, "_BLOCK": 2},
    "statistics.rankings.held": {"_PENDING": 8, "_SMALL": 2},
    "statistics.rankings.order": {"_BLOCK": 8},
    "statistics.tables.contingency": {"_DENSE": 2},
}
