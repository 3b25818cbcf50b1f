"""Story 4: a custom assignor with the name `range` gives everything to one member; then the group is healed.

`clicks-pile-up` (kafka-python) on `clicks`, three members from the start and a fourth at 45 s; at 75 s all are replaced
by three members with the real range assignor.

Expected: before the healing, `drift` has `drifted` with drift kind `misplaced` for every generation of at least two
members, after it `identical`; imbalance 2.0 (one of three has all), then 3.0, where 0.0 and 0.33 are possible; one
alert of drift and one of imbalance, however many generations; the group's newest `group_health` has no finding. (A
generation with a single member is `identical`: there the custom assignor and range agree.)
"""

from __future__ import annotations

from typing import Any

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

_GROUP = "clicks-pile-up"


class _PileUp(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Gives all partitions to the member whose id sorts last, under the name `range`."""

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        everything: dict[str, list[int]] = {}
        for member in members:
            for topic in member.metadata.topics:
                everything[topic] = sorted(cluster.partitions_for_topic(topic) or ())
        last = max(member.member_id for member in members)
        return {
            member.member_id: ConsumerProtocolAssignment(
                cls.version, sorted(everything.items()) if member.member_id == last else [], b""
            )
            for member in members
        }


def _start(stage: Stage, assignor: type[RangePartitionAssignor], names: str) -> list[KafkaPythonMember]:
    return [
        KafkaPythonMember.on_stage(
            MemberSettings(
                story=4, group=_GROUP, topics=("clicks",), client_id=f"clicks-{name}", assignors=(assignor,)
            ),
            stage,
        )
        for name in names
    ]


def _play(stage: Stage) -> None:
    piling = _start(stage, _PileUp, "abc")
    stage.until(45)
    piling += _start(stage, _PileUp, "d")
    stage.step(4, "a fourth member joined", group=_GROUP)
    stage.until(75)
    stage.exit(*piling)
    _start(stage, RangePartitionAssignor, "abc")
    stage.step(4, "the group was healed", group=_GROUP)


STORY = Story(
    number=4,
    title="a leader that calls itself range piles everything on one member",
    groups=(_GROUP,),
    topics={"clicks": 6},
    play=_play,
)
