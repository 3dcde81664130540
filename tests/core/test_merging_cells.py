"""Rows and cells counted by direct address are those that sorting gives."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.histograms import addressed, forms, merging, packing
from streammetrics.core.histograms.histogram import DyadicHistogram

SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "with both ends": lambda rng, n: rng.choice([0.0, 1.0, *rng.random(n)], n),
    "near one": lambda rng, n: 1 - rng.random(n) ** 9,
    "of both signs": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n),
    "infinite": lambda rng, n: rng.choice([-np.inf, np.inf, *rng.random(n)], n),
    "few": lambda rng, n: rng.integers(0, 40, n) / 64,
}
CROWDED = ("uniform", "near one")  # in cells next to each other


def histograms(name, max_cells, seed):
    rng = np.random.default_rng(seed)
    rows = [(SCORES[name](rng, n), rng.integers(0, 2, n).astype(np.uint8)) for n in (1, 90, 300, 7)]
    whole, parts = DyadicHistogram(max_cells, 2), []
    for scores, codes in rows:
        whole.add(scores, codes)
        parts.append(DyadicHistogram(max_cells, 2))
        parts[-1].add(scores, codes)
        parts[-1].totals()  # counted
    return whole, parts


@pytest.mark.parametrize("max_cells", [2, 16, 61])
@pytest.mark.parametrize("name", SCORES)
def test_cells_merged_by_address_are_those_of_all_rows(name, max_cells, monkeypatch):
    found = []

    def noted(*args):
        found.append(addressed.addressed(*args))
        return found[-1]

    monkeypatch.setattr(merging, "addressed", noted)
    for seed in range(4):
        whole, (first, *others) = histograms(name, max_cells, seed)
        first.merge(*others)
        assert first.is_same(whole)
        first.check()
    monkeypatch.setattr(merging, "addressed", lambda *_: None)
    again, (first, *others) = histograms(name, max_cells, 0)
    first.merge(*others)
    assert first.is_same(again)
    assert name == "few" or any(cells is not None for cells in found)


@pytest.mark.parametrize("max_cells", [2, 16, 61])
@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_weights_are_summed_by_address_as_by_sorting(name, classes, halves, max_cells, monkeypatch):
    found = {"weighed": [], "summed": []}

    def noted(kind):
        def of(*args):
            found[kind].append(getattr(addressed, kind)(*args))
            return found[kind][-1]

        return of

    def counted(seed):
        rng = np.random.default_rng(seed)
        parts = []
        for n in (70_000, 20_000, 300):
            codes = None if classes == 1 else rng.integers(0, 2, n).astype(np.uint8)
            weight = rng.exponential(size=(n, 2) if halves else n)
            parts.append(DyadicHistogram(max_cells, classes))
            parts[-1].add(SCORES[name](rng, n), codes, weight)
            parts[-1].totals()  # counted
        parts[0].merge(*parts[1:])
        return parts[0]

    for seed in range(2):
        monkeypatch.setattr(forms, "weighed", noted("weighed"))
        monkeypatch.setattr(merging, "summed", noted("summed"))
        by_address = counted(seed)
        by_address.check()
        monkeypatch.setattr(forms, "weighed", lambda *_: None)
        monkeypatch.setattr(merging, "summed", lambda *_: None)
        assert by_address.is_same(counted(seed))
    for cells in found.values():
        assert name not in CROWDED or any(each is not None for each in cells)


@pytest.mark.parametrize("max_cells", [2, 61, 700])
@pytest.mark.parametrize("name", [*SCORES, "zeros of both signs"])
def test_rows_counted_by_address_are_those_that_sorting_gives(name, max_cells, monkeypatch):
    scores_of = SCORES | {"zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1e-9], n)}
    found = []

    def noted(*args):
        found.append(addressed.addressed(*args))
        return found[-1]

    for n in (max_cells + 1, 5000, 9000):
        rng = np.random.default_rng(n)
        scores, codes = scores_of[name](rng, n), rng.integers(0, 2, n).astype(np.uint8)
        for classes in (1, 2):
            counted = []
            for by in (noted, lambda *_: None):
                monkeypatch.setattr(packing, "addressed", by)
                counted.append(DyadicHistogram(max_cells, classes))
                counted[-1].add(scores, codes if classes == 2 else None)
                counted[-1].check()
            assert counted[0].is_same(counted[1])
            assert counted[0].level == counted[1].level
    # Few scores have few keys where rows are many, which are counted before.
    assert any(cells is not None for cells in found) or name == "few"


def test_weighted_scores_that_repeat_are_counted_by_address_within_the_budget(monkeypatch):
    rng = np.random.default_rng(0)
    some = np.array([0.0, -0.0, 1.0, -1.0, *rng.normal(size=900).round(2)])
    scores, weight = rng.choice(some, 70_000), rng.exponential(size=70_000)
    codes, found = rng.integers(0, 2, 70_000).astype(np.uint8), []

    def counted():
        histogram = DyadicHistogram(1 << 17, 2)
        histogram.add(scores, codes, weight)
        histogram.check()
        return histogram

    def noted(*args):
        found.append(addressed.weighed(*args))
        return found[-1]

    monkeypatch.setattr(forms, "weighed", noted)
    by_address = counted()
    assert [cells.level for cells in found] == [0]
    monkeypatch.setattr(forms, "weighed", lambda *_: None)
    assert by_address.is_same(counted())
