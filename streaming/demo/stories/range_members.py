"""Story 1: range; members join and leave, one is killed and expires.

`orders-range` (kafka-python) on `orders`: two members from the start, a third at 20 s, a fourth at 32 s in its own
process, which gets SIGKILL at 55 s and expires 6 s later; from 80 s on the third leaves and returns. `orders-java`
(Kafka's console consumer, default strategies [range, cooperative-sticky], so `range`, eager): one member from the
start, a second from 25 s to 95 s.

Expected: `drift` has only `identical` for both groups; `rebalance_churn` has a row of kind `rebalance` per generation
with the members that joined and left; lag stays near zero.
"""

from __future__ import annotations

from streaming.demo.java_member import JavaMember
from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings, start_in_own_process
from streaming.demo.stage import Stage, StageOverError, Story

_GROUP, _JAVA_GROUP, _TOPIC = "orders-range", "orders-java", "orders"


def _settings(name: str) -> MemberSettings:
    return MemberSettings(story=1, group=_GROUP, topics=(_TOPIC,), client_id=f"orders-{name}", session_timeout_ms=6_000)


def _play(stage: Stage) -> None:
    for name in ("a", "b"):
        KafkaPythonMember.on_stage(_settings(name), stage)
    JavaMember(stage, _TOPIC, _JAVA_GROUP, "java-a")
    stage.until(20)
    third = KafkaPythonMember.on_stage(_settings("c"), stage)
    stage.until(25)
    java = JavaMember(stage, _TOPIC, _JAVA_GROUP, "java-b")
    stage.until(32)
    doomed = start_in_own_process(_settings("doomed"), stage, commit_for_s=15)
    try:
        stage.until(55)
    except StageOverError:
        doomed.stop(30)  # the demo ends early: let it leave, so that other members get its partitions
        raise
    doomed.kill()
    stage.step(1, "a member was killed", group=_GROUP)
    stage.until(80)
    while True:
        stage.exit(third)
        stage.step(1, "a member left", group=_GROUP)
        stage.sleep(15)
        stage.exit(java)
        stage.sleep(15)
        third = KafkaPythonMember.on_stage(_settings("c"), stage)
        stage.step(1, "a member joined", group=_GROUP)
        stage.sleep(30)
        java = JavaMember(stage, _TOPIC, _JAVA_GROUP, "java-b")
        stage.sleep(30)


STORY = Story(
    number=1,
    title="range, steady: members join and leave, one is killed",
    groups=(_GROUP, _JAVA_GROUP),
    topics={_TOPIC: 6},
    rates={_TOPIC: 6.0},
    play=_play,
)
