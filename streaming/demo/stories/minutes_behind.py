"""Story 16: a group that is minutes behind, with a lag that looks small.

`exports-behind` (kafka-python) on `exports`, one member that needs ten seconds for each record, while one a second
comes; from 95 s on it keeps up, for half a minute in every six.

Expected: at 95 s its lag is below a hundred records, but the oldest of them is more than a minute old:
`time_behind_seconds_min` says so, and is never more than the time since the first record.
"""

from __future__ import annotations

import threading
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

GROUP = "exports-behind"

_RECORD_S = 10.0


class _Slow(KafkaPythonMember):
    """Takes a long time for each record, until `fast` is set."""

    def __init__(self, *given: Any) -> None:
        self.fast = threading.Event()
        super().__init__(*given)

    def poll(self, consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        if self.fast.is_set():
            return super().poll(consumer)
        records: dict[TopicPartition, list[Any]] = consumer.poll(0, max_records=1)
        self.fast.wait(_RECORD_S if records else 1.0)
        return records


def _play(stage: Stage) -> None:
    settings = MemberSettings(16, GROUP, ("exports",), "exports-a")
    member = _Slow.on_stage(settings, stage)
    try:
        stage.until(95)
        while True:
            member.fast.set()
            stage.step(16, "the member keeps up", group=GROUP)
            stage.sleep(30)
            member.fast.clear()
            stage.step(16, "the member is slow again", group=GROUP)
            stage.sleep(330)
    finally:
        member.fast.set()


STORY = Story(
    number=16,
    title="minutes behind, with a lag that looks small",
    groups=(GROUP,),
    topics={"exports": 1},
    rates={"exports": 1.0},
    play=_play,
)
