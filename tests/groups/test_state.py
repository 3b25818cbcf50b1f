"""The packed state: what it holds, and that nothing of it is lost in silence."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from streaming.groups import decode_reserved, decode_state, encode_state
from streaming.groups.state import STATE_VERSION, CountSeen, GroupState, TopicState, UnknownStateVersion, counts_from
from streaming.log_health import RoundsState, UnreadableState
from tests.groups import record_states
from tests.groups.build import Life, even, make_commit, make_observation, make_record, make_topic

GOLDEN = json.loads(record_states.GOLDEN.read_text())


def golden(name: str) -> GroupState:
    return decode_state(STATE_VERSION, base64.b64decode(GOLDEN[name]["payload"]))


def test_a_golden_state_is_what_its_life_leads_to() -> None:
    assert record_states.packed() == GOLDEN, (
        "the packed state has changed: raise STATE_VERSION if a release has this one, and run "
        "python -m tests.groups.record_states"
    )


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_each_field_of_a_golden_state_is_where_it_was(name: str) -> None:
    assert record_states.by_name(golden(name)) == GOLDEN[name]["holds"]


def structs_in(value: Any) -> Iterator[msgspec.Struct]:
    if isinstance(value, msgspec.Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    for held in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from structs_in(held)


def test_a_golden_state_fills_each_field_that_a_state_can_hold() -> None:
    # For each new field a state that fills it must be added to the recorder.
    structs = [struct for name in GOLDEN for struct in structs_in(golden(name))]
    fill = {(type(struct), name) for struct in structs for name, _ in record_states.filled(struct)}
    have = {(kind, name) for kind in record_states.structs_of(GroupState) for name in kind.__struct_fields__}
    assert {f"{kind.__name__}.{name}" for kind, name in have - fill} == set()


@pytest.mark.parametrize("version", [0, STATE_VERSION + 1])
def test_a_state_of_a_version_that_is_not_known_is_refused_with_what_to_do(version: int) -> None:
    with pytest.raises(UnknownStateVersion, match=r"run the release that wrote it$"):
        decode_state(version, encode_state(GroupState())[1])
    with pytest.raises(UnknownStateVersion, match="run the release that wrote it"):
        decode_reserved((version, encode_state(RoundsState(5))[1]), RoundsState)


def test_a_state_with_more_fields_than_are_known_is_refused_wherever_they_stand() -> None:
    fields = msgspec.msgpack.decode(encode_state(golden("stopping"))[1])
    with pytest.raises(UnknownStateVersion, match="fields that this release does not know"):
        decode_state(STATE_VERSION, msgspec.msgpack.encode([*fields, 7]))
    fields[GroupState.__struct_fields__.index("partitions")]["x"][0].append(1)
    with pytest.raises(UnknownStateVersion):
        decode_state(STATE_VERSION, msgspec.msgpack.encode(fields))
    _, reserved = encode_state(RoundsState(5))
    with pytest.raises(UnknownStateVersion):
        decode_reserved((STATE_VERSION, msgspec.msgpack.encode([*msgspec.msgpack.decode(reserved), 7])), RoundsState)


def test_each_struct_in_a_state_refuses_what_it_does_not_know() -> None:
    structs = record_states.structs_of(*record_states.KINDS)
    assert [kind.__name__ for kind in structs if not kind.__struct_config__.forbid_unknown_fields] == []


def test_the_state_of_a_reserved_key_comes_back() -> None:
    assert decode_reserved(encode_state(RoundsState(5)), RoundsState) == RoundsState(5)
    assert decode_reserved(None, UnreadableState) == UnreadableState()


def test_a_state_is_packed_the_same_however_it_was_reached() -> None:
    one, two = Life(), Life()
    inputs = (
        make_record(5, even("x", 2, "a", "b")),
        make_commit(6, 1, topic="x"),
        make_observation(10, make_topic("x", 2)),
    )
    one.take(*inputs)
    for item in inputs:
        two.take(item)
    assert one.state == two.state


@pytest.mark.parametrize(
    ("horizon", "counts"),
    [
        (5, {1, 2, 3}),  # before the first round: the first count is the best guess
        (10, {1, 2, 3}),
        (29, {1, 2, 3}),
        (30, {2, 3}),
        (59, {2, 3}),
        (60, {3}),
        (1_000, {3}),
    ],
)
def test_the_counts_since_a_time_include_the_one_in_force_at_it(horizon: int, counts: set[int]) -> None:
    seen = [CountSeen(1, 10, 20), CountSeen(2, 30, 40), CountSeen(3, 60, 70)]
    assert counts_from(TopicState(seen, 10), horizon) == counts


def test_a_group_seen_by_a_round_at_the_very_beginning_of_elapsed_time_is_kept() -> None:
    assert GroupState().is_void()
    assert not GroupState(elapsed=0).is_void()
