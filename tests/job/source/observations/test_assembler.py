from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from streaming.events import ROCKETMQ, ClusterTopicEvent, Event, RocketMQGroupEvent, TopicEvent, encode_event
from streaming.job.source.observations import EventRound, ObservationAssembler, assembler, event_rounds
from streaming.job.source.plan import plan_batch
from streaming.job.source.positions import Positions
from streaming.offsets_log import partition_for
from streaming.records import (
    CountedRecords,
    GroupObservation,
    PartitionInput,
    QuarantinedRecord,
    RocketMQObservation,
    TopicObservation,
)
from tests.job.source.made_rounds import CLUSTER, FAR, at, closed
from tests.job.source.observations.made_events import LOG, gone, group, topic


@dataclass
class Made:
    observations: dict[str, list[GroupObservation]]
    unreadable: list[PartitionInput]


ROUND = EventRound(round=7, opened=7, time=1_000, first=10, end=90, log=LOG)


def everything(_: str) -> bool:
    return True


def assemble(
    events: Sequence[Event | bytes | None],
    *,
    rounds: Sequence[EventRound] = (ROUND,),
    start: int = 0,
    at: int = 10,
    gap: int = 0,
    watches: Callable[[str], bool] = everything,
    watches_topic: Callable[[str], bool] = everything,
    take_each: bool = False,
) -> Made:
    taken: dict[str, list[GroupObservation]] = {}
    assembler = ObservationAssembler("events", 1, rounds, start, watches, watches_topic)
    if gap:
        assembler.gap(gap)
    for offset, event in enumerate(events, at):
        value = event if event is None or isinstance(event, bytes) else encode_event(event)
        assembler.add((offset, 2_000, b"key", value))
        if take_each:
            for name, observations in assembler.take().items():
                taken.setdefault(name, []).extend(observations)
    assembler.finish()
    for name, observations in assembler.take().items():
        taken.setdefault(name, []).extend(observations)
    return Made(taken, assembler.unreadable.inputs())


def told(made: Made) -> list[tuple[int, str]]:
    return [(record.offset, record.reason) for record in made.unreadable if isinstance(record, QuarantinedRecord)]


def passed_over(made: Made) -> list[tuple[str, int]]:
    return [(item.kind, item.records) for item in made.unreadable if isinstance(item, CountedRecords)]


def test_a_group_and_its_topics_make_one_observation() -> None:
    made = assemble([group("g", 2), topic("g", "a"), topic("g", "b")])
    packed = struct.pack("<2q", 5, 6)
    topics = tuple(
        TopicObservation(name, None, 2, packed, struct.pack("<2q", 5, 5), struct.pack("<2q", 0, 1))
        for name in ("a", "b")
    )
    partition = partition_for("g", 2)
    expected = GroupObservation(
        7, 1_000, partition, LOG[partition], "Stable", "consumer", "classic", None, None, topics, "abc"
    )
    assert made.observations == {"g": [expected]}
    assert made.unreadable == []


def test_observations_may_be_taken_at_any_time() -> None:
    events = [group("g", 1), group("h", 0), topic("g", "a"), group("h", 0), topic("g", "a")]
    at_once, one_by_one = assemble(events), assemble(events, take_each=True)
    assert one_by_one == at_once
    assert [offset for offset, _ in told(at_once)] == [13, 14]


def test_groups_may_be_interleaved_and_a_group_may_have_no_topics() -> None:
    made = assemble([group("g", 1), group("h", 1), group("i", 0), topic("h", "a"), topic("g", "a")])
    assert {
        name: [len(observation.topics) for observation in observations]
        for name, observations in made.observations.items()
    } == {
        "g": [1],
        "h": [1],
        "i": [0],
    }


def test_a_group_that_is_gone_ends_with_its_reason_filtered_or_not() -> None:
    made = assemble([gone("g", "filtered")], watches=lambda _: False)
    assert [observation.gone for observation in made.observations["g"]] == ["filtered"]


def test_an_unfinished_observation_is_not_made_and_its_head_is_kept() -> None:
    made = assemble([group("g", 3), topic("g", "a"), group("h", 0)])
    assert list(made.observations) == ["h"]
    assert told(made) == [(10, "2 of 3 topics of the group did not follow")]


