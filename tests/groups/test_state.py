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

GOLDEN = json.loads(record_states.GOLDEN.read_text())


def test_a_golden_state_is_what_this_release_packs() -> None:
    assert record_states.packed() == GOLDEN, (
        "the packed state has changed: raise STATE_VERSION if a release has this one, and run "
        "python -m tests.groups.record_states"
    )


@pytest.mark.parametrize("kind", record_states.KINDS)
@pytest.mark.parametrize("which", ["first", "last"])
def test_each_field_of_a_golden_state_is_where_it_was(kind: type[msgspec.Struct], which: str) -> None:
    golden = GOLDEN[f"{kind.__name__} {which}"]
    state = decode_reserved((STATE_VERSION, base64.b64decode(golden["payload"])), kind)
    assert record_states.by_name(state) == golden["holds"]


@pytest.mark.parametrize("version", [0, STATE_VERSION + 1])
def test_a_state_of_a_version_that_is_not_known_is_refused_with_what_to_do(version: int) -> None:
    with pytest.raises(UnknownStateVersion, match=r"run the release that wrote it$"):
        decode_state(version, encode_state(GroupState())[1])
    with pytest.raises(UnknownStateVersion, match="run the release that wrote it"):
        decode_reserved((version, encode_state(RoundsState(5))[1]), RoundsState)


@pytest.mark.parametrize("kind", record_states.KINDS)
def test_a_state_with_a_field_that_is_not_known_is_refused(kind: type[msgspec.Struct]) -> None:
    fields = msgspec.msgpack.decode(base64.b64decode(GOLDEN[f"{kind.__name__} first"]["payload"]), strict=False)
    with pytest.raises(UnknownStateVersion, match="fields that this release does not know"):
        decode_reserved((STATE_VERSION, msgspec.msgpack.encode([*fields, 7])), kind)


def structs_in(value: Any) -> Iterator[msgspec.Struct]:
    if isinstance(value, msgspec.Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    for held in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from structs_in(held)


def test_each_struct_in_a_state_refuses_what_it_does_not_know() -> None:
    states = [record_states.filled(kind, last) for kind in record_states.KINDS for last in (False, True)]
    structs = {type(struct) for struct in structs_in(states)}
    assert len(structs) > 50
    assert [kind.__name__ for kind in structs if not kind.__struct_config__.forbid_unknown_fields] == []


def test_the_state_of_a_reserved_key_comes_back() -> None:
    assert decode_reserved(encode_state(RoundsState(5)), RoundsState) == RoundsState(5)
    assert decode_reserved(None, UnreadableState) == UnreadableState()


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
