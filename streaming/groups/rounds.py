"""The rounds themselves: which closed, which never came, and what they say of the offsets log.

Closed rounds travel under a key of their own, one after the other in the order of their closing records.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.groups import clock
from streaming.groups.clock import RoundClock
from streaming.groups.facts import GapRow, RoundRow, Rows
from streaming.groups.log_holds import HeldPartition, log_holds
from streaming.groups.times import day_of

__all__ = [
    "LONGEST_INTERVAL_MS",
    "SILENT_INTERVALS",
    "ClosedRound",
    "RoundsState",
    "advance_rounds",
    "decode_closed_rounds",
    "encode_closed_rounds",
]

SILENT_INTERVALS: Final = 3
"""So many of the probe's intervals without a round are a gap: the log is read on without rounds, and a step between two
rounds counts no more. One may be late by a garbage collection or a slow broker. (When people are told of silence is for
the alert rules to say.)"""

LONGEST_INTERVAL_MS: Final = 600_000
"""A probe's interval counts no longer than this: more would hold back membership for days, or make absurd steps."""


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


class RoundsState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What is remembered of the rounds.

    Attributes:
        time: Time of the newest round whose time is believed, ms; None before the first.
        holds: Partitions of the offsets log that were held back in the newest round, by partition.
        clock: What time it is by the rounds.
        jump: Times between which the newest round jumped, as long as it may be a wrong clock; None otherwise.
    """

    time: int | None = None
    holds: dict[int, HeldPartition] = {}
    clock: RoundClock = msgspec.field(default_factory=RoundClock)
    jump: tuple[int, int] | None = None


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
    """Write a row of `rounds` per round, one of `gaps` where rounds are missing, and those of `log_holds`.

    A jump of more than a minute or so is told as a gap with the round after it, which shows that it was none of a
    clock that was wrong for one round. Of the very first round nobody can tell whether its clock was.

    Args:
        state: What is remembered, used up by the call.
        rounds: In any order; they are taken by number.
        cluster: Configured name of the cluster.
    """
    rows = Rows()
    holds = state.holds
    for item in sorted(rounds, key=lambda r: r.round):
        rows.gaps.extend(_gaps(state, item, cluster))
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
    state.holds = holds
    return state, rows


def _gaps(state: RoundsState, item: ClosedRound, cluster: str) -> list[GapRow]:
    """Gaps that a round shows before it; takes in its time."""
    before, jump, was_sure = state.time, state.jump, state.clock.sure
    silent = SILENT_INTERVALS * item.interval_ms
    spans = []
    shift = clock.read(state.clock, item.time, item.elapsed)
    if shift is not None and jump is not None:
        if was_sure and shift.by > 0:
            spans.append(jump)
        before, jump = jump[1], None
    if before is None:
        before = item.time
    if state.clock.other is not None:
        state.time, state.jump = before, (before, item.time)
        return _rows(spans, cluster)
    # (A round between them, whose time was wrong, was there.)
    if item.time - before > silent * (1 if jump is None else 2):
        spans.append((before, item.time))
    state.time, state.jump = max(before, item.time), None
    return _rows(spans, cluster)


def _rows(spans: list[tuple[int, int]], cluster: str) -> list[GapRow]:
    return [
        GapRow(
            cluster=cluster,
            kind="rounds",
            topic=None,
            partition=None,
            from_offset=None,
            to_offset=None,
            from_time=since,
            to_time=until,
            reason="no round closed in this time: the probe was down, or could not reach the cluster",
        )
        for since, until in spans
    ]
