"""Story 15: an idle member: three members for two partitions.

`newsletter-idle` (kafka-python) on `newsletters`, three members from the start.

Expected: the finding `idle_members`, which names the third member and the two partitions as the reason; the verdict is
`identical`, because range can do nothing about it; no alert.
"""

from __future__ import annotations

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

GROUP = "newsletter-idle"


def _play(stage: Stage) -> None:
    for name in "abc":
        KafkaPythonMember.on_stage(MemberSettings(15, GROUP, ("newsletters",), f"newsletter-{name}"), stage)


STORY = Story(
    number=15,
    title="an idle member: three members for two partitions",
    groups=(GROUP,),
    topics={"newsletters": 2},
    rates={"newsletters": 1.0},
    play=_play,
)
