"""The events of a batch's rounds become the core's inputs: those of its rounds that pass the filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from streaming.events import ClusterTopicEvent, Event, RocketMQGroupEvent, encode, pack
from streaming.groups.rows import RoundBroker
from streaming.job.source.events import EventReader, EventRound, OfGroup, event_rounds
from streaming.job.source.plan import plan_batch
from streaming.job.source.positions import Positions
from streaming.log_health import RoundsState, advance_rounds
from streaming.records import (
    Broker,
    Brokers,
    ClosedRound,
    ClusterTopicObservation,
    CountedRecords,
    GroupObservation,
    PartitionInput,
    QuarantinedRecord,
    RocketMQObservation,
    Seen,
    SeenCommits,
    TopicSeen,
    decode_closed_rounds,
    encode_inputs,
)
from tests.job.source.made_rounds import CLUSTER, LOG, at, closed, event_round, group, record, topic


@dataclass
class Read:
    groups: dict[str, list[OfGroup]]
    topics: dict[str, list[ClusterTopicObservation]]
    unreadable: list[PartitionInput]
    held: int


def everything(_: str) -> bool:
    return True


def read(
    events: Sequence[Event | bytes | None],
    *,
    rounds: Sequence[EventRound] = (event_round(),),
    start: int = 0,
    at: int = 10,
    watches: Callable[[str], bool] = everything,
    watches_topic: Callable[[str], bool] = everything,
) -> Read:
    reader = EventReader("events", 1, rounds, start, watches, watches_topic)
    for offset, event in enumerate(events, at):
        value = event if event is None or isinstance(event, bytes) else record(event)
        reader.add((offset, 2_000, b"key", value))
    held = reader.held
    return Read(*reader.take(), reader.unreadable.inputs(), held)


def kept(made: Read) -> list[tuple[int, str]]:
    return [(record.offset, record.reason) for record in made.unreadable if isinstance(record, QuarantinedRecord)]


def passed_over(made: Read) -> list[tuple[str, int]]:
    return [(item.kind, item.records) for item in made.unreadable if isinstance(item, CountedRecords)]


def test_an_observation_is_what_the_probe_saw_with_the_rounds_number_and_times() -> None:
    event = group("g", "a", "b", rested_since=100, rested_until=900)
    made = read([event], rounds=[event_round(round=107, elapsed=4_000)])
    expected = msgspec.structs.replace(event.saw, round=107, elapsed=4_000, closed=1_400)
    assert made.groups == {"g": [expected]}
    assert made.unreadable == []
    assert made.held > len(record(event))


def test_groups_in_one_record_share_their_topics_and_each_has_its_own_place_in_the_log() -> None:
    topics = topic("a"), topic("b")
    events = [group(name, topics=topics, log_partition=-1, log_position=-1) for name in ("g", "h", "ignored")]
    [told] = pack(events)
    made = read([encode(told)], watches=lambda name: name != "ignored", watches_topic=lambda name: name != "b")
    saw = {name: one for name, of in made.groups.items() for one in of if isinstance(one, GroupObservation)}
    # "g".hashCode() is 103.
    assert {name: (one.log_partition, one.log_position) for name, one in saw.items()} == {"g": (1, 200), "h": (0, 100)}
    assert saw["g"].topics == (topics[0],)
    assert saw["g"].topics is saw["h"].topics


def test_a_look_without_a_log_is_ordered_by_its_round() -> None:
    seen = Seen("admin", looked=True, commits=SeenCommits(True, {"x": ((0, 4),)}))
    at_round = event_round(round=107, closed=closed(7, []))
    made = read([group("g", log_partition=-1, log_position=-1, seen=seen)], rounds=[at_round])
    [found] = made.groups["g"]
    assert isinstance(found, GroupObservation)
    assert (found.log_partition, found.log_position, found.seen) == (-1, 107, seen)


def test_events_of_rounds_that_never_closed_and_outside_their_rounds_positions_are_skipped() -> None:
    made = read([group("g", number=6), group("g")])
    assert [observation.round for observation in made.groups["g"]] == [7]
    assert made.unreadable == []
    assert read([group("g")], at=9).groups == read([group("g")], at=90).groups == {}
    assert list(read([group("g")], at=89).groups) == ["g"]


def test_filters_drop_groups_and_topics_but_not_an_end() -> None:
    events = [group("g", "a", "b"), group("h"), group("left", gone="filtered")]
    made = read(events, watches=lambda name: name == "g", watches_topic=lambda name: name == "b")
    assert {name: [[t.topic for t in one.topics] for one in of] for name, of in made.groups.items()} == {
        "g": [["b"]],
        "left": [[]],
    }


def test_a_rocketmq_group_has_the_topics_that_pass_the_filters() -> None:
    saw = RocketMQObservation(7, 1_000, None, topics=(TopicSeen("a"), TopicSeen("b")))
    made = read([RocketMQGroupEvent(1, "test", "g", saw)], watches_topic=lambda name: name == "b")
    assert made.groups == {"g": [msgspec.structs.replace(saw, topics=(TopicSeen("b"),), elapsed=5, closed=1_400)]}


def test_a_topic_of_the_cluster_counts_in_its_round_and_its_end_whatever_the_filters_say() -> None:
    def seen(name: str, number: int = 7, gone: str | None = None) -> ClusterTopicEvent:
        return ClusterTopicEvent(1, "test", name, ClusterTopicObservation(number, 1_000, gone=gone, end=(5,)))

    events = [seen("orders"), seen("later", 8), seen("ignored"), seen("ignored-now", gone="filtered")]
    made = read(events, watches_topic=lambda name: "ignored" not in name)
    assert {name: [(one.round, one.elapsed, one.gone) for one in of] for name, of in made.topics.items()} == {
        "orders": [(7, 5, None)],
        "ignored-now": [(7, 5, "filtered")],
    }


def test_junk_is_kept_once_and_never_when_it_was_read_before() -> None:
    junk: list[Event | bytes | None] = [b"\xff\x00", None, b'{"v":9,"type":"groups"}', b'{"v":9,"type":"quota"}']
    made = read(junk)
    assert [offset for offset, _ in kept(made)] == [10, 11, 12]
    assert [offset for offset, _ in kept(read(junk, start=12))] == [12]
    assert kept(made)[2][1] == "not one of our records: Object missing required field `cluster`"
    assert passed_over(made) == passed_over(read(junk, start=13)) == [("event/quota", 1)]
    assert passed_over(read(junk, start=14)) == []


def test_rounds_without_events_in_a_partition_are_not_read_there() -> None:
    records = [
        at(1, closed(0, [1], {"0": (3, 5)})),
        at(3, closed(2, [1], {"1": (0, 4)})),
        at(5, closed(4, [2], {"0": (5, 5)})),
    ]
    rounds = plan_batch(Positions(), records, CLUSTER).rounds
    assert [r.taken.round for r in event_rounds(rounds, 0)] == [0]
    assert [r.taken.round for r in event_rounds(rounds, 1)] == [2]


TIME = closed(0, [1]).time

BROKERS = Brokers(
    (Broker(1, "kafka-1", "a"), Broker(3, "kafka-3", None, TIME), Broker(4, "kafka-4", "a", TIME - 50_000)),
    (Broker(2, "kafka-2", "b", TIME - 20_000),),
    ((1, 8), (3, 2)),
)


def taken(brokers: Brokers | None) -> ClosedRound:
    record = closed(0, list(LOG), {"0": (0, 9)}, brokers=brokers)
    (one,) = plan_batch(Positions(), [at(1, record)], CLUSTER).rounds
    return one


def test_the_row_of_a_round_has_its_brokers_and_those_that_came_and_went() -> None:
    rounds = decode_closed_rounds(encode_inputs([taken(BROKERS)]))
    (row,) = advance_rounds(RoundsState(), rounds, CLUSTER)[1].rounds
    assert row.brokers == 3
    assert row.brokers_gone == (RoundBroker(2, "kafka-2", "b", TIME - 20_000),)
    assert row.brokers_joined == (RoundBroker(3, "kafka-3", None, TIME),)
    (row,) = advance_rounds(RoundsState(), [taken(None)], CLUSTER)[1].rounds
    assert (row.brokers, row.brokers_gone, row.brokers_joined) == (None, None, None)
