"""A Kafka cluster as the rounds see it: which requests a round sends, and in which order.

What the answers mean is in `answers.py`. The module is long because the order of one round is easier to check in one
place than in several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from kafka.protocol.admin import DescribeGroupsRequest

from streaming.config import Filters
from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.answers import (
    assigned_description,
    classic_description,
    leaders_of,
    seen_groups,
    topic_of,
)
from streaming.probe.kafka.cluster_topics import AskedTopics, ClusterTopics, TopicTurns
from streaming.probe.kafka.connect_groups import ConfigTail, ConnectGroups
from streaming.probe.kafka.followed import Committed, FollowedGroups, LogState, LogTail
from streaming.probe.kafka.holds import BlockedPartition, lasting, with_producers
from streaming.probe.kafka.look import EMPTY, Description, GroupsSeen, ListedGroup
from streaming.probe.kafka.memory import Memory, topics_of_groups
from streaming.probe.kafka.messages import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from streaming.probe.kafka.requests import OffsetKind, Refused, Requests, ShareSettings, TopicMetadata
from streaming.probe.kafka.retention import AskedSettings
from streaming.probe.kafka.share_groups import ShareGroups, StateTail
from streaming.probe.kafka.timestamps import Timestamps
from streaming.records import CONSUMER, SHARE, STREAMS, TopicObservation, TopicRetention
from streaming.terminal import visible

_LOG = room_log(__name__)

_ASSIGNED_TYPES = frozenset({CONSUMER, SHARE, STREAMS})

_DEAD = "Dead"

# The group types that DescribeGroups answers for; None comes from a broker that knows one type only.
_CLASSIC_TYPES = ("classic", None)

_DESCRIBED_BY: Final = {
    _CLASSIC_TYPES: DescribeGroupsRequest,
    (CONSUMER,): ConsumerGroupDescribeRequest,
    (STREAMS,): StreamsGroupDescribeRequest,
    (SHARE,): ShareGroupDescribeRequest,
}
"""Requests by the group types that they answer for."""

_ALL: Final = ("", None)
"""Stands for all brokers among those who are asked for settings."""

_HOLDERS_S = 1.0
"""Who holds the log back is worth a moment, but no round: two requests that brokers answer from memory."""

_TIMESTAMPS_S = 2.0
"""The questions by timestamp follow a round, so they cost none of its time, and may not delay the next one."""


class KafkaCluster:
    """One cluster.

    In each round call `offsets_log`, `log_positions`, `name_holders`, `observe_groups`, then `ask_topics`, each once;
    `ask_timestamps` after it.
    """

    def __init__(
        self,
        admin: Any,
        offsets_topic: str,
        filters: Filters,
        heartbeat_ms: int = 600_000,
        interval_ms: int = 10_000,
        watches_topic: Callable[[str], bool] | None = None,
        *,
        reads_log: bool = True,
        tail: LogTail | None = None,
        share_tail: StateTail | None = None,
        config_tails: Mapping[str, ConfigTail] | None = None,
    ) -> None:
        """Watch through an open `KafkaAdminClient`, which stays the caller's to close, as the tails of the logs do.

        `watches_topic` says which topics are watched for themselves, whether or not a group reads them; None for none.
        Without `reads_log` the offsets log is not asked for, and each round asks for membership and committed offsets.
        """
        self._requests = Requests(admin)
        self._offsets_topic = offsets_topic
        self.reads_log = reads_log
        self._filters = filters
        self._warned: set[str] = set()
        heartbeat_s = heartbeat_ms / 1000
        self._retentions: AskedSettings[TopicRetention] = AskedSettings(
            heartbeat_s,
            "how long topics keep their records",
            "Without the right DescribeConfigs on topics it stays open when groups lose data.",
            self._requests.retentions,
        )
        self._brokers: Sequence[int] = ()
        self._offsets_retention: AskedSettings[int] = AskedSettings(
            heartbeat_s,
            "how long brokers keep offsets",
            "Without the right DescribeConfigs on the cluster offset expiry is unknown.",
            lambda names, brief: dict.fromkeys(names, self._requests.offsets_retention(self._brokers, brief)),
        )
        self._timestamps = Timestamps(interval_ms)
        self._share_settings: AskedSettings[ShareSettings] = AskedSettings(
            heartbeat_s,
            "how share groups deliver",
            "Without the right DescribeConfigs on groups it stays open how long share groups lock records.",
            self._requests.share_settings,
        )
        self._streams_settings: AskedSettings[dict[str, str]] = AskedSettings(
            0,  # in each round: a target is judged by what its assignor went by
            "how many standby tasks streams groups want",
            "Without the right DescribeConfigs on groups it stays open how many standby tasks streams groups want.",
            self._requests.streams_settings,
        )
        self._followed = FollowedGroups(tail)
        self._shares = ShareGroups(self._requests, share_tail)
        self._connectors = ConnectGroups(self._requests, config_tails or {})
        self._leaders: Mapping[tuple[str, int], int] = {}
        self._cluster_topics: ClusterTopics | None = None
        if watches_topic is not None:
            self._cluster_topics = ClusterTopics(
                self._requests, watches_topic, heartbeat_ms, hides_groups=filters.hides_groups
            )

    def offsets_log(self, deadline: Deadline) -> LogState:
        """Find the offsets log.

        Raises:
            RoundAbandonedError: There is none yet. Kafka creates it for the first group that looks for its coordinator.
                We do not provoke that: a monitor leaves the cluster as it finds it, and before that there is nothing
                to see. Or a partition has no leader: its groups' records could not be read up to a known position, and
                these groups could not be distinguished from deleted ones. Or the broker that answered knows no brokers
                yet.

        Returns:
            The log; without leaders, and with nothing but the brokers, where it is not read.
        """
        if not self.reads_log:
            return LogState(self._requests.metadata([], deadline))
        metadata = self._requests.metadata([self._offsets_topic], deadline)
        log = metadata.topics.get(self._offsets_topic)
        if log is Refused.FORBIDDEN:
            message = f"the right Describe on topic {self._offsets_topic} is missing"
            raise RoundAbandonedError(message)
        if not isinstance(log, TopicMetadata) or not log.leaders:
            message = f"the cluster has no topic {self._offsets_topic} yet, because it never had a group"
            raise RoundAbandonedError(message)
        leaders = tuple([leader for leader in log.leaders if leader is not None])
        if len(leaders) < len(log.leaders):
            message = f"partition {log.leaders.index(None)} of {self._offsets_topic} has no leader"
            raise RoundAbandonedError(message)
        epochs = log.leader_epochs
        known = len(epochs) == len(leaders) and all(epoch >= 0 for epoch in epochs)
        return LogState(metadata, leaders, tuple(zip(leaders, epochs, strict=True)) if known else ())

    def log_positions(self, log: LogState, time: int, deadline: Deadline) -> LogState:
        """The log with its end at a round's time, ms; the high watermark is read first.

        In the other order each commit between the two requests would look like an open transaction.

        Raises:
            RoundAbandonedError: A partition's leader has moved or did not answer.
        """
        partitions = {(self._offsets_topic, index): leader for index, leader in enumerate(log.leaders)}
        end = self._requests.offsets(OffsetKind.END, partitions, deadline)
        stable = self._requests.offsets(OffsetKind.STABLE, partitions, deadline)
        for tp in partitions:
            if tp not in end or tp not in stable:
                message = f"the leader of partition {tp[1]} of {self._offsets_topic} does not report its end offset"
                raise RoundAbandonedError(message)
        return replace(
            log,
            stable=tuple([stable[tp] for tp in partitions]),
            end=tuple([end[tp] for tp in partitions]),
            time=time,
        )

    def name_holders(
        self, log: LogState, holds: tuple[BlockedPartition | None, ...], deadline: Deadline
    ) -> tuple[BlockedPartition | None, ...]:
        """Ask which producer holds the log back, where it is held for longer than transactions last, until it is known.

        The producer is known to the partition's leader, its transactional id to the coordinator of its transactions.
        What cannot be learned (an old broker, a right that is missing) stays unknown, and fails no round.
        """
        partitions = {
            (self._offsets_topic, partition): (log.leaders[partition], hold.position)
            for partition, hold in enumerate(map(lasting, holds))
            if hold is not None and hold.transactional_id is None
        }
        if not partitions:
            return holds
        brief = deadline.at_most(_HOLDERS_S)
        producers: dict[int, int] = {}
        ids: Mapping[int, str] = {}
        try:
            leaders = {tp: leader for tp, (leader, _) in partitions.items()}
            for tp, starts in self._requests.open_transactions(leaders, brief).items():
                producer = starts.get(partitions[tp][1])
                if producer is not None:
                    producers[tp[1]] = producer
            if producers:
                ids = self._requests.transactional_ids(set(producers.values()), log.metadata.brokers, brief)
        except RoundAbandonedError as error:
            _LOG.info("Could not ask which transaction blocks the offsets log: %s.", error)
        return with_producers(holds, producers, ids)

    def observe_groups(self, log: LogState, memory: Memory, deadline: Deadline) -> GroupsSeen:
        """Observe all watched groups and their topics.

        Committed offsets are asked for before the ends of the topics, so that no lag is negative by that order.

        Args:
            log: The offsets log, with its positions.
            memory: From the last closed round.
            deadline: When the round has to be done.

        Raises:
            RoundAbandonedError: A necessary answer is missing.
        """
        groups = self._groups(log, memory, deadline)
        self._followed.follow(log, groups, deadline)
        descriptions = self._descriptions(groups, memory, deadline)
        committed, failed = self._committed(groups, deadline)
        shares = self._shares.observe(
            groups.values(),
            lambda names: self._share_settings.of_groups(names, deadline),
            memory.share_log,
            log.time,
            deadline,
        )
        of_commits = {name: found.topics for name, found in committed.items()}
        of_commits |= {name: frozenset(seen.topics) for name, seen in shares.groups.items()}
        of_commits |= {name: frozenset(memory.topics.get(name, ())) for name in failed}
        topics_of = topics_of_groups(groups, descriptions, of_commits, memory, self._filters)
        topics = self._topics({topic for topics in topics_of.values() for topic in topics}, deadline)
        early = self._followed.early(self._timestamps.first_ends)
        self._timestamps.note_topics(topics)
        return GroupsSeen(
            groups,
            topics_of,
            descriptions,
            topics,
            {name: found.mark for name, found in committed.items()}
            | {name: hash(msgspec.msgpack.encode(seen)) for name, seen in shares.groups.items()},
            self._timestamps.unread_timestamps(early, log.time),
            {} if self.reads_log else seen_groups(groups, descriptions, committed),
            self._followed.calm(topics) if self.reads_log else (),
            frozenset(self._followed.recorded),
            shares.groups,
            shares.log,
            self._connectors.observe(groups.values(), deadline),
        )

    def ask_timestamps(self, deadline: Deadline) -> None:
        """Ask when oldest unread records were written that no round has seen arrive; later rounds tell it.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        for asked in self._timestamps.questions():
            try:
                answers = self._requests.first_from(asked, self._leaders, deadline.at_most(_TIMESTAMPS_S))
            except RoundAbandonedError as error:
                self._timestamps.give_up()
                _LOG.info("Could not ask when unread records were written: %s.", error)
                return
            self._timestamps.note_answers(asked, answers)

    def ask_topics(self, log: LogState, look: GroupsSeen, turns: TopicTurns, deadline: Deadline) -> AskedTopics:
        """Observe the topics of the cluster whose turn it is; none where they are not watched.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        if self._cluster_topics is None:
            return AskedTopics()
        return self._cluster_topics.ask(log.metadata.brokers, look.topics, turns, log.time, deadline)

    def offsets_retention(self, log: LogState, deadline: Deadline) -> int | None:
        """`offsets.retention.minutes` of all brokers, asked once per heartbeat; None if it is not known.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        self._brokers = log.metadata.brokers
        self._offsets_retention.renew([_ALL], deadline)
        return self._offsets_retention.of(_ALL)

    # -- groups

    def _groups(self, log: LogState, memory: Memory, deadline: Deadline) -> dict[str, ListedGroup]:
        listed = self._requests.list_groups(log.metadata.brokers, deadline)
        groups = self._watched(listed, log, deadline)
        missing = [group for group in memory.topics if group not in groups and self._filters.watches_group(group)]
        if missing:
            groups |= self._missed(missing, log, deadline)
        return groups

    def _watched(self, listed: Iterable[ListedGroup], log: LogState, deadline: Deadline) -> dict[str, ListedGroup]:
        groups: dict[str, ListedGroup] = {}
        twice: list[ListedGroup] = []
        for group in listed:
            if not self._filters.watches_group(group.group):
                continue
            # While a coordinator moves, the old and the new one may both list a group.
            if group.group in groups:
                twice.append(group)
            else:
                groups[group.group] = group
        if twice:
            coordinators = self._coordinators([group.group for group in twice], log, deadline)
            groups |= {group.group: group for group in twice if coordinators[group.group] == group.node}
        return groups

    def _coordinators(self, groups: Sequence[str], log: LogState, deadline: Deadline) -> dict[str, int]:
        """Node ids of the groups' coordinators: the leaders of their log partitions, or whom a broker names.

        For a group that we may not describe it is any broker: each refuses it in the same way.
        """
        if log.leaders:
            return {group: log.leaders[log.home(group)] for group in groups}
        anyone = log.metadata.brokers[0]
        told = self._requests.coordinators(list(dict.fromkeys(groups)), deadline)
        return {group: anyone if isinstance(node, Refused) else node for group, node in told.items()}

    def _missed(self, missing: list[str], log: LogState, deadline: Deadline) -> dict[str, ListedGroup]:
        """Make sure that groups that no broker listed are gone, and did not only change coordinators.

        Between the old coordinator's resignation and the new one's start neither lists a group, and no error shows it.
        But a broker that is not the active coordinator refuses to describe a group of it: then the round is abandoned.
        A broker that answers is asked for its list again.

        Returns:
            Groups that these coordinators list now, those that we may not query any more, and those by which they fail:
            losing the right to see a group does not make it deleted.
        """
        coordinators = self._coordinators(missing, log, deadline)
        answers = self._requests.describe(DescribeGroupsRequest, coordinators, deadline)
        self._warn_of_refused("Describe on Group", answers)
        hidden = [
            ListedGroup(name, coordinators[name], None, None, None)
            for name, answer in answers.items()
            if answer in (Refused.FORBIDDEN, Refused.FAILED)
        ]
        listed = self._requests.list_groups(sorted(set(coordinators.values())), deadline)
        return self._watched([*hidden, *listed], log, deadline)

    def _descriptions(
        self, groups: Mapping[str, ListedGroup], memory: Memory, deadline: Deadline
    ) -> Mapping[str, Description]:
        # An empty group has no members, so no subscriptions: simple groups cost nothing here. The epoch at which a
        # group that the broker assigns became empty is asked for once.
        with_members = [
            group
            for group in groups.values()
            if group.state != EMPTY
            or (not self.reads_log and group.group_type in _ASSIGNED_TYPES and group.group not in memory.rest.marks)
        ]
        known = {group.group: self._followed.description(group) for group in with_members}
        found = {name: description for name, description in known.items() if description is not None}
        asked = [group for group in with_members if group.group not in found]
        # The log has them, where it is read.
        of_streams = [one.group for one in asked if one.group_type == STREAMS and not self.reads_log]
        settings = self._streams_settings.of_groups(of_streams, deadline)

        tells = not self.reads_log
        answers: dict[str, Any] = {}
        for types, request in _DESCRIBED_BY.items():
            told = self._requests.describe(
                request, {one.group: one.node for one in asked if one.group_type in types}, deadline
            )
            found |= {
                name: classic_description(answer, tells=tells)
                if types == _CLASSIC_TYPES
                else assigned_description(answer, types[0] or "", settings.get(name), tells=tells)
                for name, answer in told.items()
                if not isinstance(answer, Refused)
            }
            answers |= told
        self._warn_of_refused("Describe on Group", answers)
        found |= {
            name: Description(groups[name].state, groups[name].protocol_type, frozenset(), complete=False, failed=True)
            for name, answer in answers.items()
            if answer is Refused.FAILED
        }
        # Before DescribeGroups version 6 "Dead" is the answer for a group that does not exist, or is not a classic one;
        # these were just listed.
        self._followed.descriptions = {name: each for name, each in found.items() if each.state != _DEAD}
        return self._followed.descriptions

    def _committed(
        self, groups: Mapping[str, ListedGroup], deadline: Deadline
    ) -> tuple[Mapping[str, Committed], list[str]]:
        """What groups have committed, and groups of which their coordinators failed to tell it."""
        known = self._followed.committed
        # A share group has no committed offsets (KIP-932).
        asked = {name: group.node for name, group in groups.items() if group.group_type != SHARE and name not in known}
        answers = self._requests.committed(asked, deadline)
        self._warn_of_refused("Describe on Group", answers)
        self._followed.note_offsets({name: of for name, of in answers.items() if not isinstance(of, Refused)})
        return known, [name for name, of in answers.items() if of is Refused.FAILED]

    # -- topics

    def _topics(self, names: set[str], deadline: Deadline) -> dict[str, TopicObservation]:
        metadata = self._requests.metadata(sorted(names), deadline)
        self._warn_of_refused("Describe on Topic", metadata.topics)
        self._leaders = leaders_of(metadata.topics)
        offsets = {kind: self._requests.offsets(kind, self._leaders, deadline) for kind in OffsetKind}
        if not all(tp in found for found in offsets.values() for tp in self._leaders):
            # Leaders move at every broker's restart: worth asking again, not worth losing the round.
            metadata = self._requests.metadata(sorted(names), deadline)
            self._leaders = leaders_of(metadata.topics)
            missing = {
                tp: leader for tp, leader in self._leaders.items() if not all(tp in found for found in offsets.values())
            }
            for kind in OffsetKind:
                offsets[kind] |= self._requests.offsets(kind, missing, deadline)
        found = {name: topic for name, topic in metadata.topics.items() if isinstance(topic, TopicMetadata)}
        self._retentions.renew({(name, topic.topic_id) for name, topic in found.items()}, deadline)
        return {
            name: TopicObservation(name, None, None, b"", b"", b"")
            if topic is Refused.UNKNOWN
            else topic_of(name, found[name], metadata.racks, offsets, self._retentions.of((name, found[name].topic_id)))
            for name, topic in metadata.topics.items()
            if topic is not Refused.FORBIDDEN
        }

    def _warn_of_refused(self, right: str, answers: Mapping[str, object]) -> None:
        sentences = {
            Refused.FORBIDDEN: f"The right {right} '%s' is missing, so it is not monitored: grant it, or ignore it.",
            Refused.FAILED: "Brokers fail to describe group '%s': their logs say why.",
        }
        for name, answer in sorted(answers.items()):
            sentence = sentences.get(answer) if isinstance(answer, Refused) else None
            if sentence is not None and (warning := sentence % visible(name)) not in self._warned:
                self._warned.add(warning)
                _LOG.warning("%s", warning)