def test_events_of_rounds_that_never_closed_are_skipped() -> None:
    made = assemble([group("g", 1, number=6), topic("g", "a", number=6), group("g", 0)])
    assert [observation.round for observation in made.observations["g"]] == [7]
    assert made.unreadable == []


def test_events_outside_their_rounds_positions_are_skipped() -> None:
    assert assemble([group("g", 0)], at=9).observations == {}
    assert assemble([group("g", 0)], at=90).observations == {}
    assert list(assemble([group("g", 0)], at=89).observations) == ["g"]


def test_a_round_of_redpanda_has_groups_where_its_own_hash_says() -> None:
    of_redpanda = replace(ROUND, cluster_id="redpanda.5a1c")
    name = next(
        name for name in map(str, range(9)) if partition_for(name, 2, "redpanda.5a1c") != partition_for(name, 2)
    )
    home = partition_for(name, 2, "redpanda.5a1c")
    event = group(name, 0, log_partition=home, log_position=LOG[home])
    assert list(assemble([event], rounds=[of_redpanda]).observations) == [name]
    assert assemble([event]).observations == {}


def test_what_contradicts_its_round_is_kept_with_a_reason() -> None:
    home = partition_for("g", 2)
    elsewhere = 1 - home
    made = assemble(
        [
            group("g", 0, log_position=LOG[home] + 1),
            group("g", 0, log_partition=9),
            group("g", 0, log_partition=elsewhere, log_position=LOG[elsewhere]),
            group("g", 0, time=999),
            group("g", -1),
            group("g", 2**80),
            group("g", 0, held_since=2**62),
            group("g", 0),
            group("g", 0),
            topic("g", "a"),
        ]
    )
    assert told(made) == [
        (10, f"position {LOG[home] + 1} of log partition {home} is not the round's"),
        (11, f"position {LOG[home]} of log partition 9 is not the round's"),
        (12, f"the group's log partition is not {elsewhere}"),
        (13, "its time is not the round's"),
        (14, "a negative or impossible number of topics"),
        (15, "a negative or impossible number of topics"),
        (16, "the time since which the log is blocked is not a valid time"),
        (18, "the group appears in round 7 a second time"),
        (19, "no event of the group in round 7 announces this topic event"),
    ]
    assert len(made.observations["g"]) == 1


def test_a_topic_told_twice_does_not_complete_an_observation() -> None:
    made = assemble([group("g", 2), topic("g", "a"), topic("g", "a")])
    assert made.observations == {}
    assert [offset for offset, _ in told(made)] == [10, 12]


def test_junk_is_kept_once_and_never_when_it_was_read_before() -> None:
    junk: list[Event | bytes | None] = [b"\xff\x00", None, b'{"v":9,"type":"group"}', b'{"v":9,"type":"quota"}']
    made = assemble(junk)
    assert [offset for offset, _ in told(made)] == [10, 11, 12]
    assert [offset for offset, _ in told(assemble(junk, start=12))] == [12]
    assert told(made)[2][1] == "not one of our records: Object missing required field `cluster`"
    assert passed_over(made) == passed_over(assemble(junk, start=13)) == [("event/quota", 1)]
    assert passed_over(assemble(junk, start=14)) == []
    (first, *_) = made.unreadable
    assert isinstance(first, QuarantinedRecord)
    assert first.topic == "events"


def test_rounds_that_lost_events_to_retention_are_incomplete_without_blame() -> None:
    made = assemble([topic("g", "b"), group("h", 1), topic("h", "a")], at=50, gap=50)
    assert list(made.observations) == ["h"]
    assert made.unreadable == []


def test_filters_drop_groups_and_topics_but_not_completeness() -> None:
    events = [group("g", 2), topic("g", "a"), topic("g", "b"), group("h", 0)]
    made = assemble(events, watches=lambda name: name == "g", watches_topic=lambda name: name == "b")
    assert {
        name: [[t.topic for t in observation.topics] for observation in observations]
        for name, observations in made.observations.items()
    } == {"g": [["b"]]}
    assert made.unreadable == []


