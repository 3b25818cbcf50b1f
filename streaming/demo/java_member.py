"""A group member that runs Kafka's own console consumer (jar set `tools`), in its own JVM of 60 to 100 MB."""

from __future__ import annotations

import os
from pathlib import Path

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from streaming.demo.stage import Stage
from streaming.jars import classpath
from streaming.java import find_java
from streaming.process import GuardedProcess

JVM: list[str] = []
"""Further options of every tool's JVM. The tests set it, because theirs live for a second or two."""

_AUTO_COMMIT_MS = 1_000
"""Auto-commits happen also when nothing has moved, so they cannot be counted; only the final offsets are certain."""

_STOP_S = 15.0
"""Leaving takes half a second, but a JVM that is still starting finishes its start first."""


class JavaMember:
    """One running member, with Kafka's default strategies: [range, cooperative-sticky], so `range`, eager."""

    def __init__(self, topic: str, group: str, client_id: str, stage: Stage) -> None:
        """Start its JVM."""
        properties = {
            "client.id": client_id,
            "auto.commit.interval.ms": str(_AUTO_COMMIT_MS),
            "auto.offset.reset": "earliest",
            "session.timeout.ms": "10000",
        }
        command = [*java_command(), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
        command += ["--bootstrap-server", stage.bootstrap, "--topic", topic, "--group", group]
        command += [part for key, value in properties.items() for part in ("--command-property", f"{key}={value}")]
        command += ["--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"]
        self._process = GuardedProcess(command, log=stage.folder / "members.log")
        self._stage, self._topic, self._group = stage, topic, group

    @property
    def settled(self) -> bool:
        """Whether its group has committed the ends of the topic."""
        return has_read_all(self._stage, self._group, self._topic)

    def leave(self) -> None:
        """Stop the JVM; it commits and leaves its group."""
        self._process.stop(_STOP_S)


def has_read_all(stage: Stage, group: str, topic: str) -> bool:
    """Whether a group has committed the ends of a topic to which nothing is written any more."""
    if not stage.drained.is_set():
        return False
    partitions = [TopicPartition(topic, number) for number in range(stage.partitions_of(topic))]
    ends = stage.admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    committed = stage.admin.list_group_offsets({group: partitions})[group]
    return all(tp in committed and committed[tp].offset >= ends[tp].offset for tp in partitions)


def java_command(jars: str = "tools") -> list[str | Path]:
    """The beginning of a command line for one of Kafka's programs, with the jars of this set."""
    # Their work is small: a small heap, one collector thread, and no time spent on optimising code.
    flags = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    return [find_java(), *flags, *JVM, "-cp", os.pathsep.join(map(str, classpath(jars)))]
