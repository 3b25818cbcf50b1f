"""Kafka's own Java programs (jar set `tools`): a second opinion.

Each call starts a JVM (1 to 2 s, 60 to 100 MB), so tests request everything in one call.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.demo.java_member import java_command
from streaming.exceptions import EvenkeelError
from streaming.process import GuardedProcess

_CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_QUIET = ["--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"]

_TOOL_S = 120
"""A tool answers in 1 to 2 s, and in several times that while Spark is busy on the same machine."""

_HEADER = re.compile(r"^GROUP +TOPIC +PARTITION +CURRENT-OFFSET +LOG-END-OFFSET +LAG +CONSUMER-ID .*$", re.MULTILINE)

_ROW = re.compile(
    r"(?P<group>.*?) +(?P<topic>[\w.-]+) +(?P<partition>\d+|-) +(?P<current>\d+|-) +(?P<end>\d+|-) +(?P<lag>-?\d+|-)"
    r" +(?P<consumer>\S+) +(?P<host>\S+) +(?P<client>[^\n]*?) *\n",
    re.DOTALL,
)
"""A row of `--describe`. A group id may contain any character, also a line feed, so the other columns are matched
from the right."""


class JavaToolError(EvenkeelError):
    """One of Kafka's Java programs ended with an error."""


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A row of `kafka-consumer-groups --describe --offsets`; a `-` in its output is None here.

    `lag` is Kafka's: log end minus committed offset, negative where the commit is beyond the end.
    """

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


def share_consumer(bootstrap: str, topic: str, group: str, *, log: Path) -> GuardedProcess:
    """Start Kafka's console share consumer (KIP-932) as a member of a share group; it prints no records."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group", group]
    return GuardedProcess([*java_command(), _CONSOLE_SHARE_CONSUMER, *arguments, *_QUIET], log=log)


def describe_all_groups(bootstrap: str) -> list[GroupOffset]:
    """Return the output of `kafka-consumer-groups --describe --all-groups`: a row per group and partition.

    Groups with neither members nor commits have no row. Trailing spaces of a group id are lost, because the column is
    padded with spaces. One group with the empty name makes the tool fail for all groups (`InvalidGroupIdException`,
    Kafka 4.3.1).

    Raises:
        JavaToolError: The tool failed.
    """
    return _described(bootstrap, ["--all-groups"])


def describe_groups(bootstrap: str, groups: Iterable[str]) -> list[GroupOffset]:
    """Return the rows of `kafka-consumer-groups --describe` for these groups, as `describe_all_groups` does for all.

    Raises:
        JavaToolError: The tool failed.
    """
    return _described(bootstrap, [part for group in groups for part in ("--group", group)])


def describe_share_group(bootstrap: str, group: str) -> tuple[str, dict[str, tuple[str, str, set[tuple[str, int]]]]]:
    """Return the state and members of a share group from `kafka-share-groups --describe`; for plain names only.

    Returns:
        The state, and by member id the host, client id, and owned (topic, partition)s.

    Raises:
        JavaToolError: The tool failed.
    """
    asked = [_SHARE_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group]
    state = _below_header(run_java([*asked, "--state"]))[0][-2]
    members = {}
    for _, member, host, client, *_, assigned in _below_header(run_java([*asked, "--members", "--verbose"])):
        places = set()
        # "topic:0,2;other:1"
        for of_topic in filter(None, assigned.split(";")):
            topic, _, numbers = of_topic.rpartition(":")
            places |= {(topic, int(number)) for number in numbers.split(",")}
        members[member] = (host, client, places)
    return state, members


def share_group_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], tuple[int | None, int | None]]:
    """Return start offset and lag by topic and partition from `kafka-share-groups --describe`; for plain names only.

    Raises:
        JavaToolError: The tool failed.
    """
    asked = [_SHARE_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--offsets"]
    rows = _below_header(run_java(asked))
    return {(topic, int(number)): (_number(start), _number(lag)) for _, topic, number, start, lag in rows}


def _below_header(text: str) -> list[list[str]]:
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return rows[1:]


def _described(bootstrap: str, which: list[str]) -> list[GroupOffset]:
    return parse_group_offsets(run_java([_CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--describe", *which]))


def parse_group_offsets(text: str) -> list[GroupOffset]:
    """Parse the tables of `--describe --all-groups` (one per group, each with its own header)."""
    sections = _HEADER.split(text)[1:]
    return [_row(match) for section in sections for match in _ROW.finditer(section.lstrip("\n"))]


def run_java(arguments: Sequence[str | Path]) -> str:
    """Run a main class of Kafka to its end and return its standard output.

    Raises:
        JavaToolError: It exited with an error, printed one, or took longer than two minutes.
    """
    command = [*java_command(), *map(str, arguments)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise JavaToolError(f"{arguments[0]} did not end within {_TOOL_S} s: is the cluster reachable?") from error
    if ended.returncode or ended.stdout.lstrip().startswith("Error:") or "\nError: " in ended.stdout:
        raise JavaToolError(
            f"{arguments[0]} failed (exit code {ended.returncode}): {(ended.stdout + ended.stderr).strip()[:2000]}"
        )
    return ended.stdout


def _row(match: re.Match[str]) -> GroupOffset:
    return GroupOffset(
        group=match["group"],
        topic=match["topic"],
        partition=int(match["partition"]),
        current_offset=_number(match["current"]),
        log_end_offset=_number(match["end"]),
        lag=_number(match["lag"]),
        consumer_id=_text(match["consumer"]),
        host=_text(match["host"]),
        client_id=_text(match["client"]),
    )


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def _text(text: str) -> str | None:
    return None if text == "-" else text
