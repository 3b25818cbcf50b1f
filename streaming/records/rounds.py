"""Closed rounds, and the partitions of the offsets log that they found held back."""

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
"""After this many of the probe's intervals without a round there is a gap: the log is read on without rounds, and a
step between two rounds counts no more than this. One round may be late because of a garbage collection or a slow
broker.
(The alert rules have their own threshold for silence.)"""


LONGEST_INTERVAL_MS: Final = 600_000
"""Upper limit for a probe's interval: a longer one would delay membership for days, or allow absurd steps."""


class HeldPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition of the offsets log that one round found held back.

    Attributes:
        partition: Partition of the offsets log.
        since: Time of the first round with the present last stable offset, ms.
        position: Last stable offset: the beginning of the transaction.
        end: High watermark.
        groups: Number of the round's groups in the partition.
        producer_id: Producer of the transaction; None when unknown.
        transactional_id: Its transactional id; None when unknown.
    """

    partition: int
    since: int
    position: int
    end: int
    groups: int
    producer_id: int | None = None
    transactional_id: str | None = None


class ClosedRound(msgspec.Struct, frozen=True, array_like=True):
    """A closed round that a batch contains.

    Attributes:
        round: Number of the round.
        time: The round's time, ms.
        closed_time: Append time of the closing record, ms.
        interval_ms: The probe's interval.
        probe: Id of the probe process.
        cluster_id: Kafka's own cluster id; None when unknown.
        groups: Number of groups with events in the round.
        events: Number of events in the round.
        log_partitions: Number of partitions of the offsets log.
        held_partitions: Number of those whose last stable offset was below their high watermark.
        log_records: Number of log offsets between the previous round and this one, over all partitions.
        holds: Partitions that an open transaction holds back for more than a few rounds; None if the probe does not
            report them.
        elapsed: As in `GroupObservation`, ms.
        opened_offset: Offset of the opening record; less than `round` after the rounds topic was recreated.
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
