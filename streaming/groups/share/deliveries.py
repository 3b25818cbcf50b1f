"""What a round shows of a share group's deliveries, taken into its partitions, and how lag follows from it (KIP-932).

A partition of a share group has a start offset, below which everything is done, and behind it records that are done
already, in any order. So its **position** is the start offset plus their number: it grows with each record that is
done, as a committed offset does, and lag is the high watermark minus the position (KIP-1226, as
`GroupCoordinatorService.computeShareGroupLagAndBuildResponse` of Kafka 4.3.1 computes it). The start offset that is
kept may be behind the leader's own: it is written with the next change.

Where only coordinators tell, they tell start offset and lag. How much is done behind the start offset then follows for
that moment alone, so the position is the highest start offset so far.

Findings are about deliveries that go round and round, stand still, or are given up. A record that is delivered is
locked for `share.record.lock.duration.ms`, and delivered at most `share.delivery.count.limit` times; after that it is
archived. So while members ask for records, the oldest one that is not done is done after so many locks, unless a member
renews its lock (`AcknowledgeType.RENEW`, not yet in 4.1). Without these settings nobody can say when it should have
moved, and a record behind an open transaction may have to wait for that to end (`share.isolation.level`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from streaming.groups.context import GroupConfig
from streaming.groups.kind import FindingAtRound, finding_of
from streaming.groups.lag.oldest_unread import ROUNDS, Unread
from streaming.groups.lag.partitions import Measured, offsets_of
from streaming.groups.lag.state import MARKER, PartitionState, ShareProgress
from streaming.groups.rows import MOST
from streaming.groups.state import GroupState
from streaming.records import BROKERS, START_NOT_TOLD, GroupObservation, SeenShares, SharePartition
from streaming.terminal import counted

DONE_NOT_TOLD: Final = "done_not_told"
"""Why the upper bound is not known: which records behind the start offset are done is not told."""

_EMPTY: Final = "Empty"

_PLACE: Final = itemgetter(0, 1)


def note_deliveries(state: GroupState, observation: GroupObservation, config: GroupConfig) -> None:
    """Take in what the round shows of a share group, after its topics and before its lag is judged."""
    shares = observation.shares
    if shares is None:
        for partitions in state.partitions.values():
            for known in partitions.values():
                if known.share is not None:
                    known.share.forget_reported()
        return
    told = {
        (topic, one.partition): one
        for topic, partitions in shares.topics.items()
        if config.watches_topic(topic)
        for one in partitions
    }
    for topic, number, known in _partitions(state):
        one = told.get((topic, number))
        if one is not None and one.start == START_NOT_TOLD:
            if known.share is not None:
                known.share.forget_reported()
        elif known.committed >= 0 and (one is None or one.start < 0):
            known.offset_deleted = True
            known.committed, known.of_topic, known.share = -1, None, None
            known.forget_rounds()
    for (topic, number), now in told.items():
        if now.start >= 0:
            known = state.partitions.setdefault(topic, {}).setdefault(number, PartitionState())
            _note(known, now, shares, observation)


def _partitions(state: GroupState) -> Iterator[tuple[str, int, PartitionState]]:
    for topic, partitions in state.partitions.items():
        for number, known in partitions.items():
            yield topic, number, known


def _note(known: PartitionState, one: SharePartition, shares: SeenShares, observation: GroupObservation) -> None:
    # A share group commits nothing: what a classic group of that name has committed is gone.
    before = known.share
    if before is None and known.committed >= 0:
        known.forget_rounds()
        known.committed = -1
    share = known.share = before or ShareProgress()
    position, start = known.position if known.committed >= 0 else -1, known.committed
    done = one.done
    if done < 0:
        done = max(0, position - one.start) if one.start >= start else 0
    if one.start + done < position:
        known.rewound_by = max(known.rewound_by, position - one.start - done)
    moved = (one.start, done, one.deliveries, one.released) != (start, share.done, share.deliveries, share.released)
    # Lag that shrinks shows progress where nothing else does.
    if moved or -1 < one.lag < share.lag:
        known.sampled_commits += 1
    front = one.first if one.first >= 0 else one.start
    if front != share.front or observation.state == _EMPTY:
        share.stands_since = observation.elapsed_time
    _count(share, one, shares)
    known.committed, known.of_topic = one.start, None
    share.done, share.lag, share.front, share.first = done, one.lag, front, one.first
    share.archived, share.released, share.deliveries = one.archived, one.released, one.deliveries
    share.done_told = one.done


def _count(share: ShareProgress, one: SharePartition, shares: SeenShares) -> None:
    """Count the records that were archived since the round before."""
    if shares.source == BROKERS:
        return
    counted = dict(share.archivals) if share.counted_since == shares.since else {}
    for deliveries, records in one.archivals:
        fresh = max(0, records - counted.get(deliveries, 0))
        if shares.limit is not None and deliveries >= shares.limit:
            share.given_up += fresh
            share.given_up_in_round += fresh
        else:
            share.rejected += fresh
    share.counted_since, share.archivals = shares.since, one.archivals


def apply_done(known: PartitionState, share: ShareProgress, measured: Measured) -> None:
    """Correct a partition's lag by what is done behind the start offset."""
    if measured.lag is None or measured.end is None:
        return
    all_there = measured.lag
    if share.lag >= 0:
        measured.lag = min(all_there, share.lag)
    elif share.done_told >= 0:
        measured.lag = max(0, min(all_there, measured.end - known.position))
    else:
        measured.lag, measured.lag_read_committed, measured.lost = None, None, None
        measured.ahead_by, measured.reason = None, "deliveries_not_told"
        return
    if measured.lag_read_committed is not None:
        measured.lag_read_committed = min(measured.lag, measured.lag_read_committed)
    if measured.lost:
        # At least so many: nobody knows which of those below the log start were done.
        measured.lost = max(0, measured.lost - share.done)


