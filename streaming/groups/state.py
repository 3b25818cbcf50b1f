"""The state of one group, with its topics as rounds have shown them, as one versioned value.

The state is packed with msgpack, fields in order. Once a release has shipped a version, any change of the shape needs a
new one, even an appended field: an older release would read the fields it knows, drop the rest and write the state back
without them. For the same reason a state with unknown fields is refused, like one of another version. A golden file in
the tests holds the shape (`tests/groups/record_states.py` writes it).
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from streaming.exceptions import EvenkeelError
from streaming.groups.classic.state import ClassicState
from streaming.groups.lag.state import DeletedOffsets, PartitionState, RoundTimes
from streaming.groups.modern.group import ModernState
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rows import HotPartition
from streaming.records import LOG, CommitWindow, MembershipRecord
from streaming.times import RoundClock


class Rebalances(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """When a group has rebalanced. Changed in place by `note`.

    Attributes:
        first: Time of the first rebalance, ms; -1 before it.
        recent: Times of the newest, within `WINDOW_MS` of the newest one, oldest first, ms; at most 64.
        past: Earlier ones, each halved per day since.
        counted_at: Time up to which `past` is halved, ms.
        storm_since: Time of the first rebalance of the present storm, ms; -1 if there is none.
    """

    first: int = -1
    recent: list[int] = []
    past: float = 0.0
    counted_at: int = -1
    storm_since: int = -1


class Uncommitted(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """A group that owns partitions and has no committed offset.

    Attributes:
        since: Time of the last round before records arrived, ms.
        elapsed: Elapsed time then, ms.
        arrived: Records that have arrived in its partitions, as the rounds' high watermarks show.
    """

    since: int
    elapsed: int
    arrived: int = 0


class TopicStart(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """A topic at a window's start.

    Attributes:
        topic_id: Its id; None when unknown.
        ends: High watermark per partition, packed (`rates.py`); below 0 where the window can have no rate.
        committed: Committed offset per partition, the same shape; -1 where there is none, -2 where the window can have
            no rate.
    """

    topic_id: str | None
    ends: bytes
    committed: bytes


class TopicCounts(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Records of a topic in the newest ended window.

    Attributes:
        produced: Offsets by which the high watermark has grown, per partition, packed; -1 where unknown.
        consumed: The same for the committed offset.
    """

    produced: bytes
    consumed: bytes


class LoadState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The load of one group. Changed in place.

    Attributes:
        since: Elapsed time at the start of the present window, ms.
        since_time: Time of that round, ms.
        starts: Topics at that round.
        length: Length of the newest ended window, ms; 0 if there is none, or if its length is not certain.
        counts: Records in that window, by topic.
        produced_per_second: Sum of its known rates over subscribed partitions; None if none is known.
        consumed_per_second: The same.
        assignment: What stands for the assignment that the following are of; None before the first.
        imbalance: max / mean - 1 of the produced records per member; None if unknown.
        imbalance_optimal: Bounds of the least that any assignment could reach; None if unknown.
        hot_partitions: Partitions that are too much for any member; None if unknown.
        members: Ids of the members with an open row of `member_load`.
    """

    since: int
    since_time: int
    starts: dict[str, TopicStart] = {}
    length: int = 0
    counts: dict[str, TopicCounts] = {}
    produced_per_second: float | None = None
    consumed_per_second: float | None = None
    assignment: tuple[int, int] | None = None
    imbalance: float | None = None
    imbalance_optimal: tuple[float, float] | None = None
    hot_partitions: tuple[HotPartition, ...] | None = None
    members: tuple[str, ...] = ()


class SeenState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The looks so far at a group whose log is not read.

    Attributes:
        looked: Time of the newest round that looked at the membership, or that knew that there was no such group, by
            its own clock, ms; -1 if none did.
        empty: At that look the group had no members.
        untold: Number of its members, if they are too large to be reported; 0 otherwise.
    """

    looked: int = -1
    empty: bool = False
    untold: int = 0


