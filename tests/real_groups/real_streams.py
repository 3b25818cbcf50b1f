"""Real streams groups: instances of Kafka Streams applications, and what Kafka's own tool says of their group."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from streaming.jars import classpath
from tests.java_tools import run_java
from tests.oracle.java_classes import java_command
from tests.oracle.members_process import MembersProcess

_SOURCE = Path(__file__).resolve().parents[1] / "oracle" / "StreamsMembers.java"
_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"

Tasks = dict[str, dict[str, set[int]]]
"""Partitions by kind (active, standby, warmup) and subtopology; kinds without tasks are missing."""


class Machine(MembersProcess):
    """A machine that runs instances of one application; a context manager, at whose end it crashes."""

    def __init__(self, bootstrap: str, application: str, folder: Path) -> None:
        super().__init__(java_command(_SOURCE, classpath("streams"), "256m"))
        self._bootstrap, self._application, self._folder = bootstrap, application, folder

    def run(self, topic: str, *, store: str | None = "store", threads: int = 1) -> str:
        """Start an instance, with members that commit everything they have read; returns its name."""
        name = f"{self._folder.name}-{len(self._closed)}"
        settings = {
            "bootstrap.servers": self._bootstrap,
            "application.id": self._application,
            "client.id": name,
            "group.protocol": "streams",
            "state.dir": str(self._folder / name),
            "commit.interval.ms": "200",
            "num.stream.threads": str(threads),
            # A member that waits for a topic should not wait for long.
            "metadata.max.age.ms": "2000",
            # Deleting what was read moves the log start, at any time between two rounds.
            "repartition.purge.interval.ms": "3600000",
        }
        return self.start([topic], settings if store is None else settings | {"store": store})


class Told(NamedTuple):
    """A member as the tool shows it.

    Attributes:
        client_id: Client id.
        process: Process id.
        epoch: The epoch that it has reached.
        current: Its tasks now.
        target: Its target.
    """

    client_id: str
    process: str
    epoch: int
    current: Tasks
    target: Tasks


class Described(NamedTuple):
    """A group as the tool shows it.

    Attributes:
        state: In Kafka's words.
        epoch: Group epoch.
        target_epoch: Epoch of its target.
        members: By member id.
        offsets: Committed offset, None where there is none, end and lag, by topic and partition.
    """

    state: str
    epoch: int
    target_epoch: int
    members: dict[str, Told]
    offsets: dict[tuple[str, int], tuple[int | None, int, int]]


def configure_group(bootstrap: str, group: str, **settings: str) -> None:
    """Set a group's own settings; dots in their names are written as underscores."""
    told = ",".join(f"{name.replace('_', '.')}={value}" for name, value in settings.items())
    where = ["--bootstrap-server", bootstrap, "--alter", "--entity-type", "groups", "--entity-name", group]
    run_java(["kafka.admin.ConfigCommand", *where, "--add-config", told])


def describe_streams_group(bootstrap: str, group: str) -> Described:
    """The tool's output for a group; for plain names only."""
    asked = [_TOOL, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--verbose"]
    offsets: dict[tuple[str, int], tuple[int | None, int, int]] = {}
    for line in _rows(run_java([*asked, "--offsets"])):
        _, topic, partition, current, _, end, lag = line.split()
        offsets[topic, int(partition)] = (None if current == "-" else int(current), int(end), int(lag))
    members = {}
    for line in _rows(run_java([*asked, "--members"])):
        head, _, tasks = line.partition("ACTIVE:")
        fields = head.replace("TARGET-", "").split()
        told = _tasks(f"{'TARGET-' if head.rstrip().endswith('TARGET-') else ''}ACTIVE:{tasks}")
        target = {kind.removeprefix("target-"): of for kind, of in told.items() if kind.startswith("target-")}
        current_tasks = {kind: of for kind, of in told.items() if not kind.startswith("target-")}
        members[fields[3]] = Told(fields[7], fields[6], int(fields[5]), current_tasks, target)
    state = _rows(run_java([*asked, "--state"]))[0].split()
    return Described(state[-4], int(state[-3]), int(state[-2]), members, offsets)


def _tasks(text: str) -> Tasks:
    """For example "ACTIVE: 0:[1,3]; 1:[0]; TARGET-STANDBY: 1:[0]; "."""
    kinds = re.split(r"((?:TARGET-)?(?:ACTIVE|STANDBY|WARMUP)): ", text)[1:]
    found = {}
    for kind, listed in zip(kinds[::2], kinds[1::2], strict=True):
        tasks = re.findall(r"(\S+):\[([\d,]*)\]", listed)
        found[kind.lower()] = {name: set(map(int, numbers.split(","))) for name, numbers in tasks}
    return found


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][1:]
