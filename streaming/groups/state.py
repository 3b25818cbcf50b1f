"""The state of one group, with its topics as rounds have shown them, as one versioned value.

The state is packed with msgpack, fields in order. Any change of its shape needs a new version and an upgrade function
in `_UPGRADES`, even an appended field: an older release would read the fields it knows, drop the rest and write the
state back without them. For the same reason a state with unknown fields is refused, like one of a later version. The
tests hold the shape and a golden file of each version (`tests/groups/record_states.py` writes both).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from streaming.exceptions import EvenkeelError
from streaming.groups.classic.state import ClassicState
from streaming.groups.delayed import Stopped
from streaming.groups.health.state import Rebalances, Uncommitted
from streaming.groups.lag.state import OffsetEvents, PartitionState
from streaming.groups.load.state import LoadState
from streaming.groups.modern.state import ModernState
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rows import LOG
from streaming.groups.seen.state import SeenState
from streaming.records import CommitWindow, MembershipRecord
from streaming.times import RoundClock

STATE_VERSION: Final = 6
"""Version of the state, for groups and for the reserved keys."""


class UnknownStateVersion(EvenkeelError):
    """The state in the checkpoint was written by a later release."""


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
        recreated: Time of the last round that showed a new topic under the name (`offset_events.was_recreated`), ms;
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
        compacted_until: Log offset below which compaction may have removed records of the group (`compaction.py`); -1
            when nothing is missing.
        offset_events: Recent events on committed offsets that findings still report; None when there are none.
        round_opened: Opening time of the newest round that lag was judged at and whose time was certain, ms; -1 before
            the first.
        round_closed: Closing time of the newest round that lag was judged at, ms; -1 if its time was not certain.
        lag_sums: Sums of the lag in the last minutes (`lag/drain.py`); empty while the group is not behind.
        rebalances: When it has rebalanced; None before the first time.
        uncommitted: Since when it owns partitions without committing; None if it commits, or owns none.
        load: Its rates and their window; None before the first round.
        stopped: Rebalances that wait for what the next round shows, oldest first (`delayed.py`).
        source: Where the group is read from: "log", or how it is seen in rounds.
        seen: The looks at a group that is only seen in rounds; None for one whose log is read.
        rocketmq: What only RocketMQ's groups have; None for Kafka's.
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
    offset_events: OffsetEvents | None = None
    round_opened: int = -1
    round_closed: int = -1
    lag_sums: list[int] = []
    rebalances: Rebalances | None = None
    uncommitted: Uncommitted | None = None
    load: LoadState | None = None
    stopped: list[Stopped] = []
    source: str = LOG
    seen: SeenState | None = None
    rocketmq: RocketMQState | None = None

    def live_record(self) -> MembershipRecord | None:
        """The newest classic membership record; None once the membership has ended, and in a modern group."""
        classic = self.classic
        if classic.current is None or classic.tombstoned is not None or self.modern.key_type is not None:
            return None
        return classic.current.record

    @property
    def members_known(self) -> bool:
        """Whether the newest record of each member, target and assignment could be decoded.

        If not, those before them say nothing about the present.
        """
        return self.classic.unreadable < 0 and not self.modern.unreadable

    def is_void(self) -> bool:
        """Whether a fresh state would give the same rows for all later events, so that this one can be dropped.

        This removes groups that ended before any round showed them, and state created by the tombstones that follow a
        closed group. A change of protocol is safe: the coordinator writes the old group's end and the new one's
        beginning in one append, which is never split across batches. Inside a compacted stretch the caller keeps even
        a void state until the stretch ends.
        """
        classic, modern = self.classic, self.modern
        if self.elapsed >= 0 or modern.key_type is not None:
            return False
        if classic.waiting or self.partitions:
            return False
        if modern.group is not None or modern.unnamed or modern.waiting or modern.shown is not None:
            return False
        if classic.current is not None and classic.tombstoned is None:
            return False
        if not self.members_known:
            return False
        return not any(w.commits or w.unreadable for ws in self.windows.values() for w in ws.values())


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupState)

_State = TypeVar("_State", bound=msgspec.Struct)


def _unchanged(payload: bytes) -> bytes:
    return payload


# Index of `lag_total` in a row of `group_health`, in version 1 of the state.
_LAG_TOTAL_IN_1 = 26

# Columns of version 2 behind `time_behind_reason`.
_MORE_COLUMNS = 17


def _with_longer_health(payload: bytes) -> bytes:
    """Version 2 of a group's state: its last row of `group_health` has more columns.

    Without that, each group would get a row at the first round after the upgrade, because of columns that say nothing.
    """
    fields: list[Any] = msgspec.msgpack.decode(payload)
    index = GroupState.__struct_fields__.index("health")
    if len(fields) > index and fields[index] is not None:
        row: list[Any] = msgspec.msgpack.decode(fields[index])
        reason = "lag_unknown" if row[_LAG_TOTAL_IN_1] is None else None
        fields[index] = _ENCODER.encode([*row, None, None, reason, *[None] * _MORE_COLUMNS])
    return _ENCODER.encode(fields)


def _without_lag_sums(payload: bytes) -> bytes:
    """Version 4 of a group's state: sums of the lag have the time of the rounds, where they had elapsed time."""
    fields: list[Any] = msgspec.msgpack.decode(payload)
    index = GroupState.__struct_fields__.index("lag_sums")
    if len(fields) > index:
        fields[index] = []
    return _ENCODER.encode(fields)


