"""Rounds that closed, and the partitions of the offsets log that they found held back."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = [
    "LONGEST_INTERVAL_MS",
    "SILENT_INTERVALS",
    "ClosedRound",
    "HeldPartition",
    "decode_closed_rounds",
    "encode_closed_rounds",
]

SILENT_INTERVALS: Final = 3
"""So many of the probe's intervals without a round are a gap: the log is read on without rounds, and a step between two
rounds counts no more. One may be late by a garbage collection or a slow broker. (When people are told of silence is for
the alert rules to say.)"""


LONGEST_INTERVAL_MS: Final = 600_000
"""A probe's interval counts no longer than this: more would hold back membership for days, or make absurd steps."""


class HeldPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition of the offsets log as one round found it held back.

    Attributes:
        partition: Partition of the offsets log.
        since: Time of the first round that saw the last stable offset where it stands, ms.
        position: Last stable offset: where the transaction begins.
        end: High watermark.
        groups: Groups of the round in the partition.
        producer_id: Producer of the transaction; None when not known.
        transactional_id: Its transactional id; None when not known.
    """

    partition: int
    since: int
    position: int
    end: int
    groups: int
    producer_id: int | None = None
    transactional_id: str | None = None


class ClosedRound(msgspec.Struct, frozen=True, array_like=True):
    """A round that closed and was taken into a batch.

    Attributes:
        round: Number of the round.
        time: The round's time, ms.
        closed_time: Append time of the closing record, ms.
        interval_ms: Interval that the probe keeps.
        probe: Id of the probe process.
        cluster_id: Kafka's own cluster id; None when not known.
        groups: Groups with events in the round.
        events: Events of the round.
        log_partitions: Partitions of the offsets log.
        held_partitions: Those whose last stable offset was below their high watermark.
        log_records: Offsets of the log between the round before and this one, over all partitions.
        holds: Partitions that an open transaction holds back for more than a few rounds; None where the probe
            does not tell.
        elapsed: As in `Tick`, ms.
        opened_offset: Offset of the opening record; less than `round` after the rounds topic was created again.
    """

    round: int
    time: int
    closed_time: int
    interval_ms: int
    probe: str
    cluster_id: str | None
    groups: int
    events: int
    log_partitions: int
    held_partitions: int
    log_records: int
    holds: tuple[HeldPartition, ...] | None = None
    elapsed: int = 0
    opened_offset: int = -1


_ENCODER = msgspec.msgpack.Encoder()


_DECODER = msgspec.msgpack.Decoder(list[ClosedRound])


def encode_closed_rounds(rounds: list[ClosedRound]) -> bytes:
    """Pack rounds into one payload."""
    return _ENCODER.encode(rounds)


def decode_closed_rounds(payload: bytes) -> list[ClosedRound]:
    """Unpack what `encode_closed_rounds` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours.
    """
    return _DECODER.decode(payload)
