"""The rounds themselves: which closed, which never came, and what they say of the offsets log.

Closed rounds travel under a key of their own, one after the other in the order of their closing records.
"""

from __future__ import annotations

import msgspec

from streaming.groups.facts import GapRow, RoundRow, Rows
from streaming.groups.log_holds import HeldPartition, log_holds
from streaming.groups.times import day_of

__all__ = ["ClosedRound", "RoundsState", "advance_rounds", "decode_closed_rounds", "encode_closed_rounds"]

# A round may be late by a garbage collection or a slow broker; three intervals is what the readers, too, call
# silence (DESIGN.md 1).
_SILENT_INTERVALS = 3


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


class RoundsState(msgspec.Struct, array_like=True):
    """What is remembered of the rounds.

    Attributes:
        time: Time of the newest round; None before the first.
        holds: Partitions of the offsets log that were held back in it, by partition.
    """

    time: int | None = None
    holds: dict[int, HeldPartition] = {}


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


def advance_rounds(state: RoundsState, rounds: list[ClosedRound], cluster: str) -> tuple[RoundsState, Rows]:
    """Write a row of `rounds` per round, one of `gaps` where rounds are missing, and those of `log_holds`."""
    rows = Rows()
    before, holds = state.time, state.holds
    for item in sorted(rounds, key=lambda r: r.round):
        if before is not None and item.time - before > _SILENT_INTERVALS * item.interval_ms:
            rows.gaps.append(
                GapRow(
                    cluster=cluster,
                    kind="rounds",
                    topic=None,
                    partition=None,
                    from_offset=None,
                    to_offset=None,
                    from_time=before,
                    to_time=item.time,
                    reason="no round closed in this time: the probe was down, or could not reach the cluster",
                )
            )
        before = item.time if before is None else max(before, item.time)
        if item.holds is not None:
            holds, changed = log_holds(holds, item.holds, cluster, item.round, item.time)
            rows.log_holds.extend(changed)
        rows.rounds.append(
            RoundRow(
                cluster=cluster,
                cluster_id=item.cluster_id,
                round=item.round,
                round_time=item.time,
                event_date=day_of(item.time),
                closed_time=item.closed_time,
                interval_ms=item.interval_ms,
                probe=item.probe,
                groups=item.groups,
                events=item.events,
                log_partitions=item.log_partitions,
                held_partitions=item.held_partitions,
                log_records=item.log_records,
                elapsed_ms=item.elapsed,
                opened_offset=item.opened_offset,
            )
        )
    return RoundsState(before, holds), rows