def test_rounds_without_events_in_a_partition_are_not_read_there() -> None:
    records = [
        at(1, closed(0, [1], {"0": (3, 5)})),
        at(3, closed(2, [1], {"1": (0, 4)})),
        at(5, closed(4, [2], {"0": (5, 5)})),
    ]
    rounds = plan_batch(Positions(), records, FAR, CLUSTER).rounds
    assert [r.round for r in event_rounds(rounds, 0)] == [0]
    assert [r.round for r in event_rounds(rounds, 1)] == [2]
    assert [r.closed for r in event_rounds(rounds, 1)] == [records[1].timestamp]


def test_an_observation_has_the_round_s_number_and_elapsed_time_and_its_events_the_offset() -> None:
    renumbered = replace(ROUND, round=107, elapsed=4_000)
    observations = assemble([group("g", 0)], rounds=(renumbered,)).observations
    assert [(observation.round, observation.elapsed) for observation in observations["g"]] == [(107, 4_000)]


def test_an_observation_tells_that_its_group_is_idle() -> None:
    made = assemble([group("rests", 1, idle=True), topic("rests", "t"), group("works", 0), gone("left")])
    assert {name: observation.idle for name, (observation,) in made.observations.items()} == {
        "rests": True,
        "works": False,
        "left": False,
    }


def test_an_observation_tells_when_its_round_closed_and_between_which_rounds_its_group_rested() -> None:
    closed = replace(ROUND, closed=1_700)
    made = assemble([group("g", 0, rested=(100, 900)), group("h", 0), gone("left")], rounds=(closed,))
    assert {
        name: (observation.closed, observation.rested_since, observation.rested_until)
        for name, (observation,) in made.observations.items()
    } == {"g": (1_700, 100, 900), "h": (1_700, -1, -1), "left": (1_700, -1, -1)}


# (900, 100): the clock was ahead when the rest began, and an older probe tells it all the same.
IMPOSSIBLE_RESTS = [(-1, 900), (900, 100), (100, 2**63 - 1), (100, 2**70)]


@pytest.mark.parametrize("rested", IMPOSSIBLE_RESTS)
def test_an_event_counts_without_a_rest_between_times_that_cannot_be(rested: tuple[int, int]) -> None:
    event = encode_event(group("g", 1)).replace(b'"rested":null', b'"rested":[%d,%d]' % rested)
    made = assemble([event, topic("g", "a")])
    [found] = made.observations["g"]
    assert (found.rested_since, found.rested_until, len(found.topics)) == (-1, -1, 1)
    assert made.unreadable == []


@pytest.mark.parametrize(("told", "counted"), [((100, 900), (100, 900)), ((900, 100), (-1, -1)), (None, (-1, -1))])
def test_a_rocketmq_group_counts_without_a_rest_that_ends_before_it_began(
    told: tuple[int, int] | None, counted: tuple[int, int]
) -> None:
    of_rocketmq = ObservationAssembler(
        "events", 1, [replace(ROUND, log=(), source=ROCKETMQ)], 0, everything, everything
    )
    event = RocketMQGroupEvent(1, "test", 7, 1_000, "g", rested=told)
    of_rocketmq.add((10, 2_000, b"g", encode_event(event)))
    [found] = of_rocketmq.take()["g"]
    assert isinstance(found, RocketMQObservation)
    assert (found.rested_since, found.rested_until) == counted


def test_an_event_of_an_older_probe_tells_no_rest() -> None:
    made = assemble([encode_event(group("g", 0)).replace(b',"rested":null', b"")])
    assert [(o.rested_since, o.rested_until) for o in made.observations["g"]] == [(-1, -1)]


QUOTA = b'{"type":"quota","v":7,"cluster":"test","round":7,"group":"g","bytes":123}'


