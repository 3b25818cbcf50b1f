"""The recording: one real run of the demo's stories with the real probe, which every test of this folder reads.

Its course:

    all stories for PLAY_S, with readings of the admin client around rounds
    quiet: nothing is produced or committed any more, members stay; two more rounds; readings; the job, to the end
    all members leave; two more rounds; the probe ends; from here on no topic changes
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove, OffsetSpec
from kafka.errors import CoordinatorLoadInProgressError, GroupIdNotFoundError, UnknownTopicOrPartitionError

from streaming.config import JobSettings, KafkaSettings, ProbeSettings, Settings, Writer
from streaming.demo.stories import ALL_STORIES
from streaming.process import GuardedProcess
from tests.e2e.journal import Place, Played
from tests.examples import BY_NIGHT
from tests.java_tools import GroupOffset, describe_all_groups
from tests.patience import until

_ROUND_S = 90.0
"""A round comes every two seconds; a machine that starts JVMs at the same time needs many times that."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Offsets at one moment, or shortly after it.

    Attributes:
        committed: Committed offset by group, topic and partition.
        ends: High watermark by topic and partition.
    """

    committed: dict[Place, int]
    ends: dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Bracket:
    """A closed round between two readings: one was complete before it opened, one began after it closed."""

    round: int
    before: Reading
    after: Reading


@dataclass(frozen=True, slots=True)
class Owner:
    """One member as the coordinator describes it.

    Attributes:
        group: Its group.
        member_id: Member id.
        client_id: Client id.
        host: Host, as "/127.0.0.1".
        assigned: Topic and partition of everything that it owns.
    """

    group: str
    member_id: str
    client_id: str
    host: str
    assigned: frozenset[tuple[str, int]]


def group_ids(admin: KafkaAdminClient, unless: str | None = None) -> list[str]:
    """All groups, but for those of a protocol type; asks again while a coordinator loads its part of the log."""
    while True:
        try:
            return [group["group_id"] for group in admin.list_groups() if group["protocol_type"] != unless]
        except CoordinatorLoadInProgressError:
            continue


def read_now(admin: KafkaAdminClient) -> Reading:
    """Read all groups; repeats the requests while a group is being deleted, or a coordinator loads."""
    while True:
        try:
            groups = group_ids(admin)
            offsets = admin.list_group_offsets(groups)
            topics = {p.topic for of_group in offsets.values() for p in of_group}
            found = admin.describe_topics(sorted(topics & set(admin.list_topics())))
            asked = [TopicPartition(t["name"], p["partition_index"]) for t in found for p in t["partitions"]]
            ends = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
        except (UnknownTopicOrPartitionError, GroupIdNotFoundError, CoordinatorLoadInProgressError):
            continue
        return Reading(
            {
                (group, p.topic, p.partition): committed.offset
                for group, of_group in offsets.items()
                for p, committed in of_group.items()
                if committed.offset >= 0
            },
            {(p.topic, p.partition): end.offset for p, end in ends.items()},
        )


def owners(admin: KafkaAdminClient) -> list[Owner]:
    """All members of all groups that assign partitions; the client cannot read what Connect's workers write."""
    described = admin.describe_groups(group_ids(admin, unless="connect"))
    return [
        Owner(
            group,
            member["member_id"],
            member["client_id"],
            member["client_host"],
            frozenset(
                (topic["topic"], partition)
                for topic in member["member_assignment"]["assigned_partitions"]
                for partition in topic["partitions"]
            ),
        )
        for group, description in described.items()
        for member in description["members"]
    ]


class RoundsWatch:
    """Follows the rounds topic with a plain consumer and a plain JSON parser."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._partition = TopicPartition(topic, 0)
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        self._assigned = False
        self.closed: list[dict[str, Any]] = []

    def end(self) -> int:
        """A lower bound for the number of the next round."""
        if not self._consumer.partitions_for_topic(self._partition.topic):
            return 0
        return int(self._consumer.end_offsets([self._partition])[self._partition])

    def wait_for_closed(self, since: int, count: int = 1) -> int:
        """Wait until `count` rounds with numbers from `since` on have closed; returns the last one's number."""
        deadline = time.monotonic() + _ROUND_S
        while len(after := [record["round"] for record in self.closed if record["round"] >= since]) < count:
            assert time.monotonic() < deadline, f"no round from {since} on closed within {_ROUND_S} s"
            self._poll()
        return int(after[count - 1])

    def close(self) -> None:
        self._consumer.close()

    def _poll(self) -> None:
        if not self._assigned:
            if not self._consumer.partitions_for_topic(self._partition.topic):
                time.sleep(0.1)  # the probe has not created it yet
                return
            self._consumer.assign([self._partition])
            self._consumer.seek_to_beginning(self._partition)
            self._assigned = True
        for record in self._consumer.poll(200).get(self._partition, []):
            content = json.loads(record.value)
            if content["type"] == "closed":
                self.closed.append(content)


CLUSTER = "recorded"

STORIES = tuple(
    story for story in ALL_STORIES if BY_NIGHT or not set(story.groups) & {"words-streams", "files-connect"}
)
"""What is recorded: by day without the JVMs of Kafka Streams and Connect, whose events `tests/real_groups` replays."""

PLAY_S = 95.0
"""By then every story has happened once, except for repetitions: the last event is the recovery of story 6 at 90 s."""

_INTERVAL_MS = 2_000
"""About fifty rounds during the play: enough batches to kill the job in."""

