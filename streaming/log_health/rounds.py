"""The rounds themselves: closed and missing ones, and their observations of the offsets log.

Closed rounds have their own key, and come in the order of their closing records.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streaming.groups import GapRow, OpenTransactionRow, RoundBroker, RoundRow, Rows
from streaming.records import SILENT_INTERVALS, Broker, ClosedRound, HeldPartition, rest_interval_ms
from streaming.times import RoundClock, day_of, read_clock


class RoundsState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """State of the rounds.

    Attributes:
        time: Time of the newest round whose time is trusted, ms; None before the first.
        holds: Partitions of the offsets log that were held back in the newest round, by partition.
        clock: The time by the rounds.
        jump: Times before and after the newest round's jump, while a wrong clock may be its cause; else None.
    """

    time: int | None = None
    holds: dict[int, HeldPartition] = {}
    clock: RoundClock = msgspec.field(default_factory=RoundClock)
    jump: tuple[int, int] | None = None


def advance_rounds(state: RoundsState, rounds: list[ClosedRound], cluster: str) -> tuple[RoundsState, Rows]:
    """Write a row of `rounds` per round, one of `gaps` where rounds are missing, and those of `open_transactions`.

    A jump of more than a minute or so is written as a gap with the round after it, which shows that the clock was not
    just wrong for one round. For the very first round this cannot be known.

    Args:
        state: State so far; modified by the call.
        rounds: In any order; they are processed by number.
        cluster: Configured name of the cluster.
    """
    rows = Rows()
    for item in sorted(rounds, key=lambda r: r.round):
        newest = state.time
        rows.gaps.extend(_gaps(state, item, cluster))
        is_certain = state.clock.other is None
        is_new_day = newest is not None and is_certain and day_of(newest) != day_of(item.closed.time)
        rows.open_transactions.extend(_open_transactions(state, item, cluster, is_new_day=is_new_day))
        rows.rounds.append(_round_row(item, cluster))
    return state, rows


def _round_row(item: ClosedRound, cluster: str) -> RoundRow:
    closed, brokers = item.closed, item.closed.brokers
    joined = () if brokers is None else [broker for broker in brokers.up if broker.since == closed.time]
    return RoundRow(
        cluster=cluster,
        cluster_id=closed.cluster_id,
        round=item.round,
        round_time=closed.time,
        event_date=day_of(closed.time),
        closed_time=item.closed_time,
        interval_ms=rest_interval_ms(closed.interval_ms) if item.rests else closed.interval_ms,
        probe=closed.probe,
        groups=closed.groups,
        events=closed.written,
        log_partitions=len(closed.log),
        held_partitions=sum(end > stable for stable, end in zip(closed.log, closed.log_end, strict=True)),
        log_records=item.log_records,
        elapsed_ms=item.elapsed,
        opened_offset=closed.round,
        offsets_retention_minutes=closed.offsets_retention_minutes,
        source=closed.source,
        brokers=None if brokers is None else len(brokers.up),
        brokers_gone=None if brokers is None else _brokers(brokers.gone, closed.time),
        brokers_joined=None if brokers is None else _brokers(joined, closed.time),
    )


def _brokers(brokers: Iterable[Broker], time: int) -> tuple[RoundBroker, ...]:
    return tuple([RoundBroker(b.node, b.host, b.rack, time if b.since is None else b.since) for b in brokers])


def _open_transactions(
    state: RoundsState, item: ClosedRound, cluster: str, *, is_new_day: bool
) -> list[OpenTransactionRow]:
    """Update the state's holds with a round; the holds go on where its log was not read.

    Returns:
        A row for each partition that changed: the hold began or ended, its producer or transactional id became known,
        or the number of groups changed. The number of waiting records grows all the time and causes no row. Once a day
        the others have one too, as a repetition, so that the newest row of each lies in the last days.
    """
    before, held = state.holds, item.closed.holds
    now = before if held is None else {hold.partition: hold for hold in held}
    rows = [
        _held_row(cluster, item, hold, is_held=False) for _, hold in sorted(before.items()) if hold.partition not in now
    ]
    for _, hold in sorted(now.items()):
        is_news = _is_news(before.get(hold.partition), hold)
        if is_news or is_new_day:
            row = _held_row(cluster, item, hold, is_held=True)
            rows.append(row if is_news else msgspec.structs.replace(row, repeat=item.round))
    state.holds = now
    return rows


def _is_news(known: HeldPartition | None, hold: HeldPartition) -> bool:
    return known is None or msgspec.structs.replace(hold, end=known.end) != known


def _held_row(cluster: str, item: ClosedRound, hold: HeldPartition, *, is_held: bool) -> OpenTransactionRow:
    return OpenTransactionRow(
        cluster=cluster,
        log_partition=hold.partition,
        round=item.round,
        round_time=item.closed.time,
        event_date=day_of(item.closed.time),
        held=is_held,
        held_since=hold.since,
        held_offset=hold.position,
        waiting=hold.end - hold.position if is_held else 0,
        groups=hold.groups if is_held else 0,
        producer_id=hold.producer_id,
        transactional_id=hold.transactional_id,
    )


def _gaps(state: RoundsState, item: ClosedRound, cluster: str) -> list[GapRow]:
    """Gaps before a round; updates the state with its time."""
    time = item.closed.time
    before, jump, was_sure = state.time, state.jump, state.clock.sure
    silent = SILENT_INTERVALS * item.closed.interval_ms
    spans = []
    shift = read_clock(state.clock, time, item.elapsed)
    if shift is not None and jump is not None:
        if was_sure and shift.by > 0:
            spans.append(jump)
        before, jump = jump[1], None
    if before is None:
        before = time
    if state.clock.other is not None:
        state.time, state.jump = before, (before, time)
        return _gap_rows(spans, cluster)
    # With a jump, a round with a wrong time lies between the two.
    if time - before > silent * (1 if jump is None else 2):
        spans.append((before, time))
    state.time, state.jump = max(before, time), None
    return _gap_rows(spans, cluster)


def _gap_rows(spans: list[tuple[int, int]], cluster: str) -> list[GapRow]:
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
