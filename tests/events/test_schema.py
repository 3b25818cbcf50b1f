"""The schema of events and rounds, by the bytes of records: valid ones, and those that no probe can have written."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streaming.events import (
    MAX_RECORD_BYTES,
    Broker,
    Brokers,
    ClusterTopicEvent,
    CoordinatorMove,
    GroupEvent,
    LogHold,
    RejectedEvent,
    RetentionSettings,
    RoundClosed,
    RoundOpened,
    RoundSeen,
    TopicEvent,
    UnknownType,
    UnreadTimestamp,
    decode_event,
    decode_round,
    encode_round,
)

CLOSED: dict[str, object] = {
    "type": "closed",
    "v": 1,
    "cluster": "prod",
    "probe": "p",
    "interval_ms": 10_000,
    "round": 6,
    "time": 1_767_225_600_000,
    "log": [5, 7],
    "log_end": [5, 9],
    "events": {"0": [3, 8]},
    "groups": 2,
    "written": 5,
    "holds": [{"partition": 1, "since": 1_767_225_500_000, "groups": 2}],
    "resting": {"0": [3, 4]},
}


def record(**changes: object) -> bytes:
    return json.dumps(CLOSED | changes).encode()


BROKERS: dict[str, object] = {
    "up": [[1, "kafka-1", "a", None], [3, "kafka-3", None, 1_767_225_500_000]],
    "gone": [[2, "kafka-2", "b", 1_767_225_400_000]],
    "coordinators": [[1, 8], [3, 2]],
    "moves": [[0, 2, 1, 7, 8, 1_767_225_400_000, 4, None]],
}


OPENED = {"type": "opened", "v": 1, "cluster": "prod", "probe": "p", "interval_ms": 10_000}


def test_an_opening_record_of_an_older_probe_says_nothing_of_a_run_and_is_written_as_before() -> None:
    value = b'{"type":"opened","v":1,"cluster":"prod","probe":"p","interval_ms":10000}'
    assert decode_round(value) == RoundOpened(1, "prod", "p", 10_000, None, None, ends=False)
    assert encode_round(RoundOpened(1, "prod", "p", 10_000)) == value


def test_a_run_its_supervisor_and_its_end_are_read() -> None:
    found = decode_round(json.dumps(OPENED | {"since": 7, "supervisor": "unit@host", "ends": True}).encode())
    assert found == RoundOpened(1, "prod", "p", 10_000, 7, "unit@host", ends=True)


@pytest.mark.parametrize(
    "wrong", [{"since": -1}, {"since": 2**63}, {"supervisor": ""}, {"supervisor": "x" * 101}], ids=str
)
def test_an_impossible_run_is_not_known_and_the_record_counts(wrong: dict[str, object]) -> None:
    assert decode_round(json.dumps(OPENED | wrong).encode()) == RoundOpened(1, "prod", "p", 10_000)


def test_the_brokers_of_a_closing_record_are_read_and_may_be_missing() -> None:
    old = decode_round(record())
    assert isinstance(old, RoundClosed)
    assert old.brokers is None
    closed = decode_round(record(brokers=BROKERS))
    assert isinstance(closed, RoundClosed)
    assert closed.brokers == Brokers(
        (Broker(1, "kafka-1", "a"), Broker(3, "kafka-3", None, 1_767_225_500_000)),
        (Broker(2, "kafka-2", "b", 1_767_225_400_000),),
        ((1, 8), (3, 2)),
        (CoordinatorMove(0, 2, 1, 7, 8, 1_767_225_400_000, gone_round=4),),
    )
    assert decode_round(encode_round(closed)) == closed


@pytest.mark.parametrize(
    "changes",
    [
        {"up": [[-1, "h", None, None]]},
        {"up": [[1, "h" * 300, None, None]]},
        {"up": [[1, "h", "r" * 300, None]]},
        {"gone": [[2, "h", None, -5]]},
        {"gone": [[2, "h", None, 10**17]]},
        {"coordinators": [[1, 8]]},
        {"coordinators": [[1, 8], [3, -2]]},
        {"moves": [[2, 2, 1, 7, 8, 5, None, None]]},
        {"moves": [[0, 2, 1, 8, 7, 5, None, None]]},
        {"moves": [[0, 2, 1, 7, 8, 5, -1, None]]},
        {"moves": [[0, 2, 1, 7, 8, 5, None, -1]]},
        {"moves": [[0, 2, 1, 7, 8, 5, None, None]] * 7},
    ],
)
def test_impossible_brokers_are_not_known_and_the_round_counts(changes: dict[str, object]) -> None:
    closed = decode_round(record(brokers=BROKERS | changes))
    assert isinstance(closed, RoundClosed)
    assert (closed.brokers, closed.round) == (None, 6)


SEEN: dict[str, object] = CLOSED | {"type": "closed_seen", "log": [], "log_end": [], "holds": None, "seen_by": "admin"}


def test_a_closing_record_without_a_log_is_read_as_one_of_its_source() -> None:
    closed = decode_round(json.dumps(SEEN).encode())
    assert isinstance(closed, RoundSeen)
    assert (closed.source, closed.log, closed.events) == ("admin", (), {"0": (3, 8)})
    logged = decode_round(record())
    assert isinstance(logged, RoundClosed)
    assert logged.source == "log"


def test_the_brokers_that_a_rocketmq_probe_knows_are_read_and_may_be_missing() -> None:
    old = decode_round(json.dumps(SEEN | {"seen_by": "rocketmq"}).encode())
    assert isinstance(old, RoundSeen)
    assert old.known_brokers is None
    closed = decode_round(json.dumps(SEEN | {"known_brokers": {"broker-a": 0, "broker-b": 86_390_000}}).encode())
    assert isinstance(closed, RoundSeen)
    assert closed.known_brokers == {"broker-a": 0, "broker-b": 86_390_000}
    assert decode_round(encode_round(closed)) == closed


@pytest.mark.parametrize(
    "known",
    [{"broker-a": -1}, {"broker-a": 2**63}, {"": 0}, {"b" * 513: 0}, {str(number): 0 for number in range(1_001)}],
    ids=lambda known: str(known)[:20],
)
def test_impossible_brokers_of_rocketmq_are_not_known_and_the_round_counts(known: dict[str, int]) -> None:
    closed = decode_round(json.dumps(SEEN | {"known_brokers": known}).encode())
    assert isinstance(closed, RoundSeen)
    assert (closed.known_brokers, closed.round) == (None, 6)


@pytest.mark.parametrize(
    "changes",
    [{"log": [5], "log_end": [5]}, {"seen_by": "log"}, {"seen_by": "x" * 99}, {"events": {"0": [8, 3]}}, {"holds": []}],
)
def test_a_closing_record_that_contradicts_itself_is_refused(changes: dict[str, object]) -> None:
    assert isinstance(decode_round(json.dumps(SEEN | changes).encode()), RejectedEvent)


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "commits_seen", "whole": True, "offsets": {"x": [[-1, 5]]}},
        {"type": "commits_seen", "whole": True, "offsets": {"x": [[0, -2]]}},
        {"type": "commits_seen", "whole": True, "offsets": {"x": [[0, 1], [0, 2]]}},
        {"type": "classic_seen", "protocol_type": "", "protocol": "", "members": [{"id": "a"}, {"id": "a"}]},
        {"type": "classic_seen", "protocol_type": "", "protocol": "", "members": [{"id": "a"}], "more": 1},
        {"type": "consumer_seen", "epoch": 2**31, "assignment_epoch": 0, "assignor": "", "members": []},
        {"type": "consumer_seen", "epoch": 1, "assignment_epoch": 1, "assignor": "",
         "members": [{"id": "a", "epoch": 1, "target": [["i", "x", [-1]]]}]},
        {"type": "group_seen", "time": 5, "log_partition": 0, "log_position": 0, "topics": 0, "state": None,
         "protocol_type": None, "group_type": None},
    ],
)  # fmt: skip
def test_what_was_seen_is_refused_where_no_probe_could_have_seen_it(changes: dict[str, object]) -> None:
    common = {"v": 1, "cluster": "c", "round": 4, "group": "g"}
    assert isinstance(decode_event(json.dumps(common | changes).encode()), RejectedEvent)


def test_a_closing_record_is_read() -> None:
    closed = decode_round(record())
    assert isinstance(closed, RoundClosed)
    assert (closed.log, closed.log_end) == ((5, 7), (5, 9))
    assert closed.holds == (LogHold(1, 1_767_225_500_000, 2),)
    assert closed.resting == {"0": (3, 4)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"log": [5]}, "positions of 1 and ends of 2 log partitions"),
        ({"log": [5, 2**63]}, "a negative or impossible log position"),
        ({"log_end": [5, 2**70]}, "a negative or impossible log position"),
        ({"log_end": [5, -1]}, "a negative or impossible log position"),
        # The hold would be empty or negative.
        ({"log_end": [5, 7]}, "a hold of log partition 1, which nothing holds back"),
        ({"log_end": [5, 3]}, "a hold of log partition 1, which nothing holds back"),
        ({"holds": [{"partition": 2, "since": 1, "groups": 2}]}, "a hold of log partition 2 with 2 groups"),
        ({"events": {"0": [8, 3]}}, "event positions 8 to 3 of partition '0'"),
        ({"events": {"9" * 5_000: [0, 1]}}, f"event positions 0 to 1 of partition '{'9' * 20}'"),
        ({"resting": {"0": [0, 2**70]}}, f"event positions 0 to {2**70} of partition '0'"),
        ({"resting": {"x": [0, 1]}}, "event positions 0 to 1 of partition 'x'"),
        ({"resting": {"-1": [0, 1]}}, "event positions 0 to 1 of partition '-1'"),
        ({"resting": {"1000000": [0, 1]}}, "event positions 0 to 1 of partition '1000000'"),
        # Python refuses to parse a number with this many digits.
        ({"resting": {"9" * 5_000: [0, 1]}}, f"event positions 0 to 1 of partition '{'9' * 20}'"),
    ],
)
def test_a_closing_record_that_no_probe_can_have_written_is_rejected_with_its_reason(
    changes: dict[str, object], reason: str
) -> None:
    assert decode_round(record(**changes)) == RejectedEvent(reason)


GROUP: dict[str, object] = {
    "type": "group",
    "v": 1,
    "cluster": "prod",
    "round": 6,
    "time": 1_767_225_600_000,
    "group": "orders",
    "log_partition": 1,
    "log_position": 7,
    "topics": 0,
    "state": None,
    "protocol_type": None,
    "group_type": None,
}


def event(**changes: object) -> bytes:
    return json.dumps(GROUP | changes).encode()


@pytest.mark.parametrize("version", [1, 2, 900, 2**63])
def test_a_record_of_any_version_from_one_up_is_read_as_far_as_its_fields_are_known(version: int) -> None:
    found = decode_event(event(v=version, quota=[1, {"a": None}], idle=True))
    assert isinstance(found, GroupEvent)
    assert (found.v, found.group, found.idle, found.held_since) == (version, "orders", True, None)
    closed = decode_round(record(v=version, quota={}, holds=[{"partition": 1, "since": 5, "groups": 2, "quota": 3}]))
    assert isinstance(closed, RoundClosed)
    assert closed.holds == (LogHold(1, 5, 2),)


TOPIC: dict[str, object] = {
    "type": "topic",
    "v": 1,
    "cluster": "prod",
    "round": 6,
    "group": "orders",
    "topic": "t",
    "partitions": 1,
    "topic_id": None,
    "end": [5],
    "stable": [5],
    "start": [0],
}


def topic(**changes: object) -> bytes:
    return json.dumps(TOPIC | changes).encode()


def kept(**changes: object) -> dict[str, object]:
    return {"ms": 5, "bytes": -1, "deletes": True, "append_time": False, **changes}


def test_a_topic_of_a_probe_that_does_not_report_its_retention_is_read_as_one_whose_is_not_known() -> None:
    found = decode_event(topic())
    assert isinstance(found, TopicEvent)
    assert found.retention is None
    told = decode_event(topic(retention=kept(quota=7)))
    assert isinstance(told, TopicEvent)
    assert told.retention == RetentionSettings(5, -1, deletes=True, append_time=False)


@pytest.mark.parametrize("wrong", [{"ms": -2}, {"ms": 2**63}, {"bytes": -2}, {"bytes": 2**70}])
def test_a_retention_that_makes_no_sense_is_not_known_and_costs_no_offsets(wrong: dict[str, object]) -> None:
    found = decode_event(topic(retention=kept(**wrong)))
    assert isinstance(found, TopicEvent)
    assert (found.retention, found.end) == (None, (5,))


STAMP = 1_767_225_600_000


def test_timestamps_of_unread_records_are_read_and_those_of_older_probes_are_none() -> None:
    found = decode_event(topic())
    assert isinstance(found, TopicEvent)
    assert found.unread == ()
    told = decode_event(topic(unread=[[0, 3, STAMP, STAMP + 5, False]]))
    assert isinstance(told, TopicEvent)
    assert told.unread == (UnreadTimestamp(0, 3, STAMP, STAMP + 5, own=False),)


@pytest.mark.parametrize(
    "wrong",
    [
        [1, 3, STAMP, -1, True],  # no such partition
        [-1, 3, STAMP, -1, True],
        [0, -1, STAMP, -1, True],
        [0, 2**63, STAMP, -1, True],
        [0, 3, -1, -1, True],
        [0, 3, 1_700_000_000, -1, True],  # seconds
        [0, 3, 253_402_300_800_000, -1, True],  # the year 10000
        [0, 3, STAMP, STAMP, False],
        [0, 3, STAMP, 2**63 - 1, False],
    ],
)
def test_timestamps_that_make_no_sense_are_not_known_and_cost_no_offsets(wrong: list[object]) -> None:
    found = decode_event(topic(unread=[wrong]))
    assert isinstance(found, TopicEvent)
    assert (found.unread, found.end) == ((), (5,))
    many = decode_event(topic(unread=[[0, 3, STAMP, -1, True]] * 2))
    assert isinstance(many, TopicEvent)
    assert many.unread == ()


@pytest.mark.parametrize("version", [0, -1, 1.5, "1", None, True])
def test_a_record_without_a_version_from_one_up_is_none_of_ours(version: object) -> None:
    for given in (event(v=version), event(v=version, type="quota"), record(v=version)):
        assert isinstance(decode_event(given), RejectedEvent)
        assert isinstance(decode_round(given), RejectedEvent)
    without = {name: value for name, value in GROUP.items() if name != "v"}
    assert isinstance(decode_event(json.dumps(without).encode()), RejectedEvent)


@pytest.mark.parametrize("decode", [decode_event, decode_round])
def test_a_type_that_is_not_known_is_no_damage(decode: Callable[[bytes], object]) -> None:
    found = decode(event(v=3, type="quota\n\x1b[2J", group=7))
    assert found == UnknownType("quota\\n\\x1b[2J")
    assert isinstance(found, UnknownType)
    assert found.reason == "type quota\\n\\x1b[2J is not known to this release; a newer probe may have written it"
    long = decode(event(type="x" * 9_000))
    assert isinstance(long, UnknownType)
    assert len(long.name) <= 100


def test_a_known_type_in_the_wrong_topic_or_with_a_changed_field_is_none_of_ours() -> None:
    assert isinstance(decode_event(record()), RejectedEvent)
    assert isinstance(decode_round(event()), RejectedEvent)
    assert isinstance(decode_event(event(v=2, topics="0")), RejectedEvent)


def test_a_record_that_is_larger_than_any_probe_writes_is_not_looked_at() -> None:
    filler = "x" * MAX_RECORD_BYTES
    assert decode_event(event(state=filler)) == RejectedEvent(
        f"the record has {len(event(state=filler)):,} bytes; no probe writes one of more than 16,777,216"
    )
    assert isinstance(decode_round(record(probe=filler)), RejectedEvent)


def test_a_reason_shows_no_control_characters() -> None:
    found = decode_event(b'{"type":"group","v":1,"\x1b[2J\n":')
    assert isinstance(found, RejectedEvent)
    assert found.reason.isprintable()


CLUSTER_TOPIC: dict[str, object] = {
    "type": "cluster_topic", "v": 1, "cluster": "prod", "round": 7, "time": 1_767_225_600_000, "topic": "orders",
    "end": [5, 6], "start": [0, 1], "sizes": [50, 60], "leaders": [1, -1], "groups": 1, "readers": ["billing"],
}  # fmt: skip


def test_an_event_of_a_topic_of_the_cluster_is_read() -> None:
    event = decode_event(json.dumps(CLUSTER_TOPIC).encode())
    assert isinstance(event, ClusterTopicEvent)
    assert (event.topic, event.end, event.sizes, event.readers) == ("orders", (5, 6), (50, 60), ("billing",))


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": "x" * 250},
        {"topic": ".."},
        {"topic": "orders; DROP TABLE topics"},
        {"topic": "orders\n"},
        {"end": [5]},
        {"end": [], "start": [], "sizes": [], "leaders": []},
        {"sizes": [50]},
        {"sizes": [50, -2]},
        {"end": [5, 2**63]},
        {"leaders": [1, -2]},
        {"gone": "deleted"},
        {"gone": ""},
        {"hidden": "x" * 101},
        {"groups": 2},
        {"groups": 2**40},
        {"readers": ["x" * 1_001]},
        {"readers": ["billing", "audit"]},
        {"round": -1},
        {"time": 2**62},
    ],
)
def test_an_impossible_event_of_a_topic_of_the_cluster_is_rejected(changes: dict[str, object]) -> None:
    assert isinstance(decode_event(json.dumps(CLUSTER_TOPIC | changes).encode()), RejectedEvent)
