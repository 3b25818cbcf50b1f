"""Groups and topics as a round saw them, and the events of a round, without Kafka."""

from __future__ import annotations

from collections.abc import Callable

from streaming.config import Filters
from streaming.events import Event
from streaming.probe.kafka.look import GroupsSeen, ListedGroup, RoundHead, Topic
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.observe import round_events

ALL = Filters()
LOG = (10, 20, 30)

MakeHead = Callable[..., RoundHead]


def classic(group: str, state: str = "Stable") -> ListedGroup:
    return ListedGroup(group, 1, state, "consumer", "classic")


def look_at(topics: dict[str, Topic], **groups: tuple[str, ...]) -> GroupsSeen:
    return GroupsSeen({name: classic(name) for name in groups}, groups, {}, topics)


def events_of(head: RoundHead, look: GroupsSeen, memory: Memory, filters: Filters = ALL) -> list[tuple[str, Event]]:
    return round_events(head, look, memory, memory_after(head, look, memory), filters, period_ms=600_000)
