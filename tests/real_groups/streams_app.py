"""Members of a real streams group (KIP-1071), and the output of `kafka-streams-groups` for it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from streaming.jars import classpath
from streaming.java import find_java
from streaming.process import GuardedProcess
from tests.java_tools import run_java
from tests.short_lived import SHORT_LIVED

__all__ = ["describe_streams_group", "streams_members"]

_SOURCE = Path(__file__).resolve().parents[1] / "oracle" / "StreamsMember.java"
_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"

Place = tuple[str, int]


def streams_members(bootstrap: str, topic: str, group: str, folder: Path, count: int) -> GuardedProcess:
    """Start an application that reads a topic; each of its threads is a member, and commits everything it has read."""
    settings = {
        "bootstrap.servers": bootstrap,
        "application.id": group,
        "group.protocol": "streams",
        "state.dir": str(folder / "state"),
        "commit.interval.ms": "200",
        "num.stream.threads": str(count),
    }
    flags = ["-Xmx128m", *SHORT_LIVED]
    jars = os.pathsep.join(map(str, classpath("streams")))
    told = [part for setting in settings.items() for part in setting]
    folder.mkdir()
    return GuardedProcess([find_java(), *flags, "-cp", jars, _SOURCE, topic, *told], log=folder / "log")


def describe_streams_group(
    bootstrap: str, group: str
) -> tuple[dict[Place, tuple[int, int, int]], dict[str, tuple[str, dict[str, set[int]]]]]:
    """The tool's output for a group at rest; for plain names only.

    Returns:
        Committed offset, end and lag by partition; and by member id its client id and its active tasks.
    """
    asked = [_TOOL, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--verbose"]
    offsets = {}
    for line in _rows(run_java([*asked, "--offsets"])):
        _, topic, partition, current, _, end, lag = line.split()
        offsets[topic, int(partition)] = (int(current), int(end), int(lag))
    members = {}
    for line in _rows(run_java([*asked, "--members"])):
        fields = line.split()
        # ("ACTIVE: 0:[1,3]; 1:[0]; TARGET-ACTIVE: ...")
        active = re.search(r"(?<!-)ACTIVE: (.*?)(?:[A-Z-]+: |$)", line)
        tasks = re.findall(r"(\S+):\[([\d,]*)\]", active[1] if active else "")
        members[fields[3]] = fields[7], {name: set(map(int, numbers.split(","))) for name, numbers in tasks}
    return offsets, members


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][1:]
