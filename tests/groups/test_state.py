"""The packed state: what an earlier release left in a checkpoint must go on in this one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streaming.groups.exceptions import UnknownStateVersion
from streaming.groups.quarantine import PartitionState
from streaming.groups.rounds import RoundsState
from streaming.groups.state import (
    STATE_VERSION,
    GroupState,
    decode_reserved,
    decode_state,
    encode_reserved,
    encode_state,
)
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_record,
    make_tick,
    make_topic,
)
from tests.groups.modern_log import TOPIC_ID, read, stands

GOLDEN = json.loads((Path(__file__).parent / "data" / "state_v1.json").read_text())["states"]


def resumed(name: str) -> Life:
    life = Life()
    life.state = decode_state(GOLDEN[name]["version"], base64.b64decode(GOLDEN[name]["payload"]))
    return life


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_state_of_version_1_comes_back(name: str) -> None:
    state = resumed(name).state
    assert state is not None
    assert decode_state(*encode_state(state)) == state


def told(value: Any) -> Any:
    """A value by the names of its fields, as JSON has it; without those that are as by default."""
    if isinstance(value, msgspec.Struct):
        return {name: told(held) for name, held in filled(value)}
    if isinstance(value, dict):
        return {str(key): told(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [told(held) for held in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def filled(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Fields that are not as by default."""
    for field in msgspec.structs.fields(struct):
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()  # type: ignore[operator]
        value = getattr(struct, field.name)
        if value != default:
            yield field.name, value


