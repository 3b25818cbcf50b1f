"""The pace of rounds, their deadlines, the size of their records, and what a probe says of its health."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from streaming.config import ProbeSettings
from streaming.events import MAX_RECORD_BYTES, GroupEvent, GroupsEvent, RocketMQGroupEvent, decode_event
from streaming.health import Condition
from streaming.probe.bus import Acknowledged, KeyValue
from streaming.probe.deadline import Deadline, RoundAbandonedError, StopRequestedError
from streaming.probe.run import ProbeHealth
from streaming.probe.writer import Opened, RoundInterval, RoundWriter
from streaming.records import OK, GroupObservation, MemberSeen, QueuesSeen, RocketMQObservation, TopicSeen
from tests.clock import Clock
from tests.probe.kafka.build import topic


def pace_after(*took_ms: int, configured_ms: int = 10_000) -> RoundInterval:
    pace = RoundInterval(configured_ms)
    for each in took_ms:
        pace.note_own_round(each)
    return pace


@pytest.mark.parametrize(
    ("took_ms", "interval_ms"),
    [(0, 10_000), (9_900, 10_000), (20_000, 10_000), (20_001, 30_000), (130_000, 130_000), (130_001, 140_000)],
)
def test_a_round_of_more_than_two_intervals_stretches_them_to_what_it_took(took_ms: int, interval_ms: int) -> None:
    assert pace_after(took_ms).interval_ms == interval_ms


def test_the_slowest_of_the_last_three_rounds_counts() -> None:
    assert pace_after(95_000, 40_000, 30_000).interval_ms == 100_000
    assert pace_after(95_000, 40_000, 30_000, 30_000).interval_ms == 40_000
    assert pace_after(95_000, 1_000, 1_000, 1_000).interval_ms == 10_000


def test_a_slow_pace_is_said_once_and_its_end_once() -> None:
    pace, said = RoundInterval(10_000), []
    for took in (100, 100, 95_000, 97_000, 120_000, *[500] * 9):
        pace.note_own_round(took)
        said.append(pace.change_in_words())
    assert [index for index, sentence in enumerate(said) if sentence is not None] == [2, 7]
    assert said[2].startswith("A round took 95.0 s: they come every 100 s, not every 10 s")
    assert said[7] == "Rounds come every 10 s again."


def test_another_probes_pace_counts_until_the_first_round_of_our_own() -> None:
    pace = RoundInterval(10_000)
    pace.note_other_interval(130_000)
    assert (pace.interval_ms, pace.change_in_words()) == (130_000, None)
    pace.note_own_round(4_000)
    assert (pace.interval_ms, pace.change_in_words()) == (10_000, None)


def test_another_probes_absurd_pace_counts_as_ten_minutes() -> None:
    pace = RoundInterval(10_000)
    pace.note_other_interval(2**60)
    assert pace.interval_ms == 600_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def deadline(clock: Clock) -> Deadline:
    return Deadline.after(20, clock=clock)


def test_a_round_goes_on_for_as_long_as_answers_come(clock: Clock, deadline: Deadline) -> None:
    for _ in range(1_000):
        clock.now += 19.9
        deadline.answered()


def test_a_round_is_given_up_when_no_answer_comes(clock: Clock, deadline: Deadline) -> None:
    clock.now += 19.0
    deadline.answered()
    clock.now += 20.0
    with pytest.raises(RoundAbandonedError, match="no answer came within 20 s"):
        deadline.remaining()


def test_an_answer_that_comes_after_an_hour_of_sleep_is_too_late(clock: Clock, deadline: Deadline) -> None:
    clock.now += 3_600.0
    with pytest.raises(RoundAbandonedError):
        deadline.answered()


def test_our_own_work_before_a_question_does_not_count(clock: Clock, deadline: Deadline) -> None:
    clock.now += 60.0
    deadline.begin()
    assert deadline.remaining() == 20.0


def test_what_a_round_can_do_without_gets_no_more_time_however_many_answers_come(
    clock: Clock, deadline: Deadline
) -> None:
    brief = deadline.at_most(2)
    for _ in range(3):
        clock.now += 0.6
        brief.answered()
    assert brief.remaining() == pytest.approx(0.2)
    clock.now += 0.3
    with pytest.raises(RoundAbandonedError, match="within 2 s"):
        brief.remaining()


def test_a_stop_ends_every_wait() -> None:
    stop = threading.Event()
    brief = Deadline.after(20, stop).at_most(2)
    stop.set()
    with pytest.raises(StopRequestedError):
        brief.wait(lambda _: False)


@dataclass
class CollectingBus:
    """Takes what Kafka's own producer would: records up to its `max_request_size`."""

    records: list[tuple[bytes, bytes]] = field(default_factory=list)

    def append(
        self,
        topic: str,  # noqa: ARG002
        records: Iterable[KeyValue],
        timestamp: int | None,
        deadline: Deadline,  # noqa: ARG002
    ) -> list[Acknowledged]:
        got = list(records)
        assert all(len(key) + len(value) < MAX_RECORD_BYTES - 1_000 for key, value in got)
        first = len(self.records)
        self.records += got
        return [Acknowledged(0, offset, timestamp or 0) for offset in range(first, len(self.records))]

    def tend(self) -> None:
        """There is nothing to do."""

    def close(self) -> None:
        """There is nothing to close."""


