"""Rows that statistics keep as they came: all of them, in order, in few chunks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streammetrics.core.field import piled

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("sizes", [[1] * 3000, RNG.integers(1, 90, 500), [200, 1, 1, 300, 1]])
def test_chunks_hold_all_rows_in_order_and_small_ones_are_few(sizes):
    rows, copied, chunks = itertools.count(), 0, ()

    def join(parts):
        nonlocal copied
        copied += sum(map(len, parts))
        return list(itertools.chain(*parts))

    for n in sizes:
        last = list(itertools.islice(rows, int(n)))
        chunks = piled(chunks, last, size=len, join=join, small=64)
        assert sum(len(chunk) <= 64 for chunk in chunks) <= 7
    assert list(itertools.chain(*chunks)) == list(range(sum(sizes)))
    assert copied <= 8 * sum(sizes)
