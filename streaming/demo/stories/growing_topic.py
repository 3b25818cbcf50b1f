"""Story 7: a topic gets more partitions while it is consumed.

`signups-growing` (kafka-python, `metadata_max_age_ms` 75 s) on `signups`: three partitions, and two more at 40 s, which
the leader sees at its next metadata refresh, 75 s after it joined; then one more every four minutes, up to twelve.

Expected: the finding `stale_metadata` from the round after the growth until the generation whose leader has seen it;
each generation's verdict `identical`, judged with the counts its leader had.
"""

from __future__ import annotations

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story

_GROUP, _TOPIC = "signups-growing", "signups"

_MOST_PARTITIONS = 12
"""A demo that runs for days must not grow a topic for days."""


def _play(stage: Stage) -> None:
    for name in ("a", "b"):
        settings = MemberSettings(7, _GROUP, (_TOPIC,), f"signups-{name}", metadata_max_age_ms=75_000)
        KafkaPythonMember.on_stage(settings, stage)
    stage.until(40)
    for count in (5, *range(6, _MOST_PARTITIONS + 1)):
        stage.grow_topic(_TOPIC, count)
        stage.step(7, f"the topic has {count} partitions now", topic=_TOPIC, group=_GROUP)
        stage.sleep(240)


STORY = Story(
    number=7,
    title="a topic grows while it is consumed",
    groups=(_GROUP,),
    topics={_TOPIC: 3},
    rates={_TOPIC: 3.0},
    play=_play,
)
