"""Findings about a share group's deliveries (KIP-932): those that go round and round, stand still, or are given up.

A record that is delivered is locked for `share.record.lock.duration.ms`, and delivered at most
`share.delivery.count.limit` times; after that it is archived. So while members ask for records, the oldest one that is
not done is done after so many locks, unless a member renews its lock (`AcknowledgeType.RENEW`, not yet in 4.1). Without
these settings nobody can say when it should have moved, and a record behind an open transaction may have to wait for
that to end (`share.isolation.level`).
"""

from __future__ import annotations

from typing import Final

from streaming.groups.kind import FindingAtRound, finding_of
from streaming.groups.lag.partitions import offsets_of
from streaming.groups.rows import MOST
from streaming.groups.share.progress import is_behind
from streaming.groups.state import GroupState
from streaming.records import GroupObservation
from streaming.terminal import counted

_SEVERAL: Final = 3
"""Deliveries of a record that is still not done, from which on it goes round: one is a hiccup of a member, with two
another member has failed on it, too."""

_SHOWN_MS: Final = 600_000
"""How long given-up records are shown: as long as other events on offsets (`lag/offset_events.py`)."""


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
    for topic, partitions in sorted(state.partitions.items()):
        for number, known in sorted(partitions.items()):
            share = known.share
            if share is None or not is_behind(share, known.trend.lag):
                continue
            stood = elapsed - share.stands_since
            where = f"{topic[:200]} {number}"
            if share.deliveries >= _SEVERAL and stood > 0:
                circling.append((now, f"{where} ({share.deliveries}{limit} deliveries)"))
            readable = share.front < stable.get((topic, number), 0)
            if patience is not None and stood > patience and readable and observation.state != "Empty":
                stuck.append((now - stood, f"{where} (at offset {share.front:,} for {stood // 1000:,} s)"))
    found = finding_of("redelivering", "records come back and are delivered again, and nothing moves", circling)
    if patience is not None and shares.lock_ms is not None:
        allowed = f"longer than {shares.limit} deliveries of {shares.lock_ms / 1000:g} s take"
        found += finding_of("stuck_deliveries", f"the oldest record that is not done stands {allowed}", stuck)
    return found + given_up


def _given_up(state: GroupState, observation: GroupObservation) -> list[FindingAtRound]:
    now, elapsed = state.clock.now, observation.elapsed_time
    where: list[tuple[int, str]] = []
    for topic, partitions in sorted(state.partitions.items()):
        for number, known in sorted(partitions.items()):
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
