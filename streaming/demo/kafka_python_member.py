"""A group member on kafka-python, in a thread; run as a program, in a separate process that can be killed."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from streaming.demo.journal import CommitLedger, Journal, PartitionId
from streaming.demo.stage import Stage
from streaming.lifecycle import on_signals

_POLL_MS = 1_000
"""How long a poll waits for records, and so how soon a member notices a change in the story."""

_FETCH_MS, _FETCH_BYTES = 1_000, 1 << 16
"""A fetch waits a second for this much, which never comes. By default it returns with every burst of records, four
times a second; all members together then took 0.19 of a core instead of 0.11."""

_COMMIT_TIMEOUT_MS = 5_000
"""A commit on this machine takes a few ms; after this its outcome counts as unknown."""


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of one member.

    Attributes:
        story: Number of its story, for the journal.
        group: Its group.
        topics: The subscribed topics.
        client_id: Its client id; member ids begin with it.
        assignors: Assignor classes or instances of kafka-python, most wanted first.
        instance_id: `group.instance.id` of a static member; it does not leave its group when it closes.
        session_timeout_ms: A killed or closed static member expires after this time.
        max_poll_interval_ms: A rebalance waits so long for the member.
        metadata_max_age_ms: Time after which it looks for new partitions.
        commit_every_s: Seconds between its commits; each contains every partition that it has a position for.
    """

    story: int
    group: str
    topics: tuple[str, ...]
    client_id: str
    assignors: Sequence[Any] = (RangePartitionAssignor,)
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    max_poll_interval_ms: int = 300_000
    metadata_max_age_ms: int = 300_000
    commit_every_s: float = 1.5


