"""Groups and topics as a round saw them, and the events of a round, without Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streaming.config import Filters
from streaming.events import GroupEvent
from streaming.probe.kafka.look import GroupsSeen, ListedGroup, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.observe import round_events
from streaming.records import TopicObservation, TopicRetention, pack_offsets

ALL = Filters()
LOG = (10, 20, 30)

MakeHead = Callable[..., RoundHead]


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
