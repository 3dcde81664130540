"""Lines read at once as what they are known to be are what they are when read one by one."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.service.bodies import Forms, of_lines

NUMBERS = (
    "0", "-0", "-0.0", "1.0", "1E5", "1e-400", "5e-324", "2.2250738585072011e-308", "1e400",
    "9007199254740993", "9007199254740993.0", "9223372036854775808", "18446744073709551616",
    "-9223372036854775809", "123456789012345678901234567890", "0." + "3" * 400, "01", "+1", "NaN",
    "Infinity", "-Infinity", "1.", ".5", "0x1", "9" * 5000, "true", "null", "1_0",
)  # fmt: skip
TEXTS = (
    '"\\ud800"', '"\\ud83d\\ude00"', '"\x01"', '"\\u0000"', '"\x7f"', '"\u2028"', '"\\x41"', "'a'",
    '"a', '[1,[2,{"a":3}]]', "[" * 100_000, '{"a":{}}', '"\ufeff"', "1} ", '1},{"kind":"observe"',
    '1}\n\n{"kind":"observe","time":1,"score":1', '1,"score":2', '1,"kind":"label"', '1,"more":1',
)  # fmt: skip
ROW = '{"kind":"observe","time":1.5,"label":1,"score":%s}'


def read(reader, body, kind=None):
    """Return what a reader makes of a body, with the types of all; nothing where it refuses."""
    try:
        groups = reader(body, kind)
    except InvalidBatchError:
        return None
    return groups and [(g.kind, [*g.rows], repr(sorted(g.columns.items()))) for g in groups]


def learnt(body, kind=None):
    forms = Forms()
    assert forms.read(body, kind) is None
    forms.learn(body, kind, of_lines(body, kind))
    return forms


def rows(*values):
    return "\n".join(ROW % value for value in values).encode(errors="surrogatepass")


FORMS = learnt(rows("1", "0.5"))


@pytest.mark.parametrize("value", NUMBERS + TEXTS, ids=range(len(NUMBERS + TEXTS)))
def test_a_value_is_read_as_one_by_one(value):
    body = rows("0.5", value, "1")
    found = read(FORMS.read, body)
    assert found is None or found == read(of_lines, body)


def test_most_of_what_there_is_is_read_at_once():
    for value in (*NUMBERS[:8], *NUMBERS[9:16], '"text"', "true", "null"):
        assert read(FORMS.read, rows("0.5", value)) is not None, value


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats() | st.integers() | st.text() | st.booleans() | st.none(), min_size=2))
@example([1e22, 1e23])
def test_what_is_written_as_json_is_read_as_one_by_one(values):
    body = rows(*map(json.dumps, values))
    found = read(FORMS.read, body)
    assert found is None or found == read(of_lines, body)


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_numbers_are_read_as_one_by_one(number):
    body = rows("1", number)
    found = read(FORMS.read, body)
    assert found is None or found == read(of_lines, body)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_bytes_that_are_changed_are_read_as_one_by_one_or_not(data):
    body = bytearray(rows("1", "0.25", '"a"'))
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=3)):
        body[place] = data.draw(st.integers(0, 255))
    found = read(FORMS.read, bytes(body))
    assert found is None or found == read(of_lines, bytes(body))


def test_a_row_says_its_kind_though_others_did_before():
    one = b'{"kind":"observe","time":1,"label":1,"score":2}'
    without = b'{"time":1,"label":1,"score":2}'
    assert FORMS.read(b"\n".join([one, one]), None) is not None
    for body in ([one, without], [without, one], [without, without]):
        assert FORMS.read(b"\n".join(body), None) is None
        assert FORMS.read(b"\n".join(body), "observe") is None
    forms = learnt(b"\n".join([without, without]), "observe")
    assert forms.read(b"\n".join([without] * 3), "observe") is not None
    assert forms.read(b"\n".join([without] * 3), "predict") is None
    assert forms.read(b"\n".join([without, one]), "observe") is None


def test_kinds_that_alternate_are_read_at_once_with_the_numbers_of_their_rows():
    prediction = b'{"kind":"predict","id":"a","time":1,"score":0.5}'
    label = b'{"kind":"label","id":"a","time":1,"label":1}'
    forms = learnt(b"\n".join([prediction, prediction]))
    body = b"\r\n".join([prediction, label, prediction, label, label])
    assert forms.read(body, None) is None
    forms.learn(body, None, of_lines(body, None))
    for each in (body, body + b"\n", b"\n".join([prediction] * 2)):
        assert read(forms.read, each) == read(of_lines, each) is not None
    assert [[*group.rows] for group in forms.read(body, None)] == [[0, 2], [1, 3, 4]]


def test_forms_that_are_known_are_few_and_names_may_be_any():
    forms = Forms()
    for place in range(300):
        for name in (f"c{place}", f'c"{place}', f"c\\{place}"):
            line = json.dumps({"kind": "observe", "time": 1, name: 1}).encode()
            body = line + b"\n" + line
            forms.learn(body, None, of_lines(body, None))
            found = read(forms.read, body)
            assert found in (None, read(of_lines, body))
    assert len(forms._known) <= 64
