"""Story 6: a stuck member: its heartbeat continues, its commits stop, lag grows; then it recovers.

`billing-stuck` (kafka-python) on `payments`, two members with two partitions each; the second is stuck from 30 s to
90 s, and again every three minutes.

Expected: the lag of the second member's partitions grows to about 60 records each (1/s per partition), while that of
the others stays near zero; no rebalance; after the recovery lag falls to near zero.
"""

from __future__ import annotations

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

_GROUP = "billing-stuck"


def _play(stage: Stage) -> None:
    members = [
        KafkaPythonMember.on_stage(MemberSettings(6, _GROUP, ("payments",), f"{_GROUP}-{name}"), stage)
        for name in ("a", "b")
    ]
    stuck = members[1]
    stage.until(30)
    try:
        while True:
            stuck.get_stuck()
            stage.step(6, "a member got stuck", group=_GROUP)
            stage.sleep(60)
            stuck.recover()
            stage.step(6, "the member recovered", group=_GROUP)
            stage.sleep(120)
    finally:
        stuck.recover()


STORY = Story(
    number=6,
    title="a stuck member: lag grows, then it recovers",
    groups=(_GROUP,),
    topics={"payments": 4},
    play=_play,
)
