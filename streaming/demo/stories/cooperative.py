"""Story 9: a sticky and a cooperative-sticky group.

`clicks-sticky` (kafka-python, eager) on `clicks`: two members, a third at 20 s, which leaves at 85 s and returns.
`orders-cooperative` (librdkafka) on `orders`: one member, a second at 18 s, a third at 40 s; the second leaves at
80 s and returns at 100 s, and so on.

Expected: both groups are `identical` in every generation. Each join into `orders-cooperative` takes two generations: in
the first the new member gets few partitions or none, and others are given up; the second hands those over, and its
churn row `follows` the first. A move counts once.
"""

from __future__ import annotations

from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.librdkafka_member import LibrdkafkaMember, LibrdkafkaSettings
from streaming.demo.stage import Stage, Story

_STICKY, _COOPERATIVE = "clicks-sticky", "orders-cooperative"


def _join_sticky(stage: Stage, name: str) -> KafkaPythonMember:
    settings = MemberSettings(9, _STICKY, ("clicks",), f"sticky-{name}", assignors=(StickyPartitionAssignor,))
    return KafkaPythonMember.on_stage(settings, stage)


def _join_cooperative(stage: Stage, name: str) -> LibrdkafkaMember:
    settings = LibrdkafkaSettings(9, _COOPERATIVE, ("orders",), f"cooperative-{name}", "cooperative-sticky")
    return LibrdkafkaMember(settings, stage)


def _play(stage: Stage) -> None:
    for name in ("a", "b"):
        _join_sticky(stage, name)
    _join_cooperative(stage, "a")
    stage.until(18)
    second = _join_cooperative(stage, "b")
    stage.step(9, "a second member joined", group=_COOPERATIVE)
    stage.until(20)
    third_sticky = _join_sticky(stage, "c")
    stage.until(40)
    _join_cooperative(stage, "c")
    stage.step(9, "a third member joined", group=_COOPERATIVE)
    stage.until(80)
    while True:
        stage.exit(second)
        stage.step(9, "a member left", group=_COOPERATIVE)
        stage.sleep(5)
        stage.exit(third_sticky)
        stage.step(9, "a member left", group=_STICKY)
        stage.sleep(15)
        second = _join_cooperative(stage, "b")
        stage.step(9, "a member joined", group=_COOPERATIVE)
        stage.sleep(5)
        third_sticky = _join_sticky(stage, "c")
        stage.step(9, "a member joined", group=_STICKY)
        stage.sleep(65)


STORY = Story(
    number=9,
    title="sticky and cooperative-sticky",
    groups=(_STICKY, _COOPERATIVE),
    topics={"clicks": 6, "orders": 6},
    play=_play,
)
