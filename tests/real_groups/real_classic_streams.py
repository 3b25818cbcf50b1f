"""Instances of a real Kafka Streams application with the classic protocol (ClassicStreams.java), in a process each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from streaming.jars import classpath
from streaming.records import MembershipRecord, thread_of
from tests.oracle.java_classes import java_command

_SOURCE = Path(__file__).resolve().parents[1] / "oracle" / "ClassicStreams.java"
_END_S = 20.0

Tasks = dict[str, tuple[list[str], list[str]]]
"""Active and standby tasks, sorted, by client id of a thread's consumer."""


class ClassicStreams:
    """A process with instances of an application. A context manager, at whose end they crash."""

    def __init__(
        self, bootstrap: str, application: str, topics: Iterable[str], folder: Path, *, leaves: bool = False
    ) -> None:
        """Prepare the process; nothing is started yet.

        Args:
            bootstrap: The broker.
            application: Id of the application, and of its group.
            topics: One whose records are counted, and two that are read together.
            folder: For its state.
            leaves: A closed instance leaves its group; by default its members stay until their session times out.
        """
        settings = {
            "bootstrap.servers": bootstrap,
            "application.id": application,
            "num.standby.replicas": "1",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "commit.interval.ms": "500",
            "auto.offset.reset": "earliest",
            "application.server": "here:8080",
            "client.tag.zone": "a",
            "main.consumer.internal.leave.group.on.close": str(leaves).lower(),
        }
        told = [part for setting in settings.items() for part in setting]
        self._command = [*java_command(_SOURCE, classpath("streams"), "256m"), str(folder), *topics, *told]
        self._log = folder.with_suffix(".log")

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self, name: str, threads: int) -> None:
        """Start an instance."""
        assert self._ask(f"start {name} {threads}") == "started"

    def close(self, name: str) -> None:
        """Close an instance, as before it is deployed again."""
        assert self._ask(f"close {name}") == "closed"

    def kill(self) -> None:
        """End the process, and with it every instance, without a word to the broker."""
        self._process.kill()
        self._process.wait(_END_S)

    def tasks(self) -> Tasks | None:
        """What the threads say they have (`KafkaStreams.metadataForLocalThreads`); None while one is not running."""
        told = self._ask("tasks")
        if told == "-":
            return None
        threads = [thread.split("=") for thread in told.split(";") if thread]
        return {client: (_listed(has.split("|")[0]), _listed(has.split("|")[1])) for client, has in threads}

    def _ask(self, line: str) -> str:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the JVM has ended: {self._log} says why"
        return answer.rstrip("\n")


def _listed(tasks: str) -> list[str]:
    return sorted(filter(None, tasks.split(",")))


def tasks_in(record: MembershipRecord) -> Tasks:
    """The tasks that a record's members got, as the codec reads them."""
    found: Tasks = {}
    for member in record.members:
        thread = thread_of(member)
        assert thread.unreadable is None
        active, standby = (
            sorted(f"{name}_{number}" for name, numbers in tasks for number in numbers)
            for tasks in (thread.active, thread.standby)
        )
        found[member.client_id] = active, standby
    return found
