"""The rounds that a new probe reads back, and the cost of reading them; with a broker: test_idle.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndTimestamp

from streaming.config import JobSettings, ProbeSettings, Settings
from streaming.events import Event, GroupEvent, encode
from streaming.probe import RoundAbandonedError, readback
from streaming.probe.deadline import Deadline
from streaming.records import GroupObservation, Round, RoundClosed, RoundOpened
from tests.job.source.made_rounds import record
from tests.probe.kafka.build import topic

ROUNDS = TopicPartition("evenkeel.rounds", 0)
EVENTS = TopicPartition("evenkeel.events", 0)
# Records returned by a poll.
POLLED = 500


class Record(msgspec.Struct, frozen=True):
    offset: int
    value: bytes
    timestamp: int = 0


class Topics:
    """A consumer of two topics that never lost a record; counts its requests and returned records.

    Attributes:
        leaderless: Partitions without a leader: questions for their offsets fail as kafka-python's do.
        limits: How long each question for offsets was allowed to take, ms.
    """

    def __init__(self, rounds: Iterable[Round], events: Iterable[Event]) -> None:
        self._values = {
            ROUNDS: [encode(round_) for round_ in rounds],
            EVENTS: [record(event) for event in events],
        }
        self._at: dict[TopicPartition, int] = {}
        self.questions = self.handed_out = 0
        self.leaderless: set[TopicPartition] = set()
        self.limits: list[int] = []

    def beginning_offsets(self, places: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        self._ask(timeout_ms)
        for place in self.leaderless.intersection(places):
            raise KeyError(place)
        return dict.fromkeys(places, 0)

    def end_offsets(self, places: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        self._ask(timeout_ms)
        return {place: len(self._values[place]) for place in places}

    def _ask(self, timeout_ms: int) -> None:
        self.questions += 1
        self.limits.append(timeout_ms)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        self._ask(timeout_ms)
        return {place: OffsetAndTimestamp(0, 0, None) for place in times}

    def assign(self, places: Iterable[TopicPartition]) -> None:
        self._at = dict.fromkeys(places, 0)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._at[place] = offset

    def position(self, place: TopicPartition) -> int:
        return self._at[place]

    def poll(self, **_: int) -> dict[TopicPartition, list[Record]]:
        self.questions += 1
        found = {}
        for place, start in self._at.items():
            values = self._values[place][start : start + POLLED]
            found[place] = [Record(start + n, value) for n, value in enumerate(values)]
            self._at[place] += len(values)
            self.handed_out += len(values)
        return found

    def close(self) -> None:
        pass


def group(round_: int, name: str, *, idle: bool) -> GroupEvent:
    of = (topic(f"topic-of-{name}", [9]),)
    saw = GroupObservation(round_, round_, 0, 5, "Empty", "", "classic", None, None, of, idle=idle)
    return GroupEvent(1, "prod", name, saw)


def heartbeat_of(rounds: int, busy: int) -> Topics:
    """Rounds with one idle group each, a different one in each, and the same busy groups in all."""
    told: list[Round] = []
    events: list[Event] = []
    for number in range(rounds):
        first = len(events)
        events.append(group(2 * number, f"idle-{number}", idle=True))
        rested = len(events)
        events += [group(2 * number, f"busy-{other}", idle=False) for other in range(busy)]
        told.append(RoundOpened(1, "prod", "p", 1_000))
        told.append(
            RoundClosed(
                v=1,
                cluster="prod",
                probe="p",
                interval_ms=1_000,
                round=2 * number,
                time=2 * number,
                log=(5,),
                log_end=(5,),
                events={"0": (first, len(events))},
                groups=1 + busy,
                written=1 + busy,
                resting={"0": (first, rested)},
                untold=rounds - 1,
            )
        )
    return Topics(told, events)


def read_back(monkeypatch: pytest.MonkeyPatch, topics: Topics) -> Mapping[str, Collection[str]]:
    def opened(_: Any) -> Topics:
        return topics

    monkeypatch.setattr(readback, "open_consumer", opened)
    settings = Settings(cluster="prod", probe=ProbeSettings(interval_ms=1_000), job=JobSettings())
    return readback.remember(settings, Deadline.after(60)).topics


def test_all_rounds_of_a_heartbeat_are_read_back_with_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=600, busy=1)
    names = {f"idle-{number}" for number in range(600)} | {"busy-0"}
    assert read_back(monkeypatch, topics) == {name: (f"topic-of-{name}",) for name in names}
    # 1,200 records of rounds and 1,200 of events, 500 per poll, the newest round, and five requests for a topic's
    # bounds.
    assert topics.questions <= 25


def test_what_busy_groups_were_told_in_between_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=20, busy=3_000)
    names = {f"idle-{number}" for number in range(20)} | {f"busy-{number}" for number in range(3_000)}
    assert read_back(monkeypatch, topics) == {name: (f"topic-of-{name}",) for name in names}
    # One poll for each of 19 rounds, the whole newest round, and the rounds themselves, instead of 60,020 events.
    assert topics.handed_out <= 20 * POLLED + 3_500 + 100


def test_a_partition_of_the_events_without_a_leader_abandons_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=3, busy=1)
    topics.leaderless = {EVENTS}
    with pytest.raises(RoundAbandonedError, match=r"partition 0 of evenkeel\.events has no leader at the moment"):
        read_back(monkeypatch, topics)


def test_no_question_for_offsets_may_take_longer_than_the_deadline_or_than_a_stop_should_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # (The deadline is 60 s away.)
    for a_stop_waits_s, longest in ((5.0, 5_000), (1_000.0, 60_000)):
        monkeypatch.setattr(readback, "_ASK_S", a_stop_waits_s)
        topics = heartbeat_of(rounds=3, busy=1)
        read_back(monkeypatch, topics)
        # The bounds of the rounds twice, of the events twice, and the first round of the heartbeat.
        assert len(topics.limits) == 9
        assert all(0 < limit <= longest for limit in topics.limits)
