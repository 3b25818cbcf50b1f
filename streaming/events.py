"""The probe's records: the one schema of `evenkeel.events` and `evenkeel.rounds`.

The probe writes them; the job and the next probe read them. JSON in UTF-8, one object per record. What an event saw is
the core's own input (`streaming.records`), as an array; rounds are in `streaming/records/rounds.py`. The schema only
grows, so that probes and jobs of different releases work together:

- Fields are only appended, with defaults. A reader ignores fields it does not know and uses the default for fields that
  an older writer does not write. No field ever changes its meaning or type, or is removed.
- A record that older readers would misread gets a type of its own. A reader skips types it does not know, and counts
  them (`UnknownType`).
- `"v"` is the writer's version of this schema, from 1 up. It is for people; nothing depends on it.

Events of a round that never closed count for nothing. Each event is complete in itself: one group, or one topic of the
cluster, in one round. Keys: `evenkeel.events` by group id, or by topic where no group is concerned (UTF-8),
`evenkeel.rounds` by cluster name.

Writers of the two topics may be wrong but are not malicious (docs/security.md): a record that breaks the schema
is refused (`RejectedEvent`), any other is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from streaming.records import ClusterTopicObservation, GroupObservation, RocketMQObservation, Round
from streaming.terminal import visible

EVENTS_VERSION: Final = 1

MAX_RECORD_BYTES: Final = 32 * 1024 * 1024
"""The largest record that a probe may write: a group with a third of a million partitions, or a million without racks.
The event of a larger group has no topics."""

_LONGEST_NAME: Final = 100
"""Characters of a type in a reason."""


class _Event(msgspec.Struct, frozen=True, tag_field="type"):
    """What every event begins with.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        key: Group id; topic in a `ClusterTopicEvent`.
    """

    v: int
    cluster: str
    key: str


class GroupEvent(_Event, frozen=True, tag="group"):
    """One group of Kafka in one round, or its end.

    Where the log is not read, `log_partition` and `log_position` are -1, and `seen` has what was seen instead.
    """

    saw: GroupObservation


class RocketMQGroupEvent(_Event, frozen=True, tag="rocketmq_group"):
    """One group of RocketMQ in one round, or its end.

    It is written at every round, as long as the group has members, or anything of it has changed in the last twelve
    rounds; then, with `idle`, once per heartbeat. A probe that may not or could not ask something writes the event
    without it: a missing answer is recorded as missing, never filled in from an earlier round.
    """

    saw: RocketMQObservation


class ClusterTopicEvent(_Event, frozen=True, tag="cluster_topic"):
    """One topic of the cluster in one round, read by a group or not: once per heartbeat, and when it is gone."""

    saw: ClusterTopicObservation


Event = GroupEvent | RocketMQGroupEvent | ClusterTopicEvent


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """A record that does not follow our schema; it goes to `quarantine`."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A record of a type that this release does not know: written by a newer probe, not damaged.

    Attributes:
        name: The type, printable.
    """

    name: str

    @property
    def reason(self) -> str:
        """What `quarantine` gives as the reason."""
        return f"type {self.name} is not known to this release; a newer probe may have written it"


class _Head(msgspec.Struct, frozen=True):
    """The fields that every record has, in every release."""

    v: int
    type: str


_T = TypeVar("_T")

_ENCODER = msgspec.json.Encoder()
_EVENTS = msgspec.json.Decoder(Event)
_ROUNDS = msgspec.json.Decoder(Round)
_HEAD = msgspec.json.Decoder(_Head)
_TYPES: Final = {"group", "rocketmq_group", "cluster_topic", "opened", "closed"}


def encode(record: Event | Round) -> bytes:
    """Write one record."""
    return _ENCODER.encode(record)


def decode_event(value: bytes | None) -> Event | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.events`; any bytes are allowed."""
    return _decode(value, _EVENTS)


def decode_round(value: bytes | None) -> Round | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.rounds`; any bytes are allowed."""
    return _decode(value, _ROUNDS)


def _decode(value: bytes | None, decoder: msgspec.json.Decoder[_T]) -> _T | UnknownType | RejectedEvent:
    if value is None:
        return RejectedEvent("the record has no value")
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = visible(str(error))
    try:
        head = _HEAD.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RejectedEvent(f"not one of our records: {reason}")
    if head.type not in _TYPES:
        return UnknownType(visible(head.type, _LONGEST_NAME))
    return RejectedEvent(f"not one of our records: {reason}")
