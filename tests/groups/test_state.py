"""The packed state: this release must continue the checkpoints of earlier ones."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from streaming.groups import decode_reserved, decode_state, encode_reserved, encode_state
from streaming.groups.rows import GroupHealthRow
from streaming.groups.state import STATE_VERSION, CountSeen, GroupState, TopicState, UnknownStateVersion, counts_from
from streaming.log_health import RoundsState, UnreadableState
from tests.groups import record_states
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.modern_log import TOPIC_ID, read, stands
from tests.groups.record_states import filled, shape_of, told

GOLDEN = {
    version: json.loads(record_states.GOLDEN.with_name(f"state_v{version}.json").read_text())["states"]
    for version in range(1, STATE_VERSION + 1)
}
EACH = [(version, name) for version, states in GOLDEN.items() for name in sorted(states)]
SHAPES = json.loads(record_states.SHAPES.read_text())


def resumed(name: str, version: int = 1) -> Life:
    life = Life()
    golden = GOLDEN[version][name]
    life.state = decode_state(golden["version"], base64.b64decode(golden["payload"]))
    return life


@pytest.mark.parametrize(("version", "name"), EACH)
def test_a_state_of_each_version_comes_back(version: int, name: str) -> None:
    state = resumed(name, version).state
    assert state is not None
    assert decode_state(*encode_state(state)) == state


def structs_in(value: Any) -> Iterator[msgspec.Struct]:
    if isinstance(value, msgspec.Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    for held in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from structs_in(held)


@pytest.mark.parametrize(("version", "name"), EACH)
def test_each_field_of_a_state_of_each_version_is_where_it_was(version: int, name: str) -> None:
    holds = copy.deepcopy(GOLDEN[version][name]["holds"])
    if version < 4:
        # Version 4 begins to sum up the lag again, by the time of the rounds.
        holds.pop("lag_sums", None)
    cost = holds.get("classic", {}).get("cost")
    if version < 5 and cost is not None:
        # Version 5 waits for members: each of these partitions has one of its own.
        ((topic, times),) = cost.pop("waiting").items()
        cost["owners"] = [{"stops": [[time, 1, False]]} for time in times.values()]
        cost["places"] = {topic: {partition: number for number, partition in enumerate(times)}}
        cost["decided"] = cost["row"]["record_time"]
    if version == 1 and "health" in holds:
        # Version 2 knows more columns of the last row of `group_health`.
        row = msgspec.msgpack.decode(base64.b64decode(holds["health"]))
        reason = "lag_unknown" if row[26] is None else None
        holds["health"] = base64.b64encode(msgspec.msgpack.encode([*row, None, None, reason, *[None] * 17])).decode()
    if version < 5 and "health" in holds:
        row = msgspec.msgpack.decode(base64.b64decode(holds["health"]))
        holds["health"] = base64.b64encode(msgspec.msgpack.encode([*row, None])).decode()
    assert told(resumed(name, version).state) == holds


def test_a_golden_state_fills_each_field_that_a_state_can_hold() -> None:
    # For each new field a state that fills it must be added to the recorder.
    newest = [resumed(name, STATE_VERSION).state for name in GOLDEN[STATE_VERSION]]
    structs = [struct for state in newest for struct in structs_in(state)]
    fill = {(type(struct), name) for struct in structs for name, _ in filled(struct)}
    have = {(kind, name) for kind in record_states.structs_of(GroupState) for name in kind.__struct_fields__}
    assert {f"{kind.__name__}.{name}" for kind, name in have - fill} == set()


def test_a_cooperative_rebalance_of_version_1_is_finished() -> None:
    life = resumed("cooperative")
    rows = life.take(make_commit(60, 6, topic="x", partition=1), make_observation(70, make_topic("x", 2)))
    (churn,) = rows.rebalance_churn
    # Partition 1 moved from a to b; its last commit before that was at 9, the first after it at 60.
    assert (churn.decision, churn.revision, churn.follows, churn.partitions_moved) == (45, 2, 35, 1)
    assert (churn.unassigned_partition_seconds_min, churn.unassigned_partition_seconds_max) == (0.02, 51.0)
    assert [(row.decision, row.verdict) for row in rows.drift] == [(45, "identical")]
    # 31, 33 and 29 were committed while the state was packed.
    assert [(row.partition, row.committed_offset, row.commits, row.rewound_by) for row in rows.lag] == [
        (0, 29, 3, 4),
        (1, 6, 1, 0),
    ]
    assert [(row.member_id, row.lag_status) for row in rows.lag] == [("a", "rewound"), ("b", "ok")]
    assert rows.group_health[-1].commits == 4


def test_findings_of_version_1_keep_their_since_times() -> None:
    life = resumed("partitions_pending_handover")
    life.take(make_observation(30, make_topic("x", 3), state="PreparingRebalance"))
    (row,) = life.rows.group_health
    assert [(f.finding, f.since) for f in row.findings] == [
        ("stale_metadata", START + 20 * SECOND),
        ("partitions_pending_handover", START + 15 * SECOND),
    ]


@pytest.mark.parametrize("name", ["partitions_pending_handover", "stopping"])
def test_a_group_of_version_1_gets_no_row_of_health_for_columns_that_are_new_and_say_nothing(name: str) -> None:
    life = resumed(name)
    assert life.state is not None
    health = life.state.health
    assert health is not None
    row = dict(zip(GroupHealthRow.__struct_fields__, msgspec.msgpack.decode(health), strict=True))
    assert row["time_behind_reason"] == ("lag_unknown" if row["lag_total"] is None else None)
    assert [row[name] for name in ("time_behind_seconds_min", "drain_seconds", "hot_partitions")] == [None] * 3


def test_the_judgement_of_lag_of_version_1_goes_on() -> None:
    life = resumed("stopping")
    rows = life.take(make_observation(301, make_topic("x", 1, end=300)))
    assert [(row.lag_status, row.lag, row.commits) for row in rows.lag] == [("stopped", 110, 0)]


def test_pauses_and_what_happened_to_offsets_in_version_1_go_on() -> None:
    life = resumed("consumer")
    topics = make_topic("orders", 4, end=1_300, topic_id=TOPIC_ID), make_topic("bills", 2, topic_id="second")
    commit = make_commit(50, 700, partition=3)
    rows = life.take(commit, make_observation(60, *topics, state=None, group_type="consumer"))
    # a gave up 2 and 3 at 31, after the target at 26; b had them at 32 and 39 and committed at 36 and 50.
    (churn,) = rows.rebalance_churn
    assert (churn.decision, churn.revision) == (25, 3)
    assert (churn.unassigned_partition_seconds_min, churn.unassigned_partition_seconds_max) == (1.0 + 8.0, 10.0 + 24.0)
    assert {
        f.finding: ((f.since - START) // SECOND, f.detail.split(": ")[1]) for f in rows.group_health[-1].findings
    } == {
        "reconciling": (25, "c"),
        "topic_recreated": (19, "bills (2 partitions instead of 3, 2 partitions with offsets of the previous topic)"),
        "rewound": (30, "orders 0 rewound by 50"),
        "offset_deleted": (30, "orders (1 partition)"),
    }


def test_what_members_of_version_1_had_and_the_racks_they_are_in_tell_what_other_strategies_had_given() -> None:
    life = resumed("classic")
    racks = (("r1", "r2"), ("r2",)) * 2
    rows = life.take(make_observation(70, make_topic("orders", 4, topic_id=TOPIC_ID, racks=racks))).what_if
    # a had all four, then 0 and 1; with racks a gets 0 and 2, b 1 and 3.
    assert [(row.decision, row.partitions_moved, row.reason) for row in rows if row.strategy == "range"] == [
        (30, 2, None),
        (35, 2, None),
    ]


def test_a_migration_of_version_1_is_told_on_the_way_up_and_on_the_way_down() -> None:
    (up,) = resumed("upgrading").take(*read([stands(3)], 15)).rebalance_churn
    assert (up.kind, up.decision, up.incarnation, up.partitions_moved, up.joined) == ("migration", 15, 5, 0, ())
    members = (make_member("a", assigned={"orders": (0, 1)}), make_member("b", assigned={"orders": (2,)}))
    (down,) = resumed("ending").take(make_record(36, members, generation=4)).rebalance_churn
    assert (down.kind, down.incarnation, down.left, down.partitions_moved, down.partitions_pending_handover) == (
        "migration",
        5,
        ("n",),
        0,
        1,
    )


def test_each_version_has_the_shape_that_was_recorded_with_it() -> None:
    assert record_states.shape_of(*record_states.KINDS) == SHAPES[str(STATE_VERSION)], (
        f"the packed state has changed: raise STATE_VERSION beyond {STATE_VERSION}, write the upgrade, and run "
        "python -m tests.groups.record_states"
    )
    assert {int(version) for version in SHAPES} == set(range(1, STATE_VERSION + 1))


class GroupStateLater(GroupState, array_like=True):
    """The struct in a possible later release."""

    something_new: int = 7


class UnreadableLater(UnreadableState, array_like=True):
    """The same for a log partition."""

    something_new: int = 7


class RoundsLater(RoundsState, array_like=True):
    """The same for the rounds."""

    something_new: int = 7


class Outer(msgspec.Struct):
    """A struct that contains another."""

    groups: dict[str, list[GroupStateLater | None]] = {}


def test_a_field_appended_is_another_shape_wherever_it_stands() -> None:
    assert shape_of(GroupStateLater) != shape_of(GroupState)
    assert shape_of(Outer)["GroupStateLater"] == [*shape_of(GroupState)["GroupState"], "something_new: int"]
    assert shape_of(GroupState)["CommitWindow"][:2] == ["tag c", "topic: str"]


def test_a_state_of_a_later_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownStateVersion, match=r"run the release that wrote it$"):
        decode_state(STATE_VERSION + 1, encode_state(GroupState())[1])


def test_a_state_with_more_fields_than_are_known_is_refused_whatever_its_version_says() -> None:
    life = resumed("cooperative")
    assert life.state is not None
    later = msgspec.structs.asdict(life.state)
    with pytest.raises(UnknownStateVersion, match="fields that this release does not know"):
        decode_state(*encode_state(GroupStateLater(**later)))


def test_so_is_one_in_which_a_part_has_more_fields() -> None:
    state = GroupState()
    state.partitions = {"x": {0: msgspec.structs.replace(resumed("stopping").state.partitions["x"][0])}}  # type: ignore[union-attr]
    packed = msgspec.msgpack.decode(encode_state(state)[1])
    place = GroupState.__struct_fields__.index("partitions")
    packed[place]["x"][0].append(1)
    with pytest.raises(UnknownStateVersion):
        decode_state(STATE_VERSION, msgspec.msgpack.encode(packed))


def test_each_struct_in_a_state_refuses_what_it_does_not_know() -> None:
    structs = record_states.structs_of(*record_states.KINDS)
    assert [kind.__name__ for kind in structs if not kind.__struct_config__.forbid_unknown_fields] == []


def test_the_state_of_a_reserved_key_comes_back() -> None:
    assert decode_reserved(encode_reserved(RoundsState(5)), RoundsState) == RoundsState(5)
    assert decode_reserved(None, UnreadableState) == UnreadableState()


def test_the_state_of_a_reserved_key_of_a_later_release_is_refused() -> None:
    with pytest.raises(UnknownStateVersion, match="run the release that wrote it"):
        decode_reserved((STATE_VERSION + 1, encode_reserved(RoundsState(5))[1]), RoundsState)
    with pytest.raises(UnknownStateVersion):
        decode_reserved(encode_reserved(RoundsLater(5)), RoundsState)
    with pytest.raises(UnknownStateVersion):
        decode_reserved(encode_reserved(UnreadableLater()), UnreadableState)


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