# (Kind of state, version of the payload) -> function that returns the next version's bytes. For a kind whose shape has
# not changed, that function returns its argument.
_UPGRADES: dict[tuple[str, int], Callable[[bytes], bytes]] = {
    # Version 2 appends the times of the newest round, sums of the lag, and the marks of partitions (`lag/`); a state of
    # version 1 has none.
    ("GroupState", 1): _with_longer_health,
    ("RoundsState", 1): _unchanged,
    ("UnreadableState", 1): _unchanged,
    # Version 3 appends rebalances that wait for a round, and columns to the churn rows of open costs.
    ("GroupState", 2): _unchanged,
    ("RoundsState", 2): _unchanged,
    ("UnreadableState", 2): _unchanged,
    # (States of topics are newer than version 3: only builds between the releases wrote some with that number.)
    ("GroupState", 3): _without_lag_sums,
    ("RoundsState", 3): _unchanged,
    ("UnreadableState", 3): _unchanged,
    ("ClusterTopicState", 3): _unchanged,
    # Version 5 appends the source of a group, the looks at one that is only seen, what memberships and targets that
    # were only seen have in addition, what only RocketMQ's groups have, and the interval in which a decision was made
    # to the churn rows of open costs.
    ("GroupState", 4): _unchanged,
    ("RoundsState", 4): _unchanged,
    ("UnreadableState", 4): _unchanged,
    ("ClusterTopicState", 4): _unchanged,
    # Version 6 appends until when a classic group's decision was in force.
    ("GroupState", 5): _unchanged,
    ("RoundsState", 5): _unchanged,
    ("UnreadableState", 5): _unchanged,
    ("ClusterTopicState", 5): _unchanged,
}


def encode_state(state: GroupState) -> tuple[int, bytes]:
    """Pack a state: its version and its payload."""
    return STATE_VERSION, _ENCODER.encode(state)


def decode_state(version: int, payload: bytes) -> GroupState:
    """Unpack a state of this or any earlier version.

    Raises:
        UnknownStateVersion: The state was written by a later release; continuing would lose some of it.
    """
    return _unpacked(version, payload, GroupState, _DECODER)


def encode_reserved(state: msgspec.Struct) -> tuple[int, bytes]:
    """Pack the small state of a key that is not a group."""
    return STATE_VERSION, _ENCODER.encode(state)


def decode_reserved(stored: tuple[int, bytes] | None, kind: type[_State]) -> _State:
    """Unpack what `encode_reserved` wrote; an empty state when nothing is stored.

    Raises:
        UnknownStateVersion: The state was written by a later release.
    """
    return kind() if stored is None else _unpacked(*stored, kind, msgspec.msgpack.Decoder(kind))


def _unpacked(version: int, payload: bytes, kind: type[_State], decoder: msgspec.msgpack.Decoder[_State]) -> _State:
    if version > STATE_VERSION:
        raise UnknownStateVersion(_refusal(version, f"this release knows up to {STATE_VERSION}"))
    while version < STATE_VERSION:
        upgrade = _UPGRADES.get((kind.__name__, version))
        if upgrade is None:
            raise UnknownStateVersion(_refusal(version, "which no release has written"))
        payload = upgrade(payload)
        version += 1
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as error:
        raise UnknownStateVersion(_refusal(version, f"with fields that this release does not know ({error})")) from None


def _refusal(version: int, why: str) -> str:
    # (The caller adds what else helps: with only a new checkpoint, rows would be written a second time.)
    return f"the checkpoint holds state of version {version}, {why}: run the release that wrote it"
