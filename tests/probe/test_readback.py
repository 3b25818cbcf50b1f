"""The rounds that a new probe reads back, and the cost of reading them; with a broker: test_idle.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pytest

from streaming.config import JobSettings, ProbeSettings, Settings
from streaming.events import Event, GroupEvent, encode
from streaming.probe import RoundAbandonedError, readback
from streaming.probe.deadline import Deadline
from streaming.records import GroupObservation, Round, RoundClosed, RoundOpened
from tests.job.source.fake_reader import FakeReader
from tests.job.source.made_rounds import record
from tests.probe.kafka.build import topic

ROUNDS, EVENTS = "evenkeel.rounds", "evenkeel.events"


class Topics(FakeReader):
    """A reader of two topics that never lost a record."""

    def __init__(self, rounds: Iterable[Round], events: Iterable[Event]) -> None:
        super().__init__()
        for round_ in rounds:
            self.append(ROUNDS, 0, encode(round_))
        for event in events:
            self.append(EVENTS, 0, record(event))

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
    monkeypatch.setattr(readback, "open_bus_reader", lambda _: topics)
    settings = Settings(cluster="prod", probe=ProbeSettings(interval_ms=1_000), job=JobSettings())
    return readback.remember(settings, Deadline.after(60)).topics


def test_all_rounds_of_a_heartbeat_are_read_back_with_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=600, busy=1)
    names = {f"idle-{number}" for number in range(600)} | {"busy-0"}
    assert read_back(monkeypatch, topics) == {name: (f"topic-of-{name}",) for name in names}
    # The end of the rounds twice, steps back through them, and the events of the newest round and of all others.
    assert (topics.calls["ends"], topics.calls["read"]) == (2, 6)


def test_what_busy_groups_were_told_in_between_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    decode = readback.decode_event
    monkeypatch.setattr(readback, "decode_event", lambda value: decoded.append(value) or decode(value))
    names = {f"idle-{number}" for number in range(20)} | {f"busy-{number}" for number in range(300)}
    assert read_back(monkeypatch, heartbeat_of(rounds=20, busy=300)) == {name: (f"topic-of-{name}",) for name in names}
    assert len(decoded) == 19 + 301


def test_topics_that_cannot_be_read_abandon_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=3, busy=1)
    topics.down = True
    with pytest.raises(RoundAbandonedError, match="could not be read back"):
        read_back(monkeypatch, topics)
