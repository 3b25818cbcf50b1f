"""What rounds tell becomes the core's inputs: events, rounds without a log, what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from streaming.events import ClusterTopicEvent, Event, RocketMQGroupEvent, encode, pack
from streaming.groups import GroupConfig, QuarantineRow
from streaming.groups.rows import RoundBroker
from streaming.job.operator import PackedState, advance_key
from streaming.job.source.events import EventReader, EventRound, OfGroup, event_rounds
from streaming.job.source.exceptions import AnotherSourceError
from streaming.job.source.plan import Batch, plan_batch
from streaming.job.source.positions import INITIAL, Positions
from streaming.job.source.tasks import SourceTask, ready_rows
from streaming.log_health import RoundsState, UnreadableState, advance_partition, advance_rounds
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
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
    decode_partition_inputs,
    encode_inputs,
    partition_key,
    rows_of,
)
from tests.job.source.made_rounds import CLUSTER, LOG, at, closed, event_round, group, opened, record, topic
from tests.job.source.world import SETTINGS, World, closed_rounds, rounds_of


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


def seen_round(world: World, **changes: Any) -> int:
    """A round without log positions."""
    number = world.reader.append("rounds", 0, encode(opened()))
    record = encode(closed(number, [], source="admin", **changes))
    world.reader.append("rounds", 0, record, time=2_000_000 + number)
    return number


@pytest.fixture
def world() -> World:
    return World()


def test_rounds_without_positions_are_taken_without_asking_for_the_log(world: World) -> None:
    numbers = [seen_round(world), seen_round(world)]
    end = world.planner.latest(INITIAL, None)
    assert (end["log"], end["source"], end["round"]) == ({}, "admin", numbers[-1])
    tasks = world.planner.tasks(INITIAL, end)
    assert rounds_of(tasks) == numbers
    assert {told.closed.source for told in closed_rounds(tasks)} == {"admin"}
    assert [task.log for task in tasks if task.log] == []
    assert world.planner.latest(end, None) is end
    assert Positions.read(end).write() == end


def test_silence_reads_no_log_where_groups_are_only_seen(world: World) -> None:
    seen_round(world)
    start = world.planner.latest(INITIAL, None)
    world.now = 1_000.0
    assert world.planner.latest(start, None) is start


@pytest.mark.parametrize("others", [3, 60, 200, 6_000])
def test_a_query_passes_over_another_source_says_so_and_goes_on_once_its_own_is_back(
    world: World, caplog: pytest.LogCaptureFixture, others: int
) -> None:
    world.round()
    start = offsets = world.planner.latest(INITIAL, 60)
    for _ in range(others):
        seen_round(world)
    while (end := world.planner.latest(offsets, 60)) is not offsets:
        offsets = end
    assert (offsets["round"], offsets["log"]) == (start["round"], start["log"])
    assert [m for m in caplog.messages if "from the source 'admin' now, and this query follows 'log'" in m] == [
        caplog.messages[0]
    ]
    numbers = [world.round(), world.round()]
    assert world.restart().latest(offsets, 60)["round"] == numbers[-1]


def test_a_setting_passes_over_the_rounds_of_the_other_source(world: World) -> None:
    seen_round(world)
    number = world.round()
    planner = world.restart(SETTINGS.model_copy(update={"offsets_log": "log"}))
    end = planner.latest(INITIAL, None)
    assert rounds_of(planner.tasks(INITIAL, end)) == [number]
    other = world.restart(SETTINGS.model_copy(update={"offsets_log": "admin"}))
    with pytest.raises(AnotherSourceError, match="follows 'log'"):
        other.latest(end, None)


TOPIC = "__share_group_state"


def closing(number: int, *offsets: int) -> ClosedRound:
    """A closed round whose probe could not decode these records of a partition."""
    unreadable = UnreadableRecords(3, Windows(), TOPIC)
    for offset in offsets:
        unreadable.reject(LogRecord(offset, 1_767_225_600_000, b"\0\0", b"junk"), "not a record")
    record = replace(closed(number, LOG), unreadable=tuple(unreadable.inputs()))
    return ClosedRound(record, number, number + 1, 2_000, number * 1_000, 0)


def test_each_record_that_the_probe_told_has_its_row_once() -> None:
    state, rows = UnreadableState(), []
    for rounds in ((closing(7, 40, 41), closing(9)), (closing(11, 50),)):
        for key, payload in ready_rows("rounds", Positions(), Batch(Positions(), rounds), None):
            if key == partition_key(TOPIC, 3):
                state, found = advance_partition(state, decode_partition_inputs(payload), "test")
                rows += found.quarantine
    assert [(row.topic, row.partition, row.record_offset, row.reason, row.value) for row in rows] == [
        (TOPIC, 3, offset, "not a record", b"junk") for offset in (40, 41, 50)
    ]


_KEY = partition_key("log", 0)


def _quarantined(batches: Iterable[list[SourceTask]], junk: range) -> list[QuarantineRow]:
    """The rows of log partition 0, whose records at these offsets are of an unknown type."""
    state: PackedState | None = None
    rows: list[QuarantineRow] = []
    for tasks in batches:
        payloads = [payload for task in tasks for key, payload in task.rows if key == _KEY]
        for share in (share for task in tasks for share in task.log if share.partition == 0):
            assert share.windows is not None
            found = UnreadableRecords(0, share.windows, "log")
            for offset in range(max(share.start, junk.start), min(share.end, junk.stop)):
                found.unknown(LogRecord(offset, 1_000_000, b"k", b"v"), "99/0", "type 99 is not known")
            payloads += [payload for _, payload in rows_of(_KEY, found.inputs())]
        if payloads:
            state, more = advance_key(_KEY, payloads, state, GroupConfig(cluster="main"))
            rows += more.quarantine
    return rows


def _read(junk: range, *, silence: bool) -> list[QuarantineRow]:
    """Two rounds with 20 records between them; with silence, 10 of these are read by a batch without rounds."""
    world = World()
    world.round()
    ends = [INITIAL, world.planner.latest(INITIAL, None)]
    world.log(0, 10)
    if silence:
        world.now = 31.0
        ends.append(world.planner.latest(ends[-1], None))
    world.log(0, 10)
    for _ in range(2):
        world.round()
        ends.append(world.planner.latest(ends[-1], None))
    # As after a restart, which plans the same.
    planner = world.restart()
    return _quarantined([planner.tasks(*pair) for pair in pairwise(ends)], junk)


@pytest.mark.parametrize("junk", [range(1, 6), range(8, 14), range(12, 15)], ids=["before", "across", "after"])
def test_what_was_counted_before_a_batch_without_rounds_is_told_as_if_there_had_been_none(junk: range) -> None:
    uncut = _read(junk, silence=False)
    assert [(row.record_offset, row.records, row.last_record_offset) for row in uncut] == [
        (junk.start, len(junk), junk.stop - 1)
    ]
    assert _read(junk, silence=True) == uncut


def test_ends_are_sent_once_to_each_partition_that_may_have_been_read() -> None:
    world = World()
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.log(0, 3)
    world.now = 31.0
    middle = world.planner.latest(start, None)
    world.round()
    end = world.planner.latest(middle, None)
    world.round()
    last = world.planner.latest(end, None)
    batches = [world.planner.tasks(*pair) for pair in ((start, middle), (middle, end), (end, last))]
    told = [sorted(key for task in tasks for key, _ in task.rows if key.startswith("p:")) for tasks in batches]
    assert told == [[], [partition_key("log", 0), partition_key("log", 1), partition_key("rounds", 0)], []]