STATE_VERSION: Final = 2
"""Version of the state, for groups and for the reserved keys. Version 1, of 0.6.0, lacks some of the last fields, which
have defaults."""

_OLDEST_VERSION: Final = 1


class UnknownStateVersion(EvenkeelError):
    """The state in the checkpoint was written by another release."""


class CountSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition count (0: the topic did not exist) and the times of the first and last round that showed it, ms."""

    count: int
    first: int
    last: int


class RacksSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Racks of a topic's replicas, and the times of the first and last round that showed them.

    Attributes:
        sets: The distinct sets of racks among the partitions, each sorted; empty when no broker has a rack.
        places: Each partition's index in `sets`, one byte each (two, little-endian, for more than 256 sets, four for
            more than 65,536); empty when no broker has a rack.
        first: Time of the first round, ms.
        last: Time of the last round, ms.
    """

    sets: tuple[tuple[str, ...], ...]
    places: bytes
    first: int
    last: int


class TopicState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """One topic of the group.

    Attributes:
        counts: Partition counts seen, oldest first; the last is the newest round's.
        since: Time of the first round that showed the topic for this group, ms.
        topic_id: Topic id as Kafka prints it; None when unknown.
        renewed: Time of the last round with another topic id or fewer partitions than the round before, ms; -1 if
            none.
        recreated: Time of the last round that showed a new topic under the name (`lag.totals.was_recreated`), ms;
            -1 if none.
        count_before: Partition count of the topic it replaced; 0 when unknown.
        racks: Racks of the replicas, oldest first; empty until a round shows them.
    """

    counts: list[CountSeen]
    since: int
    topic_id: str | None = None
    renewed: int = -1
    recreated: int = -1
    count_before: int = 0
    racks: list[RacksSeen] = []


def counts_from(known: TopicState, horizon: int) -> frozenset[int]:
    """Partition counts seen since a time (ms), including the one in force at that time as far as rounds can tell."""
    before = [count for count in known.counts if count.first <= horizon][-1:] or known.counts[:1]
    return frozenset(count.count for count in (*before, *(c for c in known.counts if c.first > horizon)))