class KafkaPythonMember:
    """One running member. It joins at once, and commits synchronously what it has consumed."""

    def __init__(self, settings: MemberSettings, bootstrap: str, journal: Journal, ledger: CommitLedger) -> None:
        """Start its thread; members of stories are started with `on_stage`."""
        self.settings = settings
        self.settled = False
        self.drained: threading.Event | None = None
        self._bootstrap, self._journal, self._ledger = bootstrap, journal, ledger
        self._stuck = threading.Event()
        self._leaving = threading.Event()
        self._positions: dict[TopicPartition, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name=settings.client_id)
        self._thread.start()

    @classmethod
    def on_stage(cls, settings: MemberSettings, stage: Stage) -> Self:
        """Start a member that leaves when the stage closes, at the latest."""
        member = cls(settings, stage.bootstrap, stage.journal, stage.ledger)
        member.drained = stage.drained
        stage.enter(member)
        return member

    def get_stuck(self) -> None:
        """Stop consuming and committing, but keep the heartbeat going."""
        self._stuck.set()

    def recover(self) -> None:
        """Continue where it got stuck."""
        self._stuck.clear()

    def poll(self, consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        """Wait for records; a story may do it in another way. Called in the member's thread."""
        records: dict[TopicPartition, list[Any]] = consumer.poll(_POLL_MS)
        return records

    def leave(self) -> None:
        """Close the client: a dynamic member leaves its group, a static one stays until its session ends."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        settings = self.settings
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=settings.client_id,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            partition_assignment_strategy=list(settings.assignors),
            session_timeout_ms=settings.session_timeout_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            heartbeat_interval_ms=min(3_000, settings.session_timeout_ms // 4),
            metadata_max_age_ms=settings.metadata_max_age_ms,
            fetch_max_wait_ms=_FETCH_MS,
            fetch_min_bytes=_FETCH_BYTES,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )
        wait_for_joins(consumer)
        consumer.subscribe(settings.topics, listener=_Listener(self, consumer))
        try:
            self._consume(consumer)
        finally:
            consumer.close()
            self.settled = True

    def _consume(self, consumer: KafkaConsumer) -> None:
        next_commit = time.monotonic() + self.settings.commit_every_s
        while not self._leaving.is_set():
            if self._stuck.is_set():
                consumer.pause(*consumer.assignment())
            elif consumer.paused():
                consumer.resume(*consumer.paused())
            batches = self.poll(consumer)
            for partition, records in batches.items():
                self._positions[partition] = records[-1].offset + 1
            if self._stuck.is_set() or self.settled:
                continue
            at_the_end = self.drained is not None and self.drained.is_set() and consumed_everything(consumer)
            if at_the_end or time.monotonic() >= next_commit:
                committed = self._commit(consumer)
                next_commit = time.monotonic() + self.settings.commit_every_s
                self.settled = at_the_end and committed

    def _commit(self, consumer: KafkaConsumer) -> bool:
        """Commit all positions; returns whether nothing is left uncommitted."""
        assigned = consumer.assignment()
        positions = {tp: offset for tp, offset in self._positions.items() if tp in assigned}
        if not positions:
            return True
        offsets: dict[PartitionId, int] = {(tp.topic, tp.partition): offset for tp, offset in positions.items()}
        story, group = self.settings.story, self.settings.group
        try:
            consumer.commit(
                {tp: OffsetAndMetadata(offset, "", -1) for tp, offset in positions.items()},
                timeout_ms=_COMMIT_TIMEOUT_MS,
            )
        except (CommitFailedError, RebalanceInProgressError):
            return False  # refused by the coordinator, so nothing was written
        except KafkaError:
            self._ledger.uncertain(story, group, offsets)
            return False
        self._ledger.committed(story, group, offsets)
        return True

    def note_assignment(self, consumer: KafkaConsumer, assigned: Iterable[TopicPartition]) -> None:
        """Write to the journal what the rebalance listener sees."""
        membership = consumer.group_metadata()
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(assigned):
            by_topic.setdefault(topic, []).append(partition)
        self._journal.write(
            self.settings.story,
            "generation",
            group=self.settings.group,
            member=membership.member_id,
            client=self.settings.client_id,
            generation=membership.generation_id,
            assigned=by_topic,
        )

    def unsettle(self) -> None:
        """Count as unsettled: it may own other partitions now, whose positions are not known yet."""
        self.settled = False

    def forget(self, revoked: Iterable[TopicPartition]) -> None:
        """Drop positions of revoked partitions; their next owner starts at the last commit."""
        for partition in revoked:
            self._positions.pop(partition, None)


def consumed_everything(consumer: KafkaConsumer) -> bool:
    """Whether a consumer has joined its group and reached the end of all its partitions."""
    membership = consumer.group_metadata()
    assigned = consumer.assignment()
    if not assigned:
        return bool(membership is not None and membership.generation_id >= 0)
    try:
        ends = consumer.end_offsets(list(assigned))
        positions = {partition: consumer.position(partition, timeout_ms=_POLL_MS) for partition in assigned}
    except KafkaError:
        return False
    return all(position is not None and position >= ends[partition] for partition, position in positions.items())


def wait_for_joins(consumer: KafkaConsumer) -> None:
    """Let a poll that finds a rebalance wait until it is over, whatever the poll's own timeout.

    kafka-python 3.0.12 forgets an assignment that arrives between two polls: the next poll sees that nothing is left to
    join, so the assignment is never applied, the heartbeat stays off, the poll loop spins, and the member expires
    (`BaseCoordinator.join_group_async` applies the assignment only inside its `while self.need_rejoin()`). With polls
    of 0.5 s this happens once in several dozen rebalances.
    """
    coordinator = consumer._coordinator  # noqa: SLF001  (no public way)
    ensure_active_group = coordinator.ensure_active_group
    coordinator.ensure_active_group = lambda timeout_ms=None: ensure_active_group(None)  # noqa: ARG005


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is not typed
    def __init__(self, member: KafkaPythonMember, consumer: KafkaConsumer) -> None:
        self._member, self._consumer = member, consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._member.forget(revoked)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._member.unsettle()
        self._member.note_assignment(self._consumer, assigned)


def start_in_own_process(settings: MemberSettings, stage: Stage, *, commit_for_s: float) -> Any:
    """Start a member that can be killed: a guarded process that commits for some seconds, then only polls.

    It stops committing before it is killed, so the number of its commits is known exactly. It uses `range`.

    Returns:
        A GuardedProcess.
    """
    from streaming.process import GuardedProcess  # noqa: PLC0415  (the child does not need it)

    arguments = [
        *("--bootstrap", stage.bootstrap, "--journal", str(stage.journal.path), "--story", str(settings.story)),
        *(
            "--group",
            settings.group,
            "--client-id",
            settings.client_id,
            "--commit-until",
            str(time.time() + commit_for_s),
        ),
        *("--session-timeout-ms", str(settings.session_timeout_ms), "--commit-every", str(settings.commit_every_s)),
        *settings.topics,
    ]
    module = "streaming.demo.kafka_python_member"
    root = Path(__file__).resolve().parents[2]
    return GuardedProcess([sys.executable, "-m", module, *arguments], log=stage.folder / "members.log", cwd=root)


def main() -> int:
    """Run one member until SIGTERM, at which it leaves its group, or until its starter is gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--bootstrap", "--journal", "--group", "--client-id"):
        parser.add_argument(option, required=True)
    parser.add_argument("--story", type=int, required=True)
    parser.add_argument("--session-timeout-ms", type=int, required=True)
    parser.add_argument("--commit-until", type=float, required=True, help="seconds since the epoch")
    parser.add_argument("--commit-every", type=float, required=True)
    parser.add_argument("topics", nargs="+")
    chosen = parser.parse_args()
    settings = MemberSettings(
        story=chosen.story,
        group=chosen.group,
        topics=tuple(chosen.topics),
        client_id=chosen.client_id,
        session_timeout_ms=chosen.session_timeout_ms,
        commit_every_s=chosen.commit_every,
    )
    journal = Journal(Path(chosen.journal))
    ledger = CommitLedger(journal)
    member = KafkaPythonMember(settings, chosen.bootstrap, journal, ledger)
    starter = os.getppid()
    told_to_end = threading.Event()
    with on_signals(lambda _: told_to_end.set(), signal.SIGTERM):
        while os.getppid() == starter and not told_to_end.wait(0.2):
            ledger.flush()
            if time.time() > chosen.commit_until:
                member.get_stuck()
    member.leave()
    ledger.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