def first_not_done(known: PartitionState, share: ShareProgress, measured: Measured) -> tuple[int, bool]:
    """The offset of the oldest record that is not done, or one below it; and whether it is that one."""
    if share.first >= 0:
        return share.first, True
    nothing_done = measured.end is not None and measured.lag == measured.end - known.committed
    return known.committed, nothing_done


def not_before(unread: Unread) -> Unread:
    """The bounds of a record that is at or behind the one of these bounds."""
    return Unread(unread.time_min, None, unread.method or ROUNDS, DONE_NOT_TOLD)


def is_behind(share: ShareProgress, lag: int) -> bool:
    """Whether there are records to deliver: a single offset may be a marker, unless it was delivered before."""
    return lag > MARKER or (lag > 0 and share.released > 0)


_SEVERAL: Final = 3
"""Deliveries of a record that is still not done, from which on it goes round: one is a hiccup of a member, with two
another member has failed on it, too."""

_SHOWN_MS: Final = 600_000
"""How long given-up records are shown: as long as other events on offsets (`lag/totals.py`)."""


def findings_of_deliveries(state: GroupState, observation: GroupObservation) -> list[FindingAtRound]:
    """The findings `redelivering`, `stuck_deliveries` and `records_given_up` of a share group."""
    shares = observation.shares
    now, elapsed = state.clock.now, observation.elapsed_time
    given_up = _given_up(state, observation)
    if shares is None:
        return given_up
    patience = None
    if shares.lock_ms is not None and shares.limit is not None:
        patience = shares.lock_ms * (shares.limit + 1)
    limit = "" if shares.limit is None else f" of at most {shares.limit}"
    stable = {
        (seen.topic, number): offset
        for seen in observation.topics
        for number, offset in enumerate(offsets_of(seen.last_stable_offsets, seen.partitions or 0))
    }
    circling: list[tuple[int, str]] = []
    stuck: list[tuple[int, str]] = []
    for topic, number, known in sorted(_partitions(state), key=_PLACE):
        share = known.share
        if share is None or not is_behind(share, known.trend.lag):
            continue
        stood = elapsed - share.stands_since
        where = f"{topic[:200]} {number}"
        if share.deliveries >= _SEVERAL and stood > 0:
            circling.append((now, f"{where} ({share.deliveries}{limit} deliveries)"))
        readable = share.front < stable.get((topic, number), 0)
        if patience is not None and stood > patience and readable and observation.state != _EMPTY:
            stuck.append((now - stood, f"{where} (at offset {share.front:,} for {stood // 1000:,} s)"))
    found = finding_of("redelivering", "records come back and are delivered again, and nothing moves", circling)
    if patience is not None and shares.lock_ms is not None:
        allowed = f"longer than {shares.limit} deliveries of {shares.lock_ms / 1000:g} s take"
        found += finding_of("stuck_deliveries", f"the oldest record that is not done stands {allowed}", stuck)
    return found + given_up


def _given_up(state: GroupState, observation: GroupObservation) -> list[FindingAtRound]:
    now, elapsed = state.clock.now, observation.elapsed_time
    where: list[tuple[int, str]] = []
    for topic, number, known in sorted(_partitions(state), key=_PLACE):
        share = known.share
        if share is None:
            continue
        if share.given_up_in_round:
            shown = share.given_up_shown if elapsed - share.given_up_at < _SHOWN_MS else 0
            share.given_up_shown = min(MOST, shown + share.given_up_in_round)
            share.given_up_at, share.given_up_in_round = elapsed, 0
        ago = elapsed - share.given_up_at
        if share.given_up_shown and ago < _SHOWN_MS:
            where.append((now - ago, f"{topic[:200]} {number} ({counted(share.given_up_shown, 'record')})"))
    shares = observation.shares
    what = "archived after as many deliveries as the group allows"
    if shares is not None and shares.limit is not None:
        what = f"archived after {shares.limit} deliveries"
    if shares is not None and shares.dead_letters is not None:
        what += f", and written to {shares.dead_letters[:200]}"
    return finding_of("records_given_up", what, where)
