"""How far a query has read, and of which cluster and topics: the offsets that Spark keeps in the checkpoint.

Each position is an exclusive end: the next offset to read. A partition that is missing is read from its beginning; so
the constant with which a query starts (`INITIAL`, which must not depend on the cluster: Spark asks for it again after a
crash in the first batch) covers partitions that appear later, too.

Offsets of another cluster than `cluster_id` are refused, other topics than `topics` are read from their beginning.
After the rounds topic was created again `base` lets the numbers of rounds keep growing.

A topic that was deleted and created again, or cut back by an unclean election, starts a new stretch with a batch that
holds nothing but the change (`turn`), so that records from before and after it never meet in one batch. Its rows of
`gaps` follow from the two positions alone (`gaps_of_turn`), in any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from streaming.job.source.settings import SourceSettings
from streaming.record_batches import ClusterIdentity
from streaming.records import LOG as FROM_LOG
from streaming.records import LogGap

LOG, EVENTS, ROUNDS = "log", "events", "rounds"
"""Roles of the three topics: keys of `Positions.topics`."""


class Positions(msgspec.Struct, frozen=True):
    """The offsets as a value.

    Attributes:
        log: Next offset per partition of the offsets log.
        events: Next offset per partition of the events topic.
        rounds: Next offset of the rounds topic.
        round: Number of the newest round taken; -1 before the first.
        time: Its time, ms; -1 before the first. A query whose state was lost starts with the time and the elapsed time
            of the last round before those that are still there.
        elapsed: Time that passed from the first round taken to the newest one, ms: see `plan.elapsed_after`.
        base: Number of a round minus the offset of its opening record.
        cluster_id: Kafka's own id of the cluster of the offsets; None where it is not known.
        rounds_of: Kafka's own id of the cluster that the rounds are about; None before any round had one. It is a
            different one where topics were copied to a cluster that did not see the rounds.
        topics: Topic ids by the topics' roles (`log`, `events`, `rounds`), as far as they are known.
        source: Source of groups that the query follows, where it is not the log; None otherwise.
        inside: Whether they lie inside the window of the newest round: batches without rounds have gone on from it.
    """

    log: dict[int, int] = {}
    events: dict[int, int] = {}
    rounds: int = 0
    round: int = -1
    time: int = -1
    elapsed: int = 0
    base: int = 0
    cluster_id: str | None = None
    rounds_of: str | None = None
    topics: dict[str, str] = {}
    source: str | None = None
    inside: bool = False

    @property
    def follows(self) -> str | None:
        """Source of groups that the query follows; None before its first round, or its first read of the log."""
        return self.source or (FROM_LOG if self.log or self.round >= 0 else None)

    @classmethod
    def read(cls, offsets: Mapping[str, Any]) -> Positions:
        """Read what `write` wrote."""
        return msgspec.convert(offsets, cls, strict=False)

    def write(self) -> dict[str, Any]:
        """As JSON values. Spark compares offsets as text, so everything has its order."""
        written: dict[str, Any] = msgspec.to_builtins(self, str_keys=True, order="sorted")
        return written


INITIAL: Final = Positions().write()
"""Where a new query starts."""


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """Where the topics end: last stable offsets.

    Attributes:
        log: By partition of the offsets log.
        events: By partition of the events topic.
        rounds: Of the rounds topic.
    """

    log: Mapping[int, int]
    events: Mapping[int, int]
    rounds: int


def another_cluster(start: Positions, here: ClusterIdentity, cluster: str) -> str | None:
    """The message that refuses another cluster than that of the offsets; None when it is the same."""
    if start.cluster_id is None or here.cluster_id is None or start.cluster_id == here.cluster_id:
        return None
    return (
        f"The brokers belong to the Kafka cluster {here.cluster_id}, the checkpoint of {cluster!r} to "
        f"{start.cluster_id}: correct kafka.bootstrap_servers, or give the other cluster a name and a lake of its own."
    )


def named(end: Positions, here: ClusterIdentity) -> Positions:
    """The positions with the ids of their cluster and topics; an id that is not known now stays as it was."""
    return replace(end, cluster_id=end.cluster_id or here.cluster_id, topics={**end.topics, **here.topics})


def recreated(start: Positions, here: ClusterIdentity) -> frozenset[str]:
    """The topics that are not the ones the offsets belong to."""
    return frozenset(name for name, topic_id in start.topics.items() if here.topics.get(name, topic_id) != topic_id)


def turn(start: Positions, here: ClusterIdentity, ends: TopicEnds | None = None) -> Positions:
    """Where the query continues: at the beginning of recreated topics, at the end of those cut back.

    Round numbers keep growing: `base` grows by as much as the offsets of the rounds topic fall.

    Args:
        start: The query's positions.
        here: The brokers' identity.
        ends: The topics' ends; None where they do not matter, as with recreated topics.

    Returns:
        The same object `start` where nothing has changed.
    """
    anew = recreated(start, here)
    end = replace(
        start,
        log={} if LOG in anew else _cut_back(start.log, ends.log if ends else {}),
        events={} if EVENTS in anew else _cut_back(start.events, ends.events if ends else {}),
    )
    is_shorter = ends is not None and ends.rounds < start.rounds
    if ROUNDS in anew or is_shorter:
        # Without ids a recreated topic and one that was cut back look the same; read from the beginning, earlier
        # rounds are passed over, because the log was read beyond them.
        rounds = ends.rounds if ends and is_shorter and ROUNDS in start.topics.keys() - anew else 0
        end = replace(end, rounds=rounds, base=start.base + start.rounds - rounds)
    if end == start:
        return start
    return named(replace(end, topics={name: known for name, known in end.topics.items() if name not in anew}), here)


def _cut_back(read: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {partition: min(offset, ends.get(partition, offset)) for partition, offset in read.items()}


def gaps_of_turn(start: Positions, end: Positions, settings: SourceSettings) -> list[LogGap]:
    """The gaps of a batch that is nothing but a change of topics; none for every other batch."""
    found = []
    for name, topic, before, after in (
        (LOG, settings.offsets_topic, start.log, end.log),
        (EVENTS, settings.events_topic, start.events, end.events),
        (ROUNDS, settings.rounds_topic, {0: start.rounds}, {0: end.rounds}),
    ):
        is_recreated = start.topics.get(name) != end.topics.get(name)
        for partition, read in sorted(before.items()):
            now = after.get(partition, 0)
            if now < read:
                found.append(_gap(topic, partition, read, now, is_recreated=is_recreated or now == 0))
    return found


def _gap(topic: str, partition: int, read: int, now: int, *, is_recreated: bool) -> LogGap:
    if is_recreated:
        reason = (
            f"{topic} was deleted and created again after {read} offsets had been read: it is read from its beginning"
        )
        return LogGap(partition, read, 0, reason, topic, "recreated")
    reason = (
        f"{topic} was cut back to {now} after {read} offsets had been read (an unclean election?): the cluster has "
        f"lost the offsets {now} to {read}, and reading continues at {now}"
    )
    return LogGap(partition, now, read, reason, topic, "truncated")