_PATIENCE_S = 120.0
"""Limit for steps that take seconds on an idle machine."""

_STATIC = {"tills-static": ("till-1", "till-2")}
"""Static members do not leave; they are removed, or the log would change again when their sessions end."""

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished recording.

    Attributes:
        bootstrap: The broker with the topics.
        played: The actions of the members.
        journal: Their file.
        brackets: Rounds under traffic, each between two readings.
        quiet: Number of a round at which all was quiet, with all members in their groups.
        offsets: The admin client's reading when all was quiet.
        tool_offsets: The output of Kafka's own `kafka-consumer-groups` at that time.
        owners: The members at that time.
        groups: Groups that existed at that time.
    """

    bootstrap: str
    played: Played
    journal: Path
    brackets: tuple[Bracket, ...]
    quiet: int
    offsets: Reading
    tool_offsets: tuple[GroupOffset, ...]
    owners: tuple[Owner, ...]
    groups: frozenset[str]


def settings_for(bootstrap: str, lake: Path, *, max_rounds: int, writer: Writer = "delta-rs") -> Settings:
    """Settings of a job (and of the probe) on the recording."""
    return Settings(
        cluster=CLUSTER,
        lake=str(lake),
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        probe=ProbeSettings(interval_ms=_INTERVAL_MS),
        job=JobSettings(max_rounds=max_rounds, trigger_ms=0, writer=writer),
    )


def environment_of(settings: Settings, folder: Path) -> dict[str, str]:
    """The same settings as environment of a separate process; the checkout's settings file is excluded."""
    nothing = folder / "nothing.toml"
    nothing.touch()
    return {
        "EVENKEEL_CONFIG": str(nothing),
        "EVENKEEL_CLUSTER": settings.cluster,
        "EVENKEEL_LAKE": settings.lake,
        "EVENKEEL_KAFKA__BOOTSTRAP_SERVERS": settings.kafka.bootstrap_servers,
        "EVENKEEL_PROBE__INTERVAL_MS": str(settings.probe.interval_ms),
        "EVENKEEL_JOB__MAX_ROUNDS": str(settings.job.max_rounds),
        "EVENKEEL_JOB__TRIGGER_MS": str(settings.job.trigger_ms),
        "EVENKEEL_JOB__WRITER": settings.job.writer,
    }


def record(
    bootstrap: str, folder: Path, when_quiet: Callable[[], None], stories: str = "", seconds: float = PLAY_S
) -> Recording:
    """Record a run.

    Args:
        bootstrap: A broker with `DEMO_OVERRIDES` and nothing else on it.
        folder: Folder of the journal and the logs of the processes.
        when_quiet: Called while all is quiet and all members are in their groups.
        stories: Numbers of the stories, separated by commas; none for `STORIES`.
        seconds: Length of the play.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = environment_of(settings_for(bootstrap, folder / "unused", max_rounds=1), folder)
    probe = _start(folder / "probe.log", "streaming.probe", environment=environment)
    which = stories or ",".join(str(story.number) for story in STORIES)
    traffic = _start(
        folder / "traffic.log",
        "streaming.demo.traffic",
        *("--bootstrap", bootstrap, "--folder", str(folder), "--stay", "--stories", which),
    )
    began = time.monotonic()
    watch = RoundsWatch(bootstrap, ProbeSettings().rounds_topic)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="e2e-witness")
    try:
        brackets = []
        watch.wait_for_closed(0)
        while time.monotonic() < began + seconds:
            brackets.append(_bracket(admin, watch))
        os.kill(traffic.pid, signal.SIGUSR1)
        until(
            lambda: bool(Played(folder / "journal.jsonl").lines("quiet")),
            seconds=_PATIENCE_S,
            pause_s=0.2,
            told="the stories go quiet",
        )
        quiet = watch.wait_for_closed(watch.end(), 2)
        witnessed = (read_now(admin), tuple(describe_all_groups(bootstrap)), tuple(owners(admin)))
        groups = frozenset(group_ids(admin))
        when_quiet()
        traffic.terminate()
        code = traffic.wait(_PATIENCE_S)
        assert code == 0, f"the stories failed: {traffic.log.read_text('utf-8')[-2000:]}"
        _remove_static_members(admin, groups)
        until(lambda: not owners(admin), seconds=_PATIENCE_S, pause_s=0.2, told="all members have left")
        watch.wait_for_closed(watch.end(), 2)
        probe.terminate()
        assert probe.wait(_PATIENCE_S) == 0, f"the probe failed: {probe.last_line()}"
    finally:
        watch.close()
        admin.close()
        traffic.kill()
        probe.kill()
    journal = folder / "journal.jsonl"
    return Recording(bootstrap, Played(journal), journal, tuple(brackets), quiet, *witnessed, groups)


def _bracket(admin: KafkaAdminClient, watch: RoundsWatch) -> Bracket:
    before = read_now(admin)
    number = watch.wait_for_closed(watch.end())
    return Bracket(number, before, read_now(admin))


def _remove_static_members(admin: KafkaAdminClient, groups: frozenset[str]) -> None:
    for group, instances in _STATIC.items():
        if group in groups:
            admin.remove_group_members(group, [MemberToRemove(group_instance_id=name) for name in instances])


def _start(log: Path, module: str, *arguments: str, environment: dict[str, str] | None = None) -> GuardedProcess:
    setting = [f"{name}={value}" for name, value in (environment or {}).items()]
    return GuardedProcess(["env", *setting, sys.executable, "-m", module, *arguments], log=log, cwd=_ROOT)