class GroupState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """State of one group.

    Attributes:
        windows: Commits since the last boundary, not yet processed, by topic and partition.
        classic: Membership as a classic group.
        modern: Membership as a KIP-848, share or streams group.
        topics: Topics seen in rounds.
        partitions: Partitions by topic.
        clock: Time according to the rounds.
        elapsed: Elapsed time (`GroupObservation.elapsed_time`) at the newest round, ms; -1 before the first.
        step: Elapsed time between the two newest consecutive rounds, ms; 0 before the second.
        rested: The newest round showed the group as idle: the rounds since then skipped it because nothing moved.
        findings: Start time of each current finding, by name.
        commits: Commits since the last row of `group_health`.
        health: The last row of `group_health`, packed, without round and times; None before the first.
        health_at: Elapsed time at that row, ms.
        compacted_until: Log offset below which compaction may have removed records of the group (`boundaries.py`); -1
            when nothing is missing.
        deleted: Committed offsets that were deleted lately; None when there are none.
        round_opened: Opening time of the newest round that lag was judged at and whose time was certain, ms; -1 before
            the first.
        round_closed: Closing time of the newest round that lag was judged at, ms; -1 if its time was not certain.
        rebalances: When it has rebalanced; None before the first time.
        uncommitted: Since when it owns partitions without committing; None if it commits, or owns none.
        load: Its rates and their window; None before the first round.
        source: Where the group is read from: "log", or how it is seen in rounds.
        seen: The looks at a group that is only seen in rounds; None for one whose log is read.
        rocketmq: What only RocketMQ's groups have; None for Kafka's.
        configured: Strategy and clients that the settings named for the group at the newest round; None where they said
            nothing.
    """

    windows: dict[str, dict[int, CommitWindow]] = {}
    classic: ClassicState = msgspec.field(default_factory=ClassicState)
    modern: ModernState = msgspec.field(default_factory=ModernState)
    topics: dict[str, TopicState] = {}
    partitions: dict[str, dict[int, PartitionState]] = {}
    clock: RoundClock = msgspec.field(default_factory=RoundClock)
    elapsed: int = -1
    step: int = 0
    rested: bool = False
    findings: dict[str, int] = {}
    commits: int = 0
    health: bytes | None = None
    health_at: int = -1
    compacted_until: int = -1
    deleted: DeletedOffsets | None = None
    round_opened: int = -1
    round_closed: int = -1
    rebalances: Rebalances | None = None
    uncommitted: Uncommitted | None = None
    load: LoadState | None = None
    source: str = LOG
    seen: SeenState | None = None
    rocketmq: RocketMQState | None = None
    configured: tuple[str | None, tuple[str, ...]] | None = None

    def live_record(self) -> MembershipRecord | None:
        """The newest classic membership record; None once the membership has ended, and in a modern group."""
        classic = self.classic
        if classic.current is None or classic.tombstoned is not None or self.modern.lives:
            return None
        return classic.current.record

    @property
    def members_known(self) -> bool:
        """Whether the newest records of members and what they have could be decoded.

        If not, those before them say nothing about the present.
        """
        return self.modern.is_readable and self.classic.is_readable

    @property
    def kinds(self) -> tuple[ClassicState | ModernState, ...]:
        """What the kinds of groups with records keep, for the steps that all kinds share."""
        return self.modern, self.classic

    @property
    def newest_round(self) -> RoundTimes:
        """Times of the newest round that lag was judged at."""
        return RoundTimes(self.round_opened, self.round_closed)

    def is_compacted(self, position: int) -> bool:
        """Whether a log offset, or the log position of a round, lies in a compacted stretch."""
        return position < self.compacted_until

    def is_void(self) -> bool:
        """Whether a fresh state would give the same rows for all later events, so that this one can be dropped.

        This removes groups that ended before any round showed them, and state created by the tombstones that follow a
        closed group. A change of protocol is safe: the coordinator writes the old group's end and the new one's
        beginning in one append, which is never split across batches. Inside a compacted stretch the caller keeps even
        a void state until the stretch ends.
        """
        if self.elapsed >= 0 or self.partitions or not all(kept.is_void for kept in self.kinds):
            return False
        return not any(w.commits or w.unreadable for ws in self.windows.values() for w in ws.values())


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupState)

_State = TypeVar("_State", bound=msgspec.Struct)


def encode_state(state: msgspec.Struct) -> tuple[int, bytes]:
    """Pack the state of a group, or of a key that is not a group: its version and its payload."""
    return STATE_VERSION, _ENCODER.encode(state)


def decode_state(version: int, payload: bytes) -> GroupState:
    """Unpack a state.

    Raises:
        UnknownStateVersion: Another release wrote it; continuing would lose some of it.
    """
    return _unpacked(version, payload, _DECODER)


def decode_reserved(stored: tuple[int, bytes] | None, kind: type[_State]) -> _State:
    """Unpack the small state of a key that is not a group; an empty one when nothing is stored.

    Raises:
        UnknownStateVersion: Another release wrote it.
    """
    if stored is None:
        return kind()
    return _unpacked(*stored, msgspec.msgpack.Decoder(kind))


def _unpacked(version: int, payload: bytes, decoder: msgspec.msgpack.Decoder[_State]) -> _State:
    # The caller adds what else helps: with only a new checkpoint, rows would be written a second time.
    refusal = f"the checkpoint holds state of version {version}, this release reads {STATE_VERSION}"
    if _OLDEST_VERSION <= version <= STATE_VERSION:
        try:
            return decoder.decode(payload)
        except msgspec.ValidationError as error:
            refusal = f"the checkpoint holds state with fields that this release does not know ({error})"
    message = f"{refusal}: run the release that wrote it"
    raise UnknownStateVersion(message)
