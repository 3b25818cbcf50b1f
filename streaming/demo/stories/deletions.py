"""Story 11: a group is deleted, a topic is deleted, and a group's offsets expire.

`orders-retired` is stuck from 30 s on, its member leaves at 75 s, and it is deleted at 80 s. `coupons-reader` reads
`coupons` and `payments`; at 45 s its member is replaced by one that reads only `payments`, and at 65 s `coupons` is
deleted. `one-off-report` only assigns and commits once, at 10 s, with a retention of 60 s (OffsetCommit of version 2,
as clients before Kafka 2.1 sent it; no current client can). Its offsets expire at the broker's next check after 70 s;
those of other groups do not.

Expected: closing rows for `orders-retired` (tombstones of its commits and of the group), whose lag alert ends with it;
closing rows for the partitions of `coupons` only, and for `one-off-report`; none of them is in a `_current` view
afterwards; `coupons-reader` continues. The commits of `one-off-report` have value version 1, which no other writer
produces today.

The broker checks every ten minutes unless `offsets.retention.check.interval.ms` says otherwise: see `DEMO_OVERRIDES` in
`streaming.demo.broker`.
"""

from __future__ import annotations

from streaming.demo.expiring_commit import commit_with_retention
from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import Stage, Story
from streaming.exceptions import EvenkeelError

_RETIRED, _READER, _REPORT = "orders-retired", "coupons-reader", "one-off-report"
_TOPIC = "coupons"

_RETENTION_MS = 60_000
"""Long enough to be seen alive for several rounds, short enough to expire while people watch."""


def _play(stage: Stage) -> None:
    retired = KafkaPythonMember.on_stage(MemberSettings(11, _RETIRED, ("orders",), "retired-a"), stage)
    reader = KafkaPythonMember.on_stage(MemberSettings(11, _READER, (_TOPIC, "payments"), "coupons-a"), stage)
    stage.until(10)
    offsets = {("payments", partition): 1 for partition in range(stage.partitions_of("payments"))}
    commit_with_retention(stage.bootstrap, _REPORT, offsets, retention_ms=_RETENTION_MS)
    stage.ledger.committed(11, _REPORT, offsets)
    stage.step(11, f"committed with a retention of {_RETENTION_MS} ms", group=_REPORT)
    stage.until(30)  # (by then its rhythm is known, even if the first rounds were late)
    retired.get_stuck()
    stage.step(11, "its member got stuck", group=_RETIRED)
    stage.until(45)
    stage.exit(reader)
    KafkaPythonMember.on_stage(MemberSettings(11, _READER, ("payments",), "coupons-b"), stage)
    stage.step(11, "the group no longer reads the topic", group=_READER, topic=_TOPIC)
    stage.until(65)
    stage.delete_topic(_TOPIC)
    stage.step(11, "the topic was deleted", topic=_TOPIC, group=_READER)
    stage.until(75)
    stage.exit(retired)
    stage.step(11, "all members left", group=_RETIRED)
    stage.until(80)
    for group, error in stage.admin.delete_groups([_RETIRED]).items():
        if error != "OK":
            message = f"The group {group} could not be deleted: {error}."
            raise EvenkeelError(message)
    stage.step(11, "the group was deleted", group=_RETIRED)


STORY = Story(
    number=11,
    title="a group is deleted, a topic is deleted, offsets expire",
    groups=(_RETIRED, _READER, _REPORT),
    topics={_TOPIC: 2, "orders": 6, "payments": 4},
    rates={_TOPIC: 1.0},
    play=_play,
)
