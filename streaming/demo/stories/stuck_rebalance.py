"""Story 13: a rebalance that does not end: the leader's assignor fails as soon as it has two members to assign to.

`reports-stuck-rebalance` (kafka-python) on `reports` and `reports-late`, one member; at 30 s a second one joins. The
leader's assignor raises, the application passes over that and polls again, as many do, and so the leader joins again
and again without ever sending an assignment. (It lists its topics in any order, and so begins a new rebalance: to a
member that repeats itself the coordinator repeats its answer, and after the rebalance timeout it would remove the
leader.) At 85 s the bug is mended, and the rebalance ends.

Expected: the finding `stuck_rebalance` while it lasts, and none before and after; one alert of that name and one of
`lag`, because nobody owns a partition meanwhile; both resolve.
"""

from __future__ import annotations

import random
import threading
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

GROUP = "reports-stuck-rebalance"

_TIMEOUT_MS = 10_000
"""A rebalance that takes three times as long is stuck; the default is five minutes."""

_PAUSE_S = 0.5


class _TwoMembersError(Exception):
    """The bug of this story's assignor."""


class _ForOne(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Range, until it is mended only for one member."""

    mended = threading.Event()

    @classmethod
    def metadata(cls, topics: Any) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(cls.version, random.sample(sorted(topics), len(topics)), b"")

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        members = list(members)
        if len(members) > 1 and not cls.mended.is_set():
            raise _TwoMembersError
        return super().assign(cluster, members)


class _Undaunted(KafkaPythonMember):
    """Polls again after any error, as an application does whose loop catches them all."""

    def poll(self, consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        try:
            return super().poll(consumer)
        except _TwoMembersError:
            threading.Event().wait(_PAUSE_S)
            return {}


def _start(stage: Stage, name: str) -> KafkaPythonMember:
    settings = MemberSettings(
        story=13,
        group=GROUP,
        topics=("reports", "reports-late"),
        client_id=f"reports-{name}",
        assignors=(_ForOne,),
        session_timeout_ms=_TIMEOUT_MS,
        max_poll_interval_ms=_TIMEOUT_MS,
    )
    return _Undaunted.on_stage(settings, stage)


def _play(stage: Stage) -> None:
    _start(stage, "a")
    stage.until(30)
    _start(stage, "b")
    stage.step(13, "a second member joined", group=GROUP)
    try:
        stage.until(85)
    finally:
        _ForOne.mended.set()
    stage.step(13, "the assignor was mended", group=GROUP)


STORY = Story(
    number=13,
    title="a rebalance that does not end: the leader's assignor fails",
    groups=(GROUP,),
    topics={"reports": 2, "reports-late": 2},
    rates={"reports": 1.0, "reports-late": 1.0},
    play=_play,
)
