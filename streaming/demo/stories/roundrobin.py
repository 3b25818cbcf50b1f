"""Story 2: roundrobin over two topics with different subscriptions.

`billing-roundrobin` (librdkafka: kafka-python's own roundrobin raises KeyError here): one member reads `payments`, one
`payments` and `refunds`, and from 15 s on one only `refunds`. The second leaves at 70 s and returns at 90 s, and so on.

Expected: only `identical`, with three different subscriptions in `members`; while the second is a topic's only reader,
it has the whole topic.
"""

from __future__ import annotations

from streaming.demo.librdkafka_member import LibrdkafkaMember, LibrdkafkaSettings
from streaming.demo.stage import Stage, Story

_GROUP = "billing-roundrobin"


def _join(stage: Stage, client_id: str, *topics: str) -> LibrdkafkaMember:
    return LibrdkafkaMember(LibrdkafkaSettings(2, _GROUP, topics, client_id, "roundrobin"), stage)


def _play(stage: Stage) -> None:
    _join(stage, "billing-payments", "payments")
    both = _join(stage, "billing-both", "payments", "refunds")
    stage.until(15)
    _join(stage, "billing-refunds", "refunds")
    stage.until(70)
    while True:
        stage.exit(both)
        stage.step(2, "the member with both topics left", group=_GROUP)
        stage.sleep(20)
        both = _join(stage, "billing-both", "payments", "refunds")
        stage.step(2, "the member with both topics joined", group=_GROUP)
        stage.sleep(70)


STORY = Story(
    number=2,
    title="roundrobin with different subscriptions",
    groups=(_GROUP,),
    topics={"payments": 4, "refunds": 3},
    rates={"payments": 4.0, "refunds": 1.5},
    play=_play,
)
