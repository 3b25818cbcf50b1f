"""What is configured for Connect groups, from the topics that the settings name for them (`connect_config_topics`).

No record of a group shows its topic, which is a setting of the workers (`config.storage.topic`). A round reads on where
the one before has ended. Where it cannot be read, it is not known what is configured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from streaming.lifecycle import room_log
from streaming.offsets_log import LogRecord
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.kafka.answers import leaders_of
from streaming.probe.kafka.connect_configs import ConnectConfigs
from streaming.probe.kafka.look import EMPTY, ListedGroup
from streaming.probe.kafka.requests import (
    MetadataRequests,
    OffsetKind,
    PartitionRequests,
    Refused,
    TopicMetadata,
)
from streaming.probe.kafka.topic_tail import TopicTail
from streaming.record_batches import RangeReader
from streaming.records import CONNECT, SeenConnectors
from streaming.terminal import visible

_LOG = room_log(__name__)

_ASK_S: Final = 2.0
"""What is configured is worth a moment, and no round."""

_FAILED: Final = 3
"""Rounds in a row without the topic that are worth a warning: while a broker restarts, one or two go by."""


class ConfigTail(TopicTail):
    """Follows a configuration topic, which has one partition. Not for several threads.

    Attributes:
        configs: What it tells.
        broken: Why a part of it cannot be decoded; None where all can.
    """

    def __init__(self, topic: str, connect: Callable[[], RangeReader]) -> None:
        """Read through a reader that is opened when there is something to read."""
        super().__init__(topic, connect)
        self.configs = ConnectConfigs()
        self.broken: str | None = None

    def _forget(self) -> None:
        self.configs, self.broken = ConnectConfigs(), None

    def _apply_record(self, partition: int, record: LogRecord) -> None:  # noqa: ARG002
        self.configs.apply(record.key, record.value)

    def _reject(self, partition: int, record: LogRecord, reason: str) -> None:  # noqa: ARG002
        self.broken = reason


class ConnectGroups:
    """The configured Connect groups of one cluster: call `observe` once a round. Not for several threads."""

    def __init__(
        self, topics: MetadataRequests, partitions: PartitionRequests, tails: Mapping[str, ConfigTail]
    ) -> None:
        """Ask through these.

        Args:
            topics: Asks for topics.
            partitions: Asks for their ends.
            tails: What follows the configuration, by group.
        """
        self._ask_topics, self._ask_partitions = topics, partitions
        self._tails = tails
        self._failed: Counter[str] = Counter()

    def observe(self, listed: Iterable[ListedGroup], deadline: Deadline) -> dict[str, SeenConnectors]:
        """What is configured now, by group; groups of which that is not known are missing.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        tails = {
            group.group: self._tails[group.group]
            for group in listed
            if group.group in self._tails and group.protocol_type == CONNECT and group.state != EMPTY
        }
        tails = {group: tail for group, tail in tails.items() if not tail.is_refused}
        if not tails:
            return {}
        brief = deadline.at_most(_ASK_S)
        try:
            topics = self._ask_topics.metadata(sorted({tail.topic for tail in tails.values()}), brief).topics
            ends = self._ask_partitions.offsets(OffsetKind.STABLE, leaders_of(topics), brief)
        except RoundAbandonedError as error:
            _LOG.info("Could not ask for the ends of configuration topics of Connect: %s.", error)
            return {}
        found = {}
        for group, tail in tails.items():
            why = _follow(tail, topics.get(tail.topic), ends.get((tail.topic, 0)), deadline)
            if why is None:
                found[group] = SeenConnectors(tail.topic, tail.configs.connectors)
                self._failed.pop(group, None)
                continue
            self._failed[group] += 1
            if tail.is_refused or self._failed[group] == _FAILED:
                _LOG.warning(
                    "What is configured for Connect group %s cannot be read from topic %s (%s): connectors and tasks "
                    "that never ran are not missed.",
                    visible(group),
                    visible(tail.topic),
                    why,
                )
        return found


def _follow(tail: ConfigTail, topic: TopicMetadata | Refused | None, end: int | None, deadline: Deadline) -> str | None:
    """Read a topic to its end; None, or why that did not go."""
    if topic is Refused.FORBIDDEN:
        tail.is_refused = True
        return "the right Describe on it is missing"
    if not isinstance(topic, TopicMetadata):
        return "there is no such topic"
    if len(topic.leaders) != 1:
        return f"it has {len(topic.leaders)} partitions, and Connect's has one"
    if end is None:
        return "its leader does not tell its end"
    why = tail.read_to({0: end}, topic.topic_id, deadline)
    if tail.is_refused:
        return "the right Read on it is missing"
    return why or tail.broken
