"""Bodies as fastjson writes them: keys that are no texts, and nothing else changed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.rocketmq import read_text
from streaming.rocketmq.answers import Unreadable, as_json
from tests.examples import examples

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_bare_integers_and_objects_as_keys_become_texts() -> None:
    body = b'{"offsetTable":{{"brokerName":"b}:{0:","queueId":3,"topic":"t"}:{"maxOffset":7}},"addrs":{0:"x", -1 :"y"}}'
    assert read_text(body) == {
        "offsetTable": {'{"brokerName":"b}:{0:","queueId":3,"topic":"t"}': {"maxOffset": 7}},
        "addrs": {"0": "x", "-1": "y"},
    }


def test_what_looks_like_such_a_key_inside_a_text_stays() -> None:
    body = b'{"a":"{0:1}","b":"\\"{{\\"x\\":1}:","c":[{"d":1},{"e":{1:2}}]}'
    assert read_text(body) == {"a": "{0:1}", "b": '"{{"x":1}:', "c": [{"d": 1}, {"e": {"1": 2}}]}


def test_the_last_of_equal_keys_counts() -> None:
    assert read_text(b'{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{0:}", b"{{}:1", b'{"a":NaN}', b'{"a":1e999}', b"[" * 100_000, b'"\\ud800"', b"{'a':1}", b"{0:1}}"],
)
def test_what_is_no_json_of_their_kind_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_text(body)


@settings(max_examples=examples(900), deadline=None)
@given(_VALUES, st.booleans())
def test_json_of_everybody_means_what_it_meant(value: object, spaces: bool) -> None:
    text = json.dumps(value, ensure_ascii=spaces, separators=None if spaces else (",", ":")).encode("utf-8")
    assert json.loads(as_json(text)) == json.loads(text)


@settings(max_examples=examples(1_500), deadline=None)
@given(st.text('{}[]",:\\ 01-a', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_text(text.encode())
    except Unreadable:
        return


@settings(max_examples=examples(600), deadline=None)
@given(st.text('{}[]",:\\ 01-a', max_size=30))
def test_what_json_reads_is_left_alone(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        return
    assert as_json(text.encode()) == text.encode()
    assert read_text(text.encode()) == value


@pytest.mark.parametrize("piece", [b"{", b'{"', b'\\"', b"{1:", b"{{", b',{"a"', b'{"a":"', b',{"\\"', b"{ ", b'"\\\\'])
def test_a_hostile_body_takes_no_longer_than_its_bytes(piece: bytes) -> None:
    """(A search that started again at each byte would need an hour for these.)"""
    assert as_json(b"{1:" + piece * 200_000).endswith(piece[-1:])
