"""What is read of the rounds topic, however much retention has taken and however full of others it is."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from kafka import TopicPartition

from streaming.config import ProbeSettings, Settings
from streaming.events import encode
from streaming.probe.deadline import Deadline
from streaming.probe.standby import Tail, turn
from streaming.records import RoundOpened

PLACE = TopicPartition("evenkeel.rounds", 0)


class Topic:
    """A consumer of the rounds topic."""

    def __init__(self, values: Iterable[bytes | None], first: int = 0) -> None:
        self._records = [SimpleNamespace(offset=first + n, timestamp=5, value=value) for n, value in enumerate(values)]
        self._first, self._at = first, first

    def beginning_offsets(self, _: object, timeout_ms: int) -> dict[TopicPartition, int]:
        assert 0 < timeout_ms <= 5_000
        return {PLACE: self._first}

    def end_offsets(self, _: object, timeout_ms: int) -> dict[TopicPartition, int]:
        assert 0 < timeout_ms <= 5_000
        return {PLACE: self._first + len(self._records)}

    def assign(self, _: object) -> None:
        pass

    def seek(self, _: object, offset: int) -> None:
        self._at = offset

    def position(self, _: object) -> int:
        return self._at

    def poll(self, **_: int) -> dict[TopicPartition, list[SimpleNamespace]]:
        found, self._at = self._records[self._at - self._first :], self._first + len(self._records)
        return {PLACE: found}


def opened(cluster: str = "prod") -> bytes:
    return encode(RoundOpened(1, cluster, "p", 10_000))


OTHERS = [opened(), opened("another"), None, b"\xff\x00", b"[" * 9_000, b'{"type":"new","v":1}', opened()]


@pytest.mark.parametrize(
    ("topic", "end", "offsets"),
    [
        (Topic(OTHERS), 7, [0, 6]),
        (Topic([], first=40), 40, []),
        (Topic([opened()] * 10, first=40), 45, [40, 41, 42, 43, 44]),
    ],
    ids=["others", "empty", "retention"],
)
def test_the_records_of_the_cluster_that_are_left_are_read(
    monkeypatch: pytest.MonkeyPatch, topic: Topic, end: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(turn, "open_consumer", lambda _: topic)
    tail = Tail(Settings(cluster="prod", probe=ProbeSettings()))
    found = tail.read(0, end, Deadline.after(60))
    assert [(offset, time, record.cluster) for offset, time, record in found] == [(at, 5, "prod") for at in offsets]
