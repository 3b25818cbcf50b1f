"""The topics of the cluster: which of them a round asks for, each once in a heartbeat at a moment of its own.

A cluster has many topics that no group reads, and their rates need only the ends of windows. So a round asks for a few
of them, whatever the size of the cluster, and once in a heartbeat for the names of all topics. A topic that brokers do
not know, or that they do not show any more, is asked for by its name again before it counts as gone: while a broker
starts it may not know a topic yet, and a list that it is missing from says nothing of the reason.

No round fails by them. A new probe has the topics and the times of their newest events from the topic of the events.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.answers import leaders_of
from streaming.probe.kafka.requests import OffsetKind, Refused, Requests, TopicMetadata
from streaming.records import ClusterTopicObservation, TopicObservation

TOPICS_A_ROUND: Final = 1_000
"""With rounds every 10 s and a heartbeat of 10 minutes 60,000 topics are asked for in time, some ten thousand
partitions a round."""

ABSENT_ROUNDS: Final = 3
"""In so many rounds in a row a topic must be absent to be gone."""


@dataclass(frozen=True, slots=True)
class AskedTopics:
    """What a round has learned of the cluster's topics.

    Attributes:
        topics: Those that were asked for and answered for, as yet without round, time and readers; `gone` where brokers
            do not show one, which may be for this round only.
        listing: Names of all topics that pass the filters; None if they were not asked for.
        hidden: As in `ClusterTopicEvent`, where it does not depend on the groups: "filtered" or "no_right".
    """

    topics: Mapping[str, ClusterTopicObservation] = field(default_factory=dict)
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
    # A topic that the list lacks is asked for at once.
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
        name: topic.gone
        for name, topic in asked.topics.items()
        if topic.gone is not None and turns.absent.get(name, 0) + 1 >= ABSENT_ROUNDS
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
        if topic.gone is None:
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


_LOG = room_log(__name__)

_TOPICS_S: Final = 5.0
"""Time of a round that they may take. Brokers answer from memory; the list of 10,000 topics with 10 partitions each has
5 MB, and takes a second to read."""

_UNKNOWN: Final = -1

_NOBODY: Final = "evenkeel-any-group"
"""A group that need not exist: a broker checks the right to describe one before its existence."""

_AS_YET: Final = (-1, -1)
"""Round and time of an observation that is not told yet."""

_ByPartition = dict[tuple[str, int], int]


class ClusterTopics:
    """Asks for them. Keeps what it has written to the log, and whether groups are hidden from us."""

    def __init__(
        self, requests: Requests, watches: Callable[[str], bool], period_ms: int, *, hides_groups: bool
    ) -> None:
        """Ask by these requests; a watched topic is asked for once within the period. Filters may hide groups."""
        self._requests = requests
        self._watches = watches
        self._period = period_ms
        self._hides_groups = hides_groups
        self._hidden: str | None = "no_right"
        self._told: set[str] = set()

    def ask(
        self,
        brokers: Collection[int],
        seen: Mapping[str, TopicObservation],
        turns: TopicTurns,
        time: int,
        deadline: Deadline,
    ) -> AskedTopics:
        """Ask for the topics whose turn it is; what cannot be learned now is left to a later round.

        Args:
            brokers: Node ids of the brokers that are up.
            seen: Topics that this round has the offsets of, because groups read them.
            turns: Turns of the closed round before.
            time: The round's time, ms.
            deadline: When the round has to be done.
        """
        brief = deadline.at_most(_TOPICS_S)
        listing: frozenset[str] | None = None
        try:
            if lists(turns, time, self._period):
                found = self._requests.topics(None, brief)
                listing = frozenset(filter(self._watches, found))
                self._hidden = self._why_hidden(min(brokers), brief)
            names = in_turn(turns, listing, time, self._period)
            topics = self._topics([name for name in names if self._watches(name)], seen, brief)
        except RoundAbandonedError as error:
            self._once("topics", f"Could not look at the cluster's topics: {error}. Trying again in each round.")
            return AskedTopics(listing=listing, hidden=self._hidden)
        self._told.discard("topics")
        return AskedTopics(topics, listing, self._hidden)

    def _why_hidden(self, broker: int, deadline: Deadline) -> str | None:
        if self._hides_groups:
            return "filtered"
        if self._requests.forbidden_groups([_NOBODY], broker, deadline):
            return "no_right"
        return None

    def _topics(
        self, names: list[str], seen: Mapping[str, TopicObservation], deadline: Deadline
    ) -> dict[str, ClusterTopicObservation]:
        if not names:
            return {}
        answers = self._requests.topics(names, deadline)
        found = {
            name: answer for name, answer in answers.items() if isinstance(answer, TopicMetadata) and answer.leaders
        }
        leaders = leaders_of(found)
        known = {name: topic for name, topic in seen.items() if name in found and _is_same(topic, found[name])}
        unread = {tp: leader for tp, leader in leaders.items() if tp[0] not in known}
        # In this order no start lies above its end.
        start = self._requests.offsets(OffsetKind.START, unread, deadline) if unread else {}
        end = self._requests.offsets(OffsetKind.END, unread, deadline) if unread else {}
        sizes, unsized = self._sizes(leaders, deadline)
        topics = {
            name: ClusterTopicObservation(
                *_AS_YET,
                topic_id=topic.topic_id,
                end=tuple(known[name].ends) if name in known else _values(name, topic, end),
                start=tuple(known[name].starts) if name in known else _values(name, topic, start),
                leaders=tuple([_UNKNOWN if leader is None else leader for leader in topic.leaders]),
                sizes=None if sizes is None else _values(name, topic, sizes),
                unsized=unsized,
            )
            for name, topic in found.items()
        }
        absent = {Refused.UNKNOWN: "deleted", Refused.FORBIDDEN: "not_visible"}
        for name, answer in answers.items():
            if isinstance(answer, Refused):
                topics[name] = ClusterTopicObservation(*_AS_YET, gone=absent[answer])
        return topics

    def _sizes(self, leaders: _ByPartition, deadline: Deadline) -> tuple[_ByPartition | None, str | None]:
        """Bytes of partitions; else None and the reason."""
        if not leaders:
            return {}, None
        try:
            sizes = self._requests.sizes(leaders, deadline)
        except RoundAbandonedError as error:
            self._once("sizes", f"Could not ask for the sizes of topics: {error}.")
            return None, "no_answer"
        self._told.discard("sizes")
        if isinstance(sizes, Refused):
            self._once("right", "Without the right Describe on the cluster the bytes of topics stay unknown.")
            return None, "no_right"
        return sizes, "unsupported" if sizes is None else None

    def _once(self, about: str, sentence: str) -> None:
        if about not in self._told:
            self._told.add(about)
            _LOG.info("%s", sentence)


def _is_same(seen: TopicObservation, metadata: TopicMetadata) -> bool:
    return seen.partitions == len(metadata.leaders) and seen.topic_id == metadata.topic_id


def _values(name: str, metadata: TopicMetadata, found: _ByPartition) -> tuple[int, ...]:
    return tuple([found.get((name, partition), _UNKNOWN) for partition in range(len(metadata.leaders))])
