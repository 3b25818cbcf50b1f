"""The story of the rebalance storm: its group's made-up past."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.demo.stage import StageOverError
from streaming.demo.stories import storm


class Stage:
    """A stage whose offsets log is there after some looks, as where no member has joined yet.

    Attributes:
        slept: How often the story has waited.
    """

    bootstrap = "127.0.0.1:1"

    def __init__(self, looks: int, patience: int = 10) -> None:
        self.slept = 0
        self._looks, self._patience = looks, patience

    def log_partition_of(self, group: str) -> int:
        assert group == "logins-storm"
        if self.slept < self._looks:
            raise LookupError(group)
        return 17

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        if self.slept == self._patience:
            raise StageOverError
        self.slept += 1


@pytest.fixture
def partitions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions of the log into which a record was written."""
    written: list[int] = []

    class Producer:
        def __init__(self, _settings: dict[str, Any]) -> None:
            pass

        def produce(self, topic: str, _value: bytes, _key: bytes, *, partition: int, timestamp: int) -> None:
            assert (topic, timestamp > 0) == ("__consumer_offsets", True)
            written.append(partition)

        def flush(self, _seconds: float) -> None:
            pass

    monkeypatch.setattr(storm, "Producer", Producer)
    return written


def test_the_past_is_written_as_soon_as_a_member_has_joined_somewhere(partitions: list[int]) -> None:
    stage = Stage(looks=3)
    storm._write_past(stage)  # type: ignore[arg-type]
    assert (partitions, stage.slept) == ([17], 3)


def test_the_story_ends_with_the_stage_where_no_member_ever_joins(partitions: list[int]) -> None:
    with pytest.raises(StageOverError):
        storm._write_past(Stage(looks=99))  # type: ignore[arg-type]
    assert partitions == []
