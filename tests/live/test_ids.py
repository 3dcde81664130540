"""Ids as keys: the same, however they come."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.live.events import keys_of

pa = pytest.importorskip("pyarrow")
TEXTS = ["", "a", "fifteen letters", "r1", "é", "日本", "r1"]
LONG = "sixteen letters!"


def one_by_one(ids):
    return np.concatenate([keys_of([each]) for each in ids])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
@pytest.mark.parametrize("ids", [TEXTS, TEXTS[:4], [""], [*TEXTS, LONG]])
def test_texts_have_one_key_in_lists_and_in_arrow(ids, kind):
    expected = one_by_one(ids)
    assert (keys_of(ids) == expected).all()
    assert (keys_of(pa.array(ids, "string").cast(kind)) == expected).all()
    assert (keys_of(pa.array(["before", *ids, "after"]).cast(kind)[1:-1]) == expected).all()
    chunks = pa.chunked_array([pa.array(ids).cast(kind)] * 2)
    assert (keys_of(chunks) == np.tile(expected, (2, 1))).all()


def test_integers_and_bytes_of_arrow_are_keys_of_their_own():
    for ids in ([1, 2, -3], [b"r1", b"r2"]):
        assert (keys_of(pa.array(ids)) == one_by_one(ids)).all()
    assert keys_of([]).shape == keys_of(pa.array([], "string")).shape == (0, 2)
    assert not (keys_of(["r1"]) == keys_of([b"r1"])).all()


def test_a_text_that_is_missing_is_refused_by_its_row():
    with pytest.raises(ValueError, match=r"id is missing \(null\) in 1 row, first in row 1"):
        keys_of(pa.array(["a", None]))
