"""The topics of the cluster whose turn it is in a round: partitions, offsets, sizes. No round fails by them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.kafka.requests import (
    GroupRequests,
    MetadataRequests,
    OffsetKind,
    PartitionRequests,
    Refused,
    TopicMetadata,
)
from streaming.probe.kafka.turns import AskedTopics, ClusterTopic, TopicTurns, in_turn, lists
from streaming.records import TopicObservation

_LOG = room_log(__name__)

_TOPICS_S: Final = 5.0
"""Time of a round that they may take. Brokers answer from memory; the list of 10,000 topics with 10 partitions each has
5 MB, and takes a second to read."""

_UNKNOWN: Final = -1

_NOBODY: Final = "evenkeel-any-group"
"""A group that need not exist: a broker checks the right to describe one before its existence."""

_ByPartition = dict[tuple[str, int], int]


class ClusterTopics:
    """Asks for them. Keeps what it has written to the log, and whether groups are hidden from us."""

    def __init__(
        self,
        topics: MetadataRequests,
        groups: GroupRequests,
        partitions: PartitionRequests,
        watches: Callable[[str], bool],
        period_ms: int,
        *,
        hides_groups: bool,
    ) -> None:
        """Ask by these requests; a watched topic is asked for once within the period. Filters may hide groups."""
        self._ask_topics = topics
        self._ask_groups = groups
        self._ask_partitions = partitions
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
                found = self._ask_topics.topics(None, brief)
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
        return "no_right" if self._ask_groups.forbidden_groups([_NOBODY], broker, deadline) else None

    def _topics(
        self, names: list[str], seen: Mapping[str, TopicObservation], deadline: Deadline
    ) -> dict[str, ClusterTopic]:
        if not names:
            return {}
        answers = self._ask_topics.topics(names, deadline)
        found = {
            name: answer for name, answer in answers.items() if isinstance(answer, TopicMetadata) and answer.leaders
        }
        leaders = {
            (name, partition): leader
            for name, topic in found.items()
            for partition, leader in enumerate(topic.leaders)
            if leader is not None
        }
        known = {name: topic for name, topic in seen.items() if name in found and _is_same(topic, found[name])}
        unread = {tp: leader for tp, leader in leaders.items() if tp[0] not in known}
        # (In this order no start lies above its end.)
        start = self._ask_partitions.offsets(OffsetKind.START, unread, deadline) if unread else {}
        end = self._ask_partitions.offsets(OffsetKind.END, unread, deadline) if unread else {}
        sizes, unsized = self._sizes(leaders, deadline)
        topics = {
            name: ClusterTopic(
                topic.topic_id,
                tuple(known[name].ends) if name in known else _values(name, topic, end),
                tuple(known[name].starts) if name in known else _values(name, topic, start),
                None if sizes is None else _values(name, topic, sizes),
                tuple([_UNKNOWN if leader is None else leader for leader in topic.leaders]),
                unsized,
            )
            for name, topic in found.items()
        }
        absent = {Refused.UNKNOWN: "deleted", Refused.FORBIDDEN: "not_visible"}
        for name, answer in answers.items():
            if isinstance(answer, Refused):
                topics[name] = ClusterTopic(absent=absent[answer])
        return topics

    def _sizes(self, leaders: _ByPartition, deadline: Deadline) -> tuple[_ByPartition | None, str | None]:
        """Bytes of partitions; else None and the reason."""
        if not leaders:
            return {}, None
        try:
            sizes = self._ask_partitions.sizes(leaders, deadline)
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