def group_event(group: str, partitions: int) -> GroupEvent:
    seen = GroupObservation(
        7, 1_000, 0, 5, "Stable", "consumer", "classic", None, None, (topic("t", [9] * partitions),)
    )
    return GroupEvent(1, "prod", group, seen)


def test_a_group_that_no_record_can_hold_loses_its_topics_and_the_others_keep_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = CollectingBus()
    writer = RoundWriter("prod", ProbeSettings(), bus, "probe-1")
    events = [group_event("g" * 32_000, 1_048_000), group_event("orders", 2)]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            written = writer.write(Opened(7, 1_000), events, Deadline.after(5))
    assert (written.groups, written.events, written.positions) == (2, 2, {"0": (2, 4)})
    records = [decode_event(value) for _, value in bus.records[2:]]
    told = {event.key: event.saw for record in records if isinstance(record, GroupsEvent) for event in record.events()}
    assert {key: (saw.state, saw.topics) for key, saw in told.items()} == {
        events[0].key: ("Stable", ()),
        "orders": ("Stable", events[1].saw.topics),
    }
    [warning] = caplog.messages
    assert "too many partitions for one record (33 MB)" in warning


@pytest.mark.parametrize(
    ("queues", "cut", "topics"), [(120_000, ("queues",), 12), (5, ("members", "topics"), 0)], ids=["queues", "topics"]
)
def test_a_rocketmq_group_that_no_record_can_hold_is_cut_and_says_so(
    queues: int, cut: tuple[str, ...], topics: int
) -> None:
    bus = CollectingBus()
    writer = RoundWriter("prod", ProbeSettings(), bus, "probe-1")
    of_broker = QueuesSeen("broker-a", OK, *[tuple(range(10**15, 10**15 + queues))] * 3)
    name = "t" if topics else "t" * 3_000_000
    seen = [TopicSeen(f"{name}{number}", (), (of_broker,)) for number in range(12)]
    saw = RocketMQObservation(7, 1_000, None, (), (MemberSeen("m@1", OK),), tuple(seen))
    writer.write(Opened(7, 1_000), [RocketMQGroupEvent(1, "prod", "orders", saw)], Deadline.after(5))
    [(_, value)] = bus.records
    event = decode_event(value)
    assert (event.saw.cut, len(event.saw.topics)) == (cut, topics)


INTERVAL_S = 10.0
ANOTHER = "probe a-1 makes the rounds of cluster 'c'"


@pytest.fixture
def health(clock: Clock) -> ProbeHealth:
    return ProbeHealth(INTERVAL_S, clock)


def test_before_its_first_round_it_is_live_and_not_ready_and_says_what_fails(health: ProbeHealth) -> None:
    assert health.live() == Condition(True)
    assert health.ready() == Condition(False, ("No round has closed yet.",))
    health.failed("No round closes: the cluster did not answer (NoBrokersAvailable)")
    reasons = ("No round has closed yet.", "No round closes: the cluster did not answer (NoBrokersAvailable).")
    assert health.ready() == Condition(False, reasons)
    assert health.live() == Condition(True)


def test_it_is_ready_until_no_round_has_closed_for_three_intervals(health: ProbeHealth, clock: Clock) -> None:
    health.closed(10_000)
    assert health.ready() == Condition(True)
    clock.now += 30
    assert health.ready().holds
    clock.now += 1
    assert health.ready() == Condition(False, ("No round has closed for 31 s.",))


def test_rounds_that_take_longer_than_the_setting_are_waited_for(health: ProbeHealth, clock: Clock) -> None:
    health.closed(60_000)
    clock.now += 179
    assert health.ready() == Condition(True)


def test_a_failed_attempt_is_a_reason_at_once_and_over_when_a_round_closes(health: ProbeHealth) -> None:
    health.closed(10_000)
    health.failed("No round closes: the bus did not answer")
    assert health.ready() == Condition(True, ("No round closes: the bus did not answer.",))
    health.closed(10_000)
    assert health.ready() == Condition(True)


def test_standing_by_is_ready_while_the_other_ones_rounds_are_seen(health: ProbeHealth, clock: Clock) -> None:
    health.stands_by(ANOTHER)
    clock.now += 3_600
    assert health.ready() == Condition(True, (f"It stands by: {ANOTHER}.",))
    health.failed("The other probe's rounds cannot be followed: no answer")
    assert not health.ready().holds
    health.stands_by(ANOTHER)
    assert health.ready().holds
    health.closed(10_000)
    assert health.ready() == Condition(True)


def test_a_loop_that_does_not_come_around_asks_for_a_restart(health: ProbeHealth, clock: Clock) -> None:
    clock.now += 300
    assert health.live().holds
    clock.now += 1
    assert health.live() == Condition(False, ("The probe's loop has not come around for 301 s.",))
    health.failed("No round closes: the cluster did not answer")
    assert health.live().holds
