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

from streaming.groups.classic.state import ClassicState
from streaming.groups.exceptions import UnknownStateVersion
from streaming.groups.lag.state import OffsetEvents, PartitionState
from streaming.groups.modern.state import ModernState
from streaming.groups.topics import TopicState
from streaming.records import CommitWindow, MembershipRecord
from streaming.times import RoundClock

__all__ = [
    "GROUP_METADATA_TYPES",
    "STATE_VERSION",
    "GroupState",
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


class GroupState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """State of one group.

    Attributes:
        windows: Commits since the last boundary, not yet taken in, by topic and partition.
        classic: Its membership as a classic group.
        modern: Its membership as a group of a newer protocol.
        topics: Topics seen in rounds.
        partitions: Partitions by topic.
        clock: What time it is by the rounds.
        steady: Steady time of the newest round, ms; -1 before the first.
        step: Steady time between the two newest rounds that came in a row, ms; 0 before the second.
        rested: The newest round showed the group as idle: the rounds since then did not show it, and nothing moved.
        findings: Since when each finding holds, by its name.
        commits: Commits since the last row of `group_health`.
        health: Packed last row of `group_health` without round and times; None before the first.
        health_at: Steady time of that row, ms.
        compacted_until: Log offset below which records of the group may be missing by compaction (`compaction.py`);
            -1 when the log is whole.
        offset_events: What happened to committed offsets and is still to be said; None when there is nothing.
    """

    windows: dict[str, dict[int, CommitWindow]] = {}
    classic: ClassicState = msgspec.field(default_factory=ClassicState)
    modern: ModernState = msgspec.field(default_factory=ModernState)
    topics: dict[str, TopicState] = {}
    partitions: dict[str, dict[int, PartitionState]] = {}
    clock: RoundClock = msgspec.field(default_factory=RoundClock)
    steady: int = -1
    step: int = 0
    rested: bool = False
    findings: dict[str, int] = {}
    commits: int = 0
    health: bytes | None = None
    health_at: int = -1
    compacted_until: int = -1
    offset_events: OffsetEvents | None = None

    def live_record(self) -> MembershipRecord | None:
        """The newest record of the classic membership, as long as that has not ended; None in a modern group."""
        classic = self.classic
        if classic.current is None or classic.tombstoned is not None or self.modern.key_type is not None:
            return None
        return classic.current.record

    def is_void(self) -> bool:
        """Whether a fresh state would say the same of every later event: such a state is dropped.

        (A state inside a compacted stretch is kept for as long as the stretch goes on.)

        So nothing lingers of groups that ended before a round showed them, and the tombstones that trail behind
        a closed group leave nothing. (A group that ends by moving to another protocol writes both ends in one
        append, which no batch parts.)
        """
        classic, modern = self.classic, self.modern
        if self.steady >= 0 or modern.key_type is not None:
            return False
        if classic.waiting or self.partitions:
            return False
        if modern.group is not None or modern.unnamed or modern.waiting or modern.shown is not None:
            return False
        if classic.current is not None and classic.tombstoned is None:
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
