"""Story 3: static members that restart within their session.

`tills-static` (kafka-python, `group.instance.id` till-1 and till-2, session 30 s) on `clicks`: till-1 restarts at
25 s, till-2 at 55 s, each within 2 s, and again every 60 s.

Expected: after the first two generations the generation no longer changes; each restart is a churn row of kind
`static_replacement` (same generation, a new member id under the same instance id), none is a rebalance; `drift` has
no verdict for it beyond that generation's `identical`.
"""

from __future__ import annotations

import time

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

_GROUP = "tills-static"


def _start(stage: Stage, till: str) -> KafkaPythonMember:
    settings = MemberSettings(
        story=3, group=_GROUP, topics=("clicks",), client_id=till, instance_id=till, session_timeout_ms=30_000
    )
    return KafkaPythonMember.on_stage(settings, stage)


def _play(stage: Stage) -> None:
    running = {till: _start(stage, till) for till in ("till-1", "till-2")}
    stage.until(25)
    while True:
        for till, member in list(running.items()):
            stage.exit(member)
            # (Not `stage.sleep`: the stage may go quiet here, and then this till would not restart and its session
            # would end.)
            time.sleep(1)
            running[till] = _start(stage, till)
            stage.step(3, f"{till} was restarted", group=_GROUP)
            stage.sleep(30)


STORY = Story(
    number=3,
    title="static members restart within their session",
    groups=(_GROUP,),
    topics={"clicks": 6},
    rates={"clicks": 6.0},
    play=_play,
)
