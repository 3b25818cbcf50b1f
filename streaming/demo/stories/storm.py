"""Story 14: a rebalance storm: a member that crashes soon after each of its starts.

`logins-storm` (kafka-python) on `logins`, one member that stays, and from 20 s on one that joins and leaves four
times, which is eight rebalances within a minute.

A storm is measured against the group's own past, and only in a group that is older than an hour. No group of a demo is.
So the story begins with a record of two hours ago, as the coordinator writes it when a group is created: the only
history in the demo that is made up.

Expected: the finding `rebalance_storm` with how many rebalances the group usually has; no other group has it.
"""

from __future__ import annotations

import struct
import time

from confluent_kafka import Producer

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage, Story

GROUP = "logins-storm"

_CRASHES = 4
_AGE_MS = 2 * 3_600_000
_LOG = "__consumer_offsets"


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _write_past(stage: Stage) -> None:
    """Write the group's creation into the log: a GroupMetadata record, version 3, of generation 0 without members.

    It must come before the group's first member: a coordinator whose log has a record that it did not write loads the
    partition again, with all its groups.
    """
    created = round(time.time() * 1000) - _AGE_MS
    key = struct.pack(">h", 2) + _text(GROUP)
    value = struct.pack(">h", 3) + _text("consumer") + struct.pack(">ihhqi", 0, -1, -1, created, 0)
    producer = Producer(
        {"bootstrap.servers": stage.bootstrap, "client.id": "__admin_client", "log_level": QUIET_LIBRDKAFKA}
    )
    producer.produce(_LOG, value, key, partition=_log_partition(stage), timestamp=created)
    producer.flush(20)


def _log_partition(stage: Stage) -> int:
    """The group's partition of the offsets log, which exists as soon as any member has joined: here, or soon."""
    while True:
        try:
            return stage.log_partition_of(GROUP)
        except LookupError:
            stage.sleep(1)


def _member(stage: Stage, name: str) -> KafkaPythonMember:
    return KafkaPythonMember.on_stage(MemberSettings(14, GROUP, ("logins",), f"logins-{name}"), stage)


def _play(stage: Stage) -> None:
    stage.until(5)
    _write_past(stage)
    _member(stage, "a")
    stage.until(20)
    for _ in range(_CRASHES):
        crashing = _member(stage, "b")
        stage.sleep(5)
        stage.exit(crashing)
        stage.step(14, "a member came and went", group=GROUP)
        stage.sleep(5)


STORY = Story(
    number=14,
    title="a rebalance storm: a member that crashes again and again",
    groups=(GROUP,),
    topics={"logins": 4},
    rates={"logins": 1.0},
    play=_play,
)
