"""All that is known of one group, as one versioned value.

The state is packed with msgpack, fields in order. Any change of its shape is a new version with an upgrade function in
`_UPGRADES`, an appended field too: an older release would read what it knows, drop the rest and write the state back
without it. So a state with more fields than are known is refused, as one of a later version is. The tests hold the
shape of each version, and a golden file of it (`tests/groups/record_states.py` writes both).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from streaming.groups.exceptions import UnknownStateVersion
from streaming.groups.lag.rhythm import Rhythm
from streaming.groups.lag.trend import Trend
from streaming.groups.modern.consumer_group import Decision as ModernDecision
from streaming.groups.modern.consumer_group import ModernGroup
from streaming.groups.modern.pauses import Pauses
from streaming.groups.rows import ChurnRow
from streaming.records import CommitWindow, MembershipRecord
from streaming.times import RoundClock

__all__ = [
    "GROUP_METADATA_TYPES",
    "STATE_VERSION",
    "CountSeen",
    "Decision",
    "GroupState",
    "OffsetEvents",
    "OpenCost",
    "Owned",
    "PartitionState",
    "RacksSeen",
    "TopicState",
    "Transfer",
    "decode_reserved",
    "decode_state",
    "encode_reserved",
    "encode_state",
]

STATE_VERSION: Final = 1
"""Of the states of groups and of the reserved keys alike."""

GROUP_METADATA_TYPES: Final = frozenset({3, 11, 17})
"""Key types that tell that a group of a newer protocol lives: consumer, share and streams groups. Types up to 24
belong to the same groups and follow them (kafka.md 2.2)."""


class PartitionState(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """One partition as the group consumes it.

    Attributes:
        committed: Last committed offset; -1 when there is none.
        commit_time: Record time of the last commit, ms; -1 when there is none.
        commits: Commits since the last row of `lag`.
        sampled_commits: Commits since the last round that knew the lag.
        rewound_by: Largest step back since the last row, in offsets.
        offset_deleted: The committed offset was deleted since the last row.
        rhythm: Its recent pauses.
        trend: What its newest rounds have shown.
        start: Log start offset at the newest round that knew it; -1 before the first.
        row: What the last row said, as far as a change of it makes a new row; None before the first row.
        row_at: Steady time of the last row, ms.
        of_topic: Topic id of the last commit, or "" where it has none and the topic was made anew since; None where it
            is a commit of the topic that the newest round showed (`offset_events.py`).
    """

    committed: int = -1
    commit_time: int = -1
    commits: int = 0
    sampled_commits: int = 0
    rewound_by: int = 0
    offset_deleted: bool = False
    rhythm: Rhythm = msgspec.field(default_factory=Rhythm)
    trend: Trend = msgspec.field(default_factory=Trend)
    start: int = -1
    row: tuple[int, int | None, int | None, int | None, int | None, str | None, str, str | None, bool] | None = None
    row_at: int = -1
    of_topic: str | None = None

    def forget_rounds(self) -> None:
        """Judge anew from here on: what rounds have shown until now is of another topic, or records are missing."""
        self.trend = Trend()
        self.start = -1

    def is_void(self) -> bool:
        """Whether nothing is known that a row or a judgement could still need."""
        return self.committed < 0 and not self.commits and not self.offset_deleted and self.row is None


class CountSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition count (0: the topic did not exist) and the first and last round time that showed it."""

    count: int
    first: int
    last: int


class RacksSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Racks of a topic's replicas, and the first and last round time that showed them.

    Attributes:
        sets: The different sets of racks that partitions have, each sorted; none when no broker has a rack.
        places: Per partition its place in `sets`, one byte each (two, little-endian, where there are more than 256
            sets, four where there are more than 65,536); empty when no broker has a rack.
        first: The first round's time, ms.
        last: The last one's.
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
        topic_id: Kafka's printed topic id; None when not known.
        renewed: Time of the first round that showed it deleted and made again (another topic id, or fewer
            partitions), ms; -1 when none did.
        recreated: Time of the first round that showed another topic of the name, ms; -1 when none did.
        count_before: Partition count of the topic before it; 0 when not known.
        racks: Racks of the replicas seen, oldest first; empty while no round has told them.
    """

    counts: list[CountSeen]
    since: int
    topic_id: str | None = None
    renewed: int = -1
    recreated: int = -1
    count_before: int = 0
    racks: list[RacksSeen] = []


Owned = dict[str, dict[str, tuple[int, ...]]]
"""Partitions by topic by member id."""


class Decision(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A decision of the group that waits for its verdict, or the newest one.

    Attributes:
        record: The record that closed it.
        kind: Kind of its churn row.
        incarnation: Incarnation it belongs to.
        after_unseen: Records of the group before it may be missing (it is the first one read, or numbers jump):
            it may be the record of a static member's return, which no leader decided.
        before: What each member had before it, while it waits; None where that is not known, or not needed.
        moves_least: As in its churn row, while it waits.
        first_half: It gave up partitions that the next one gives on (cooperative).
        more: Decisions before it that were dropped as it was, and of which nothing is kept (`churn.drop_oldest`).
    """

    record: MembershipRecord
    kind: str
    incarnation: int
    after_unseen: bool = False
    before: Owned | None = None
    moves_least: int | None = None
    first_half: bool = False
    more: int = 0


class Transfer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Partitions given up in a cooperative generation and not yet given on.

    Attributes:
        record: Log offset of the decision that gave them up.
        time: Its record time, ms.
        owners: First owner by topic and partition.
    """

    record: int
    time: int
    owners: dict[str, dict[int, str]]


class OffsetEvents(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What happened to committed offsets and is still to be said (`offset_events.py`).

    Attributes:
        rewound: Largest step back by topic and partition, where the offset is still below where it was.
        left_behind: Partitions by topic whose offset is one of a topic before of the same name; the value says nothing.
        deleted: By topic, how many partitions lost their offset in the newest round in which any did.
        deleted_at: Its time, ms; -1 when there was none.
    """

    rewound: dict[str, dict[int, int]] = {}
    left_behind: dict[str, dict[int, int]] = {}
    deleted: dict[str, int] = {}
    deleted_at: int = -1