def structs_in(value: Any) -> Iterator[msgspec.Struct]:
    if isinstance(value, msgspec.Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    for held in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from structs_in(held)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_each_field_of_a_state_of_version_1_is_where_it_was(name: str) -> None:
    assert told(resumed(name).state) == GOLDEN[name]["holds"]


def test_a_golden_state_fills_each_field_that_a_state_can_hold() -> None:
    # Whoever appends a field adds a state here that fills it.
    structs = [struct for name in GOLDEN for struct in structs_in(resumed(name).state)]
    have = {(type(struct).__name__, name) for struct in structs for name in struct.__struct_fields__}
    fill = {(type(struct).__name__, name) for struct in structs for name, _ in filled(struct)}
    assert have - fill == set()


def test_a_cooperative_rebalance_of_version_1_is_finished() -> None:
    life = resumed("cooperative")
    rows = life.take(make_commit(60, 6, topic="x", partition=1), make_tick(70, make_topic("x", 2)))
    (churn,) = rows.rebalance_churn
    # Partition 1 went from a to b; its last commit before was at 9, the first after at 60.
    assert (churn.record_offset, churn.revision, churn.follows, churn.moves) == (45, 2, 35, 1)
    assert (churn.unowned_partition_seconds_min, churn.unowned_partition_seconds_max) == (0.02, 51.0)
    assert [(row.record_offset, row.verdict) for row in rows.drift] == [(45, "valid_unverified")]
    # 31, 33 and 29 were committed while the state was packed.
    assert [(row.partition, row.committed_offset, row.commits, row.rewound_by) for row in rows.lag] == [
        (0, 29, 3, 4),
        (1, 6, 1, 0),
    ]
    assert [(row.member_id, row.lag_status) for row in rows.lag] == [("a", "rewound"), ("b", "ok")]
    assert rows.group_health[-1].commits == 4


def test_findings_of_version_1_keep_their_since_times() -> None:
    life = resumed("in_transfer")
    life.take(make_tick(30, make_topic("x", 3), state="PreparingRebalance"))
    (row,) = life.rows.group_health
    assert [(f.finding, f.since) for f in row.findings] == [
        ("stale_metadata", START + 20 * SECOND),
        ("in_transfer", START + 15 * SECOND),
    ]


def test_of_an_upgrade_that_an_older_release_only_counted_no_row_is_made_up() -> None:
    # (Its records lie where nothing is looked for any more.)
    life = resumed("moving")
    rows = life.take(make_tick(30, make_topic("x", 2), group_type="consumer"))
    assert rows.rebalance_churn == rows.drift == []
    row = rows.group_health[-1]
    assert (row.verdict, row.verdict_reason, row.members, row.generation) == (
        "pending",
        "no target assignment of the group was read yet",
        0,
        None,
    )


def test_the_judgement_of_lag_of_version_1_goes_on() -> None:
    life = resumed("stopping")
    rows = life.take(make_tick(301, make_topic("x", 1, end=300)))
    assert [(row.lag_status, row.lag, row.commits) for row in rows.lag] == [("stopped", 110, 0)]


def test_pauses_and_what_happened_to_offsets_in_version_1_go_on() -> None:
    life = resumed("consumer")
    topics = make_topic("orders", 4, end=1_300, topic_id=TOPIC_ID), make_topic("bills", 2, topic_id="second")
    commit = make_commit(50, 700, partition=3)
    rows = life.take(commit, make_tick(60, *topics, state=None, group_type="consumer"))
    # a gave up 2 and 3 at 31, told to at 26; b had them at 32 and 39 and committed at 36 and 50.
    (churn,) = rows.rebalance_churn
    assert (churn.record_offset, churn.revision) == (25, 3)
    assert (churn.unowned_partition_seconds_min, churn.unowned_partition_seconds_max) == (1.0 + 8.0, 10.0 + 24.0)
    assert {
        f.finding: ((f.since - START) // SECOND, f.detail.split(": ")[1]) for f in rows.group_health[-1].findings
    } == {
        "not_converged": (25, "c"),
        "topic_recreated": (19, "bills (2 partitions instead of 3, 2 partitions with offsets of the topic before)"),
        "rewound": (30, "orders 0 rewound by 50"),
        "offset_deleted": (30, "orders (1 partition)"),
    }


def test_what_members_of_version_1_had_and_the_racks_they_are_in_tell_what_other_strategies_had_given() -> None:
    life = resumed("classic")
    racks = (("r1", "r2"), ("r2",)) * 2
    rows = life.take(make_tick(70, make_topic("orders", 4, topic_id=TOPIC_ID, racks=racks))).what_if
    # a had all four, then 0 and 1; by racks a gets 0 and 2, b 1 and 3.
    assert [(row.record_offset, row.moves, row.reason) for row in rows if row.strategy == "range"] == [
        (30, 2, None),
        (35, 2, None),
    ]


def test_a_migration_of_version_1_is_told_on_the_way_up_and_on_the_way_down() -> None:
    (up,) = resumed("upgrading").take(*read([stands(3)], 15)).rebalance_churn
    assert (up.kind, up.record_offset, up.incarnation, up.moves, up.joined) == ("migration", 15, 5, 0, ())
    members = (make_member("a", assigned={"orders": (0, 1)}), make_member("b", assigned={"orders": (2,)}))
    (down,) = resumed("ending").take(make_record(36, members, generation=4)).rebalance_churn
    assert (down.kind, down.incarnation, down.left, down.moves, down.in_transfer) == ("migration", 5, ("n",), 0, 1)


def test_a_field_appended_later_with_a_default_is_no_new_version() -> None:
    class GroupStateLater(GroupState, array_like=True):
        something_new: int = 7

    life = resumed("cooperative")
    assert life.state is not None
    later = msgspec.msgpack.decode(encode_state(life.state)[1], type=GroupStateLater)
    assert (later.something_new, later.current) == (7, life.state.current)


def test_a_state_of_a_later_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownStateVersion, match="run the release that wrote it, or start a new checkpoint"):
        decode_state(STATE_VERSION + 1, b"")


def test_the_state_of_a_reserved_key_comes_back() -> None:
    assert decode_reserved(encode_reserved(RoundsState(5)), RoundsState) == RoundsState(5)
    assert decode_reserved(None, PartitionState) == PartitionState()
    with pytest.raises(UnknownStateVersion):
        decode_reserved((STATE_VERSION + 1, b""), RoundsState)


def test_a_state_is_packed_the_same_however_it_was_reached() -> None:
    one, two = Life(), Life()
    inputs = (make_record(5, even("x", 2, "a", "b")), make_commit(6, 1, topic="x"), make_tick(10, make_topic("x", 2)))
    one.take(*inputs)
    for item in inputs:
        two.take(item)
    assert one.state == two.state
