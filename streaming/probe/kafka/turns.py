"""Which topics of the cluster a round asks for: each once in a heartbeat, at a moment of its own.

A cluster has many topics that no group reads, and their rates need only the ends of windows. So a round asks for a few
of them, whatever the size of the cluster, and once in a heartbeat for the names of all topics. A topic that brokers do
not know, or that they do not show any more, is asked for by its name again before it counts as gone: while a broker
starts it may not know a topic yet, and a list that it is missing from says nothing of the reason.

Pure, as `idle.py`. A new probe has the topics and the times of their newest events from the topic of the events.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

TOPICS_A_ROUND: Final = 1_000
"""With rounds every 10 s and a heartbeat of 10 minutes 60,000 topics are asked for in time, some ten thousand
partitions a round."""

ABSENT_ROUNDS: Final = 3
"""In so many rounds in a row a topic must be absent to be gone."""


@dataclass(frozen=True, slots=True)
class ClusterTopic:
    """A topic that was asked for by its name.

    Attributes:
        topic_id: Kafka's printed id; None when the broker gives none.
        end: High watermark per partition; -1 where it is unknown.
        start: Log start offset per partition, the same shape.
        sizes: Bytes of the leader's log per partition, the same shape, -1 where unknown; None if there are none.
        leaders: Node id of the leader per partition; -1 where there is none.
        unsized: Why `sizes` is None, as in `ClusterTopicEvent`.
        absent: "deleted" or "not_visible"; None when the topic is there.
    """

    topic_id: str | None = None
    end: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    sizes: tuple[int, ...] | None = None
    leaders: tuple[int, ...] = ()
    unsized: str | None = None
    absent: str | None = None


@dataclass(frozen=True, slots=True)
class AskedTopics:
    """What a round has learned of the cluster's topics.

    Attributes:
        topics: Those that were asked for and answered for.
        listing: Names of all topics that pass the filters; None if they were not asked for.
        hidden: As in `ClusterTopicEvent`, where it does not depend on the groups: "filtered" or "no_right".
    """

    topics: Mapping[str, ClusterTopic] = field(default_factory=dict)
    listing: frozenset[str] | None = None
    hidden: str | None = None


@dataclass(frozen=True, slots=True)
class TopicTurns:
    """What the next round must know of the cluster's topics.

    Attributes:
        listed: Time of the newest round that has asked for all names, ms; -1 before the first.
        told: Topics, with the time of the round of their newest event; -1 for those that had none.
        absent: Topics that were absent in the newest rounds: in how many.
    """

    listed: int = -1
    told: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)

    @property
    def since(self) -> int | None:
        """Time of the oldest event that a new probe must find; None if there is none."""
        return min((time for time in self.told.values() if time >= 0), default=None)


def lists(turns: TopicTurns, time: int, period_ms: int) -> bool:
    """Whether a round asks for the names of all topics.

    Args:
        turns: Turns of the closed round before.
        time: The round's time, ms.
        period_ms: They are asked for once within it.
    """
    return _passed(0, turns.listed, time, period_ms)


def in_turn(turns: TopicTurns, listing: Collection[str] | None, time: int, period_ms: int) -> list[str]:
    """The topics to ask for in a round: those that are missing, then those that have waited the longest.

    Args:
        turns: Turns of the closed round before.
        listing: Names of all topics, where the round has asked for them.
        time: The round's time, ms.
        period_ms: A topic is asked for once within it.
    """
    listed = frozenset(listing or ())
    # (A topic that the list lacks is asked for at once.)
    missing = frozenset() if listing is None else turns.told.keys() - listed
    urgent = turns.absent.keys() | missing
    due = [
        name
        for name in turns.told.keys() | listed
        if name in urgent or _passed(zlib.crc32(name.encode()), turns.told.get(name, -1), time, period_ms)
    ]
    return sorted(due, key=lambda name: (name not in urgent, turns.told.get(name, -1), name))[:TOPICS_A_ROUND]


def gone(turns: TopicTurns, asked: AskedTopics, watches: Callable[[str], bool]) -> dict[str, str]:
    """The topics that are gone with a round, each with the reason: "deleted", "not_visible" or "filtered".

    Args:
        turns: Turns of the closed round before.
        asked: What the round has learned.
        watches: Whether a topic passes the filters.
    """
    found = {
        name: topic.absent
        for name, topic in asked.topics.items()
        if topic.absent is not None and turns.absent.get(name, 0) + 1 >= ABSENT_ROUNDS
    }
    if turns.listed < 0:
        # Filters can only have changed while no probe ran.
        found |= {name: "filtered" for name in turns.told if not watches(name)}
    return {name: reason for name, reason in found.items() if turns.told.get(name, -1) >= 0}


def turns_after(turns: TopicTurns, asked: AskedTopics, ended: Collection[str], time: int) -> TopicTurns:
    """The turns after one more round.

    Args:
        turns: Turns of the closed round before.
        asked: What the round has learned.
        ended: Topics that are gone with it.
        time: The round's time, ms.
    """
    told = {name: before for name, before in turns.told.items() if name not in ended}
    absent = {name: rounds for name, rounds in turns.absent.items() if name not in ended}
    for name in asked.listing or ():
        told.setdefault(name, -1)
    for name, topic in asked.topics.items():
        if topic.absent is None:
            told[name] = time
            absent.pop(name, None)
        elif name in ended or told.get(name, -1) < 0:
            told.pop(name, None)
        else:
            absent[name] = absent.get(name, 0) + 1
    return TopicTurns(time if asked.listing is not None else turns.listed, told, absent)


def _passed(moment: int, before: int, now: int, period_ms: int) -> bool:
    """Whether a moment of the period lies between two rounds; also when a wrong clock has put the first one ahead."""
    return before < 0 or before > now or (now - moment) // period_ms > (before - moment) // period_ms
