"""The container: the bytes that safetensors writes, and of all others none is read."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import safetensors.numpy
from fuzz.forging import forged, joined, sealed, split

import streammetrics as sm
from streammetrics.core.state import container

TYPES = ["u8", "i8", "f8", "f4", "u4", "i4", "f2", "u2", "i2", "i1", "u1", "?"]


def random_arrays(rng):
    shapes = [tuple(rng.integers(0, 4, size=int(rng.integers(0, 4)))) for _ in TYPES]
    return {
        f"{rng.integers(99)}/ü\x01\x7f{kind}": rng.integers(0, 2, size=shape).astype(kind)
        for kind, shape in zip(TYPES, shapes, strict=True)
        if rng.random() < 0.7
    }


@pytest.mark.parametrize("seed", range(20))
def test_files_are_those_of_safetensors(seed):
    arrays = random_arrays(np.random.default_rng(seed))
    said = {"class": "X", "text": 'é"\\\n'}
    blob = container.packed(said, arrays)
    header, _ = split(blob)
    assert blob == safetensors.numpy.save(arrays, header["__metadata__"])
    for name, array in safetensors.numpy.load(blob).items():
        np.testing.assert_array_equal(array, arrays[name], strict=True)
    assert container.unpacked(blob).holds(said, arrays)


def test_a_file_that_could_not_be_read_is_not_written(monkeypatch):
    size = 8 + struct.unpack("<Q", container.packed({"class": "X"}, {})[:8])[0]
    monkeypatch.setattr(container, "_HEADER", size)
    assert container.unpacked(container.packed({"class": "X"}, {})).meta["class"] == "X"
    monkeypatch.setattr(container, "_HEADER", size - 1)
    with pytest.raises(ValueError, match=f"take {size - 8} bytes, of {size - 1}"):
        container.packed({"class": "X"}, {})


def test_arrays_of_another_byte_order_are_the_same_file():
    array = np.arange(5)
    swapped = array.astype(">i8")
    assert container.packed({}, {"a": array}) == container.packed({}, {"a": swapped})
    with pytest.raises(TypeError, match="cannot hold the array 'a' of complex128"):
        container.packed({}, {"a": array * 1j})


def example():
    return sm.Accuracy().update(["a", "b"], ["a", "a"]).to_bytes()


def test_a_state_forged_without_a_change_is_read():
    assert sm.from_bytes(forged(example(), lambda header, meta: None)).to_bytes() == example()


def renamed(header, old, new):
    for key in list(header):
        header[new if key == old else key] = header.pop(key)


def nested(meta):
    for _ in range(100):
        meta = {"a": [meta]}
    return meta


@pytest.mark.parametrize(
    "change",
    [
        lambda header, meta: header.update({"0/pairs": header.pop("0/pairs")}),
        lambda header, meta: header["0/pairs"].update(shape=[True, 2]),
        lambda header, meta: header["0/pairs"].update(shape=[2.0]),
        lambda header, meta: header["0/pairs"].update(shape=[-1, -2]),
        lambda header, meta: header["0/pairs"].update(shape=[10**4000]),
        lambda header, meta: header["0/pairs"].update(shape=[1] * 60 + [2]),
        lambda header, meta: header["0/pairs"].update(data_offsets=[0, 1 << 62]),
        lambda header, meta: header["0/pairs"].update(dtype=["I64"]),
        lambda header, meta: header["0/pairs"].update(more=1),
        lambda header, meta: header["__metadata__"].update(more="1"),
        lambda header, meta: header.update(more={"dtype": "I64", "shape": [0, 1 << 40],
                                                 "data_offsets": [0, 0]}),
        lambda header, meta: meta.update(format=True),
        lambda header, meta: meta.update(format=10**4000),
        lambda header, meta: meta.update(format=2),
        lambda header, meta: meta.update({"class": ["Accuracy"]}),
        lambda header, meta: meta.update({"class": "A" * 50_000_000}),
        lambda header, meta: meta.update(more=nested({})),
        lambda header, meta: meta.update(more="x"),
        lambda header, meta: meta.update(infos=meta["feeds"] * 2),
        lambda header, meta: meta["feeds"][0].__setitem__(1, True),
        lambda header, meta: meta["feeds"][0].__setitem__(1, 2.0),
        lambda header, meta: meta["feeds"][0].__setitem__(2, {}),
        lambda header, meta: meta["feeds"][0].__setitem__(0, []),
        lambda header, meta: meta["feeds"][0][0].update(labels=1.5),
        lambda header, meta: meta["feeds"][0][0].update(labels={"a": 1}),
        lambda header, meta: meta["feeds"][0][0].update(labels=None),
        lambda header, meta: meta["feeds"][0].append(0),
        lambda header, meta: meta["parameters"].update(threshold={"float": "Infinity"}),
        lambda header, meta: meta["parameters"].update(threshold={"float": [1]}),
        lambda header, meta: meta["parameters"].update(pos_label={"a": 1}),
        lambda header, meta: meta["parameters"].update(labels=["b", "a"] * 100_000),
        lambda header, meta: meta["parameters"].update(labels="a"),
        lambda header, meta: meta.update(parameters=[]),
    ],
)  # fmt: skip
def test_what_to_bytes_does_not_write_is_refused_in_few_words(change):
    with pytest.raises(sm.StateFormatError, match=".") as raised:
        sm.from_bytes(forged(example(), change))
    assert len(str(raised.value)) < 2100


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"0/pairs":', b'"0/pairs": '),
        (b'"__metadata__"', b'"\\u005f_metadata__"'),
        (b'{"__metadata__"', b'{"0/pairs":{},"__metadata__"'),
        (b'\\"format\\":1,', b'\\"format\\":1,\\"format\\":1,'),
        (b'\\"threshold\\":null', b'\\"threshold\\":NaN'),
        (b'\\"threshold\\":null', b'\\"threshold\\":5e-1'),
        (b'\\"threshold\\":null', b'\\"threshold\\":1e999'),
        (b'[0,', b'[00,'),
        (b'\\"class\\"', b"[" * 100_000 + b'\\"class\\"'),
        (b'{"__metadata__"', b"[" * 100_000),
        (b'{"__metadata__"', b"\xff"),
    ],
)  # fmt: skip
def test_another_spelling_is_refused(old, new):
    blob = example()
    size = 8 + struct.unpack("<Q", blob[:8])[0]
    header = blob[8:size].rstrip()
    assert old in header
    with pytest.raises(sm.StateFormatError, match="."):
        sm.from_bytes(sealed(header.replace(old, new, 1), blob[size:]))


def test_of_a_configuration_that_is_known_only_the_rows_are_parsed(monkeypatch):
    sm.from_bytes(example())
    parsed, parse = [], container._parsed
    monkeypatch.setattr(container, "_parsed", lambda text: parsed.append(str(text)) or parse(text))
    more = sm.Accuracy().update(["c"] * 3, ["c", "d", "d"]).to_bytes()
    assert sm.from_bytes(more).to_bytes() == more
    assert len(parsed) == 2
    assert not any("parameters" in text for text in parsed)


@pytest.mark.parametrize("label", [',"feeds":', ',\\"feeds\\":', ',\\\\"feeds\\\\":'])
def test_a_label_that_looks_like_the_beginning_of_the_rows_is_a_label(label):
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5, pos_label="b", labels=[label, "b"])})
    suite.update(y_true=[label, "b", "b"], y_score=[0.2, 0.7, 0.4])
    for _ in range(2):  # the second time it is known
        assert sm.from_bytes(suite.to_bytes()).to_bytes() == suite.to_bytes()
        assert sm.from_bytes(suite.copy().reset().to_bytes()).n_rows == 0


def test_arrays_of_another_order_are_refused_wherever_they_lie_in_memory():
    """Bytes behind an odd number of bytes are aligned for no wider type."""
    metric = sm.Silhouette().update([[0.0], [1.0], [4.0]], ["a", "a", "bcd"])
    header, body = split(metric.to_bytes())
    told = header.pop("__metadata__")
    moved, parts, end = {"__metadata__": told}, [], 0
    for name in reversed(header):
        start, stop = header[name]["data_offsets"]
        parts.append(body[start:stop])
        moved[name] = header[name] | {"data_offsets": [end, end := end + stop - start]}
    assert any(array["data_offsets"][0] % 8 for name, array in moved.items() if name in header)
    with pytest.raises(sm.StateFormatError, match="not the bytes that to_bytes gives"):
        sm.from_bytes(joined(moved, b"".join(parts)))


def test_padding_is_part_of_the_form():
    header, body = split(example())
    text = json.dumps(header, separators=(",", ":")).encode()
    assert sm.from_bytes(sealed(text, body)) == sm.from_bytes(example())
    with pytest.raises(sm.StateFormatError, match="not the bytes that to_bytes gives"):
        sm.from_bytes(sealed(text + b" " * 8, body))


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (5, r"the bytes that to_bytes\(\) gave, not an int"),
        ("a.state", r"load\('a.state'\) reads a file"),
        (None, "not a NoneType"),
        ([], "not a list"),
    ],
)
def test_only_bytes_are_read(blob, message):
    with pytest.raises(TypeError, match=message):
        sm.from_bytes(blob)


def test_only_names_of_files_are_opened():
    with pytest.raises(TypeError, match="os.PathLike"):
        sm.load(3)  # a number would be taken for an open file


def test_any_buffer_of_bytes_is_read():
    blob = example()
    for same in (bytearray(blob), memoryview(blob), np.frombuffer(blob, np.uint8)):
        assert sm.from_bytes(same).to_bytes() == blob


@pytest.mark.parametrize(
    "error",
    [MemoryError, NameError, AttributeError, AssertionError, KeyError, TypeError,
     ZeroDivisionError, KeyboardInterrupt],
)  # fmt: skip
def test_a_defect_and_want_of_memory_pass_through(error, monkeypatch):
    blob = example()
    statistic = type(sm.Accuracy().statistics()[0])

    def restore(self, arrays):
        raise error("mine")

    monkeypatch.setattr(statistic, "restore", restore)
    with pytest.raises(error, match="mine"):
        sm.from_bytes(blob)


def test_a_statistic_refuses_by_a_value_error(monkeypatch):
    statistic = type(sm.Accuracy().statistics()[0])

    def restore(self, arrays):
        raise ValueError("not mine")

    monkeypatch.setattr(statistic, "restore", restore)
    with pytest.raises(sm.StateFormatError, match="not a ContingencyTable: not mine"):
        sm.from_bytes(example())


def test_parameters_beyond_every_float_are_refused_and_long_ones_shown_in_brief():
    with pytest.raises(
        ValueError,
        match=r"threshold=1000000.{,60}: expected a number or a tuple of numbers or None",
    ):
        sm.Accuracy(threshold=10**400)
    for wrong in (lambda: sm.ROCAUC(pos_label=2**63), lambda: sm.NDCG(k=2**63)):
        with pytest.raises(ValueError, match=r"=9223372036854775808\): expected"):
            wrong()
    with pytest.raises(ValueError, match=r"an integer from 1 to 2\*\*20"):
        sm.CalibrationError(n_bins=2**53)
    with pytest.raises(ValueError, match="expected integers within the range of float64"):
        sm.Silhouette(centroids=[[10**400]])
    with pytest.raises(ValueError, match="pos_label"):
        sm.ROCAUC(pos_label=(0, 1))


def test_a_beta_of_any_size_has_a_value():
    rows = ([1, 1, 0, 1], [1, 0, 1, 0])
    assert sm.FBeta(beta=1e200).update(*rows).compute() == sm.Recall().update(*rows).compute()


def test_a_state_of_another_kind_than_expected_is_refused(tmp_path):
    mean = sm.Mean().update([1.0])
    mean.save(tmp_path / "mean")
    assert sm.from_bytes(mean.to_bytes(), kind=sm.Mean) == mean
    assert sm.load(tmp_path / "mean", kind=sm.Metric) == mean
    with pytest.raises(sm.StateFormatError, match="the state is of a Mean, not of a Ledger"):
        sm.from_bytes(mean.to_bytes(), kind=sm.Ledger)
    with pytest.raises(sm.StateFormatError, match=r"mean: the state is of a Mean, not of a Live"):
        sm.load(tmp_path / "mean", kind=sm.Live)