def test_an_event_of_an_unknown_type_between_the_events_of_an_observation_is_passed_over_and_counted() -> None:
    made = assemble([QUOTA, group("g", 2), QUOTA, topic("g", "a"), QUOTA, topic("g", "b"), QUOTA])
    assert [[t.topic for t in observation.topics] for observation in made.observations["g"]] == [["a", "b"]]
    assert (told(made), passed_over(made)) == ([], [("event/quota", 4)])
    (item,) = made.unreadable
    assert isinstance(item, CountedRecords)
    assert (item.sample.offset, item.sample.value, item.sample.reason) == (
        10,
        QUOTA,
        "type quota is not known to this release; a newer probe may have written it",
    )


def test_an_observation_waits_for_its_topics_no_longer_than_to_the_end_of_its_round() -> None:
    rounds = [EventRound(7, 7, 1_000, 10, 12, LOG), EventRound(9, 9, 1_000, 12, 14, LOG)]
    first = [group("g", 2), topic("g", "a")]
    second = [group("g", 1, number=9), topic("g", "b", number=9)]
    made = assemble([*first, *second], rounds=rounds)
    assert told(made) == [(10, "1 of 2 topics of the group did not follow")]
    assert [observation.round for observation in made.observations["g"]] == [9]


def test_observations_that_wait_for_topics_that_never_come_are_given_up_when_they_are_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assembler, "_WAITING_BYTES", 50_000)
    hollow = [group(f"hollow-{n}", 3, state="x" * 9_000) for n in range(30)]
    made = assemble([*hollow, group("g", 1), topic("g", "a")], rounds=[EventRound(7, 7, 1_000, 10, 90, LOG)])
    assert list(made.observations) == ["g"]
    assert told(made) == [(10 + n, "3 of 3 topics of the group did not follow") for n in range(30)]


def test_a_round_with_more_bytes_of_events_than_it_tells_makes_no_observations_of_the_rest() -> None:
    events = [group("g", 0), group("h", 0), group("i", 0)]
    size = sum(len(encode_event(event)) for event in events)
    whole = assemble(events, rounds=[EventRound(7, 7, 1_000, 10, 90, LOG, size=size)])
    assert (list(whole.observations), told(whole)) == (["g", "h", "i"], [])
    lied = assemble(events, rounds=[EventRound(7, 7, 1_000, 10, 90, LOG, size=size - 1)])
    assert list(lied.observations) == ["g", "h"]
    reason = f"round 7 announces {size - 1} bytes of events, and has more in this partition alone"
    assert told(lied) == [(12, reason)]


def test_the_bytes_of_observations_are_told_until_they_are_taken() -> None:
    large = TopicEvent(1, "test", 7, "g", "t", 9_000, None, *[(1,) * 9_000] * 3)
    assembler = ObservationAssembler("events", 1, [ROUND], 0, everything, everything)
    for offset, event in enumerate([group("g", 1), large], 10):
        assembler.add((offset, 2_000, b"key", encode_event(event)))
    assert assembler.made > 3 * 8 * 9_000
    assembler.take()
    assert assembler.made == 0


def cluster_topic(name: str, number: int = 7, time: int = 1_000) -> ClusterTopicEvent:
    return ClusterTopicEvent(1, "test", number, time, name, None, (5,), (0,), (50,), (1,))


def test_a_topic_of_the_cluster_counts_once_in_its_round() -> None:
    events = [
        cluster_topic("orders"),
        group("a", 0),
        cluster_topic("orders"),
        cluster_topic("audit", time=2_000),
        cluster_topic("later", number=8),
        cluster_topic("ignored"),
        ClusterTopicEvent(1, "test", 7, 1_000, "ignored-now", gone="filtered"),
    ]
    assembler = ObservationAssembler("events", 1, [ROUND], 0, everything, lambda name: "ignored" not in name)
    for offset, event in enumerate(events, 10):
        assembler.add((offset, 2_000, b"key", encode_event(event)))
    assembler.finish()
    looks = {name: [(look.round, look.end, look.gone) for look in of] for name, of in assembler.take_topics().items()}
    assert looks == {"orders": [(7, (5,), None)], "ignored-now": [(7, (), "filtered")]}
    assert list(assembler.take()) == ["a"]
    reasons = [one.reason for one in assembler.unreadable.inputs() if isinstance(one, QuarantinedRecord)]
    assert reasons == ["the topic appears in round 7 a second time", "its time is not the round's"]