class OpenCost(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The cost of the newest rebalance while commits that bound it are still awaited.

    Attributes:
        row: The churn row as written.
        waiting: Time of the last commit before the rebalance, by topic and partition.
        sum_ms: Upper bounds of the partitions that have committed again, summed.
    """

    row: ChurnRow
    waiting: dict[str, dict[int, int]]
    sum_ms: int = 0


class GroupState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """State of one group.

    Attributes:
        windows: Commits since the last boundary, not yet taken in.
        modern: Key type of the metadata record (3, 11 or 17) that the group lives by; None for a classic group.
        modern_ended: Log offset of the last tombstone of its metadata record; None when there was none.
        tombstoned: Log offset of the type-2 tombstone that ended the membership; None when it has not ended.
        current: The newest decision; None before the first.
        waiting: Decisions that no round has judged yet, oldest first.
        verdict: Verdict of the newest judged decision; None before the first.
        verdict_reason: Its reason.
        drifted_count: Its drifted partitions.
        imbalance: Imbalance of the newest decision; None when nothing is assigned or it cannot be read.
        imbalance_least: The best that any assignment could have reached.
        transfer: Partitions in transfer.
        cost: Cost still awaited.
        topics: Topics seen in rounds.
        partitions: Partitions by topic.
        closed_members: The members' closing rows are written.
        clock: What time it is by the rounds.
        steady: Steady time of the newest round, ms; -1 before the first.
        step: Steady time between the two newest rounds that came in a row, ms; 0 before the second.
        rested: The newest round told the group as idle: the rounds since then did not show it, and nothing moved.
        findings: Since when each finding holds, by its name.
        commits: Commits since the last row of `group_health`.
        health: Packed last row of `group_health` without round and times; None before the first.
        health_at: Steady time of that, ms.
        modern_group: What the log has told of a group of a newer protocol; None for a classic group.
        modern_epoch: Epoch of its newest decision; None before the first.
        modern_incarnation: Its incarnation; None before the first decision.
        upgraded: It was a classic group until now: its first decision is not there yet.
        unnamed: Decisions whose members' rows wait for a round to name the topics, oldest first.
        modern_rows: The decision whose members' rows were last written, as far as closing rows need it.
        unjudged: Decisions that no round has judged yet, oldest first.
        modern_verdict: Verdict of its newest judged decision, the reason, and its drifted partitions; None before.
        modern_balance: Imbalance of its newest judged decision, and the least; None before.
        compacted_until: Log offset below which records of the group may be missing by compaction (`compaction.py`);
            -1 when the log is whole.
        handed_over: Newest decision of a consumer group whose end was the last thing read of it, as a classic record
            would hold it: for the classic group that goes on.
        offset_events: What happened to committed offsets and is still to be said; None when there is nothing.
        pauses: Partitions of a consumer group between two owners; None before the first current assignment.
    """

    windows: dict[str, dict[int, CommitWindow]] = {}
    modern: int | None = None
    modern_ended: int | None = None
    tombstoned: int | None = None
    current: Decision | None = None
    waiting: list[Decision] = []
    verdict: str | None = None
    verdict_reason: str | None = None
    drifted_count: int = 0
    imbalance: float | None = None
    imbalance_least: float | None = None
    transfer: Transfer | None = None
    cost: OpenCost | None = None
    topics: dict[str, TopicState] = {}
    partitions: dict[str, dict[int, PartitionState]] = {}
    closed_members: bool = True
    clock: RoundClock = msgspec.field(default_factory=RoundClock)
    steady: int = -1
    step: int = 0
    rested: bool = False
    findings: dict[str, int] = {}
    commits: int = 0
    health: bytes | None = None
    health_at: int = -1
    modern_group: ModernGroup | None = None
    modern_epoch: int | None = None
    modern_incarnation: int | None = None
    upgraded: bool = False
    unnamed: list[ModernDecision] = []
    modern_rows: ModernDecision | None = None
    unjudged: list[ModernDecision] = []
    modern_verdict: tuple[str, str | None, int] | None = None
    modern_balance: tuple[float | None, float | None] | None = None
    handed_over: Decision | None = None
    compacted_until: int = -1
    offset_events: OffsetEvents | None = None
    pauses: Pauses | None = None

    def is_void(self) -> bool:
        """Whether a fresh state would say the same of every later event: such a state is dropped.

        (Of events behind a compacted stretch: it has to be kept for as long as that goes on.)

        So nothing lingers of groups that ended before a round showed them, and the tombstones that trail behind
        a closed group leave nothing. (A group that ends by moving to another protocol writes both ends in one
        append, which no batch parts.)
        """
        if self.steady >= 0 or self.modern is not None:
            return False
        if self.waiting or self.partitions:
            return False
        if self.modern_group is not None or self.unnamed or self.unjudged or self.modern_rows is not None:
            return False
        if self.current is not None and self.tombstoned is None:
            return False
        return not any(w.commits for ws in self.windows.values() for w in ws.values())


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupState)

_State = TypeVar("_State", bound=msgspec.Struct)

# Kind of state and version that a payload has -> function to the next version's bytes. A kind whose shape has not
# changed has one that returns what it is given.
_UPGRADES: dict[tuple[str, int], Callable[[bytes], bytes]] = {}


def encode_state(state: GroupState) -> tuple[int, bytes]:
    """Pack a state: its version and its payload."""
    return STATE_VERSION, _ENCODER.encode(state)


def decode_state(version: int, payload: bytes) -> GroupState:
    """Unpack a state of this or any earlier version.

    Raises:
        UnknownStateVersion: The state was written by a later release: going on would lose what it knows.
    """
    return _unpacked(version, payload, GroupState, _DECODER)


def encode_reserved(state: msgspec.Struct) -> tuple[int, bytes]:
    """Pack the small state of a key that is no group."""
    return STATE_VERSION, _ENCODER.encode(state)


def decode_reserved(stored: tuple[int, bytes] | None, kind: type[_State]) -> _State:
    """Unpack what `encode_reserved` wrote; an empty one when nothing is stored.

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
        raise UnknownStateVersion(_refusal(version, f"with other fields than this release knows ({error})")) from None


def _refusal(version: int, why: str) -> str:
    return (
        f"the checkpoint holds state of version {version}, {why}: "
        "run the release that wrote it, or start a new checkpoint"
    )
