"""From the probe's events about a group without its log to the core's values: bytes of members are decoded here."""

from __future__ import annotations

from streaming.events import ClassicSeen, CommitsSeen, ConsumerSeen, SeenEvent, SeenGroupEvent, SeenPartitions
from streaming.offsets_log import seen_member
from streaming.records import IdPartitions, Seen, SeenClassic, SeenCommits, SeenConsumer, SeenMember

_CONSUMER = "consumer"


class SeenParts:
    """What is seen of one group in one round, event by event; at most one of each kind."""

    def __init__(self, source: str, event: SeenGroupEvent) -> None:
        """Begin with the group's own event."""
        self._source = source
        self._event = event
        self._classic: SeenClassic | None = None
        self._consumer: SeenConsumer | None = None
        self._commits: SeenCommits | None = None

    def add(self, event: SeenEvent) -> bool:
        """Add an event; False when one of its kind has come."""
        before = self.missing
        if isinstance(event, ClassicSeen):
            self._classic = self._classic or classic(event)
        elif isinstance(event, ConsumerSeen):
            self._consumer = self._consumer or consumer(event)
        else:
            self._commits = self._commits or SeenCommits(event.whole, event.offsets)
        return self.missing < before

    @property
    def missing(self) -> int:
        """How many events have not come yet."""
        parts = (self._classic, self._consumer, self._commits)
        return self._event.seen - sum(part is not None for part in parts)

    def seen(self) -> Seen:
        """All of it as one value."""
        absent_at = self._event.absent_at
        return Seen(
            self._source,
            self._event.looked,
            -1 if absent_at is None else absent_at,
            self._classic,
            self._consumer,
            self._commits,
        )


def classic(event: ClassicSeen) -> SeenClassic:
    """Members of a classic group, decoded as those of a record of the log."""
    decodes = event.protocol_type == _CONSUMER
    members = [
        seen_member(
            member.id,
            member.instance,
            member.client,
            member.host,
            member.subscription,
            member.assignment,
            decodes=decodes,
        )
        for member in event.members
    ]
    return SeenClassic(event.protocol_type, event.protocol, tuple(members), event.more)


def consumer(event: ConsumerSeen) -> SeenConsumer:
    """Members of a KIP-848 group."""
    members = [
        SeenMember(
            member.id,
            member.epoch,
            member.client,
            member.host,
            member.instance,
            member.rack,
            member.topics,
            member.regex,
            _by_id(member.owned),
            _by_id(member.target),
            member.classic,
        )
        for member in event.members
    ]
    return SeenConsumer(event.epoch, event.assignment_epoch, event.assignor, tuple(members), event.more)


def _by_id(partitions: SeenPartitions) -> IdPartitions:
    return tuple([(topic_id, numbers) for topic_id, _, numbers in partitions])


def size_of(event: SeenEvent, record_size: int) -> int:
    """Approximate bytes of the decoded event, by those of its record.

    A partition of an assignment takes four bytes there (after base64, five), and 32 as an integer in a tuple.
    """
    return record_size * (8 if not isinstance(event, CommitsSeen) else 12)
