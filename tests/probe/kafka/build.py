"""Groups and topics as a round saw them, and the events of a round, without Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kafka.errors import TopicAuthorizationFailedError

from streaming.config import Filters
from streaming.events import GroupEvent
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.followed import LogState
from streaming.probe.kafka.look import GroupsSeen, ListedGroup, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.messages import ShareGroupDescribeRequest
from streaming.probe.kafka.observe import round_events
from streaming.probe.kafka.requests import Metadata, OffsetKind, Refused, TopicMetadata
from streaming.record_batches import FetchedBatch, OffsetRange, UnreadableTopicError
from streaming.records import TopicObservation, TopicRetention, pack_offsets

ALL = Filters()
LOG = (10, 20, 30)

OFFSETS_LOG = LogState(Metadata("id", (1, 2), False, {}), (1, 2), stable=(0, 0), end=(0, 0), time=0)
SOON = Deadline.after(600)
BEFORE = Memory({"g": frozenset({"orders"})})
HIDDEN = LogState(OFFSETS_LOG.metadata, time=0)

MakeHead = Callable[..., RoundHead]
Describe = Callable[[Mapping[str, int]], Mapping[str, object]]
MakeCluster = Callable[..., KafkaCluster]


def classic(group: str, state: str = "Stable") -> ListedGroup:
    return ListedGroup(group, 1, state, "consumer", "classic")


def topic(
    name: str,
    end: Sequence[int] | None = None,
    stable: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    topic_id: str | None = None,
    retention: TopicRetention | None = None,
) -> TopicObservation:
    """A topic with these offsets by partition; one that does not exist without `end`."""
    if end is None:
        return TopicObservation(name, None, None, b"", b"", b"")
    packed = (pack_offsets(end), pack_offsets(stable or end), pack_offsets(start or [0] * len(end)))
    return TopicObservation(name, topic_id, len(end), *packed, retention=retention)


def look_at(topics: dict[str, TopicObservation], **groups: tuple[str, ...]) -> GroupsSeen:
    return GroupsSeen({name: classic(name) for name in groups}, groups, {}, topics)


def events_of(head: RoundHead, look: GroupsSeen, memory: Memory, filters: Filters = ALL) -> list[GroupEvent]:
    return round_events(head, look, memory, memory_after(head, look, memory), filters, period_ms=600_000)


def listed(node: int, state: str = "Empty") -> ListedGroup:
    return ListedGroup("g", node, state, "consumer", "classic")


class Answers:
    """Requests with prepared answers; each ListGroups takes the next list."""

    def __init__(self, lists: list[list[ListedGroup]], describe: Describe) -> None:
        self._lists, self._describe = lists, describe
        self.asked: list[list[int]] = []
        self.settings_asked: list[list[str]] = []

    def list_groups(self, brokers: Iterable[int], _: Deadline) -> list[ListedGroup]:
        self.asked.append(list(brokers))
        return self._lists.pop(0)

    def describe(self, request: Any, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        if request is ShareGroupDescribeRequest:
            member = SimpleNamespace(subscribed_topic_names=["orders"])
            return {group: SimpleNamespace(group_state="Stable", members=[member]) for group in groups}
        return self._describe(groups) if groups else {}

    def committed(self, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        return {group: {("orders", 0): 1} for group in groups}

    def metadata(self, topics: Iterable[str], _: Deadline) -> Metadata:
        return Metadata("id", (1, 2), False, {topic: TopicMetadata(None, (), ()) for topic in topics})

    def retentions(self, *_: object) -> dict[str, object]:
        return {}

    def share_settings(self, *_: object) -> dict[str, object]:
        return {}

    def streams_settings(self, groups: Iterable[str], _: Deadline) -> dict[str, object]:
        self.settings_asked.append(list(groups))
        return {group: {"num.standby.replicas": "1"} for group in groups}

    def share_offsets(self, *_: object) -> dict[str, object]:
        return {}

    def offsets(self, *_: object) -> dict[tuple[str, int], int]:
        return {}


class ReadTopic:
    """A topic of one partition that a probe reads on from round to round; it is what requests and readers are called.

    Attributes:
        log: Key and value of each record.
        topic: What brokers say of it.
        raises: What its reader, or the question for it, fails with.
        read_from: Where each reading began.
        ends_at: The end that is to be asked for; any where it is None.
    """

    ends_at: OffsetKind | None = None

    def __init__(self, log: Iterable[tuple[bytes, bytes]]) -> None:
        self.log = [*log]
        self.topic: TopicMetadata | Refused = TopicMetadata("id-1", (1,), ())
        self.raises: Exception | None = None
        self.read_from: list[int] = []

    def metadata(self, topics: Iterable[str], _: Deadline) -> Any:
        if isinstance(self.raises, RoundAbandonedError):
            raise self.raises
        return SimpleNamespace(topics=dict.fromkeys(topics, self.topic))

    def offsets(self, kind: object, leaders: Mapping[tuple[str, int], int], _: Deadline) -> dict[tuple[str, int], int]:
        assert self.ends_at in {None, kind}
        return dict.fromkeys(leaders, len(self.log))

    def read(self, ranges: Iterable[OffsetRange]) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        if self.raises is not None:
            raise self.raises
        for where in ranges:
            self.read_from.append(where.start)
            for at in range(where.start, where.end):
                key, value = self.log[at]
                yield where, FetchedBatch(at, at, 0, [SimpleNamespace(offset=at, timestamp=0, key=key, value=value)])


def unreadable() -> UnreadableTopicError:
    """A reader's failure where the right to read is missing."""
    error = UnreadableTopicError()
    error.__cause__ = TopicAuthorizationFailedError()
    return error
