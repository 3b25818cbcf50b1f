"""Which cluster and topics a query's offsets belong to, and where it continues after the topics were replaced or cut.

A topic that was deleted and created again, or cut back by an unclean election, starts a new stretch with a batch that
holds nothing but the change (`turn`), so that records from before and after it never meet in one batch. Its rows of
`gaps` follow from the two positions alone (`gaps_of_turn`), in any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streaming.job.source.positions import Positions
from streaming.job.source.settings import SourceSettings
from streaming.records import LogGap

__all__ = ["Identity", "Shorter", "another_cluster", "gaps_of_turn", "named", "recreated", "turn"]

LOG, EVENTS, ROUNDS = "log", "events", "rounds"
"""Roles of the three topics: keys of `Positions.topics`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The brokers' identity.

    Attributes:
        cluster_id: Kafka's own cluster id; None from brokers that have none.
        topics: Topic ids by the topics' roles, as far as the brokers give them (Kafka 2.8 on).
    """

    cluster_id: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shorter:
    """Ends before the offsets that were already read.

    Attributes:
        log: End by partition of the offsets log.
        events: The same of the events topic.
        rounds: End of the rounds topic; None when it is not before.
    """

    log: Mapping[int, int] = field(default_factory=dict)
    events: Mapping[int, int] = field(default_factory=dict)
    rounds: int | None = None

    def __bool__(self) -> bool:
        return bool(self.log or self.events or self.rounds is not None)


def another_cluster(start: Positions, here: Identity, cluster: str) -> str | None:
    """The message that refuses another cluster than that of the offsets; None when it is the same."""
    if start.cluster_id is None or here.cluster_id is None or start.cluster_id == here.cluster_id:
        return None
    return (
        f"The brokers belong to the Kafka cluster {here.cluster_id}, the checkpoint of {cluster!r} to "
        f"{start.cluster_id}: correct kafka.bootstrap_servers, or give the other cluster a name and a lake of its own."
    )


def named(end: Positions, here: Identity) -> Positions:
    """The positions with the ids of their cluster and topics; an id that is not known now stays as it was."""
    return replace(end, cluster_id=end.cluster_id or here.cluster_id, topics={**end.topics, **here.topics})


def recreated(start: Positions, here: Identity) -> frozenset[str]:
    """The topics that are not the ones the offsets belong to."""
    return frozenset(name for name, topic_id in start.topics.items() if here.topics.get(name, topic_id) != topic_id)


def turn(start: Positions, here: Identity, shorter: Shorter) -> Positions:
    """Where the query continues: at the beginning of recreated topics, at the end of those cut back.

    Round numbers keep growing: `base` grows by as much as the offsets of the rounds topic fall.

    Args:
        start: The query's positions.
        here: The brokers' identity.
        shorter: Ends before what was read, confirmed over time.

    Returns:
        The same object `start` where nothing has changed.
    """
    anew = recreated(start, here)
    end = start
    if LOG in anew:
        end = replace(end, log={})
    elif shorter.log:
        end = replace(end, log={**end.log, **shorter.log})
    if EVENTS in anew:
        end = replace(end, events={})
    elif shorter.events:
        end = replace(end, events={**end.events, **shorter.events})
    if ROUNDS in anew or shorter.rounds is not None:
        # Without ids a recreated topic and one that was cut back look the same; read from the beginning, earlier
        # rounds are passed over, because the log was read beyond them.
        cut_back = ROUNDS not in anew and ROUNDS in start.topics and shorter.rounds is not None
        rounds = (shorter.rounds or 0) if cut_back else 0
        end = replace(end, rounds=rounds, base=start.base + start.rounds - rounds)
    return start if end is start else named(replace(end, topics=_without(end.topics, anew)), here)


def gaps_of_turn(start: Positions, end: Positions, settings: SourceSettings) -> list[LogGap]:
    """The gaps of a batch that is nothing but a change of topics; none for every other batch."""
    found = []
    for name, topic, before, after in (
        (LOG, settings.offsets_topic, start.log, end.log),
        (EVENTS, settings.events_topic, start.events, end.events),
        (ROUNDS, settings.rounds_topic, {0: start.rounds}, {0: end.rounds}),
    ):
        anew = start.topics.get(name) != end.topics.get(name)
        for partition, read in sorted(before.items()):
            now = after.get(partition, 0)
            if now < read:
                found.append(_gap(topic, partition, read, now, anew=anew or now == 0))
    return found


def _gap(topic: str, partition: int, read: int, now: int, *, anew: bool) -> LogGap:
    if anew:
        reason = (
            f"{topic} was deleted and created again after {read} offsets had been read: it is read from its beginning"
        )
        return LogGap(partition, read, 0, reason, topic, "recreated")
    reason = (
        f"{topic} was cut back to {now} after {read} offsets had been read (an unclean election?): the cluster has "
        f"lost the offsets {now} to {read}, and reading continues at {now}"
    )
    return LogGap(partition, now, read, reason, topic, "truncated")


def _without(topics: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in topics.items() if name not in names}
