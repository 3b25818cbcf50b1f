"""Rows of `group_health`: one whenever something about a group has changed, and one at its end."""

from __future__ import annotations

import msgspec

from streaming.groups.classic.drift import classic_membership, classic_verdict
from streaming.groups.context import Context
from streaming.groups.health.columns import Membership
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.rows import Totals
from streaming.groups.modern.verdicts import modern_membership, modern_verdict
from streaming.groups.rows import LOG, Finding, GroupHealthRow, partition_column
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, StandingVerdict, mismatch
from streaming.records import GroupObservation
from streaming.times import day_of

__all__ = ["end_health", "write_health"]

_MODERN = frozenset({"consumer", "share", "streams"})

_MOST = 2**63 - 1


def write_health(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    totals: Totals,
    findings: tuple[Finding, ...],
) -> None:
    """Write the group's row if it has changed, or if the last one is a heartbeat old."""
    row = _row(state, observation, context, _membership(state, observation), totals, findings)
    # Any change makes a new row, except in the round itself and the commits since the last row.
    says = msgspec.msgpack.encode(msgspec.structs.replace(row, round=0, round_time=0, event_date=0, commits=0))
    due = observation.elapsed_time - state.health_at >= context.config.heartbeat_ms
    # Each round of an idle group gets a row: its rounds are a heartbeat apart, but may come slightly early.
    if says != state.health or observation.idle or due:
        context.rows.group_health.append(row)
        state.health = says
        state.health_at = observation.elapsed_time
        state.commits = 0


def end_health(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Write the closing row of a group that is no longer listed by the brokers, or no longer watched."""
    word = "Gone" if observation.gone is None else observation.gone.capitalize()
    reason = "the group is gone" if observation.gone != "filtered" else "the group is no longer watched"
    verdict = StandingVerdict(NOT_APPLICABLE, reason, 0)
    ended = Membership(word, verdict, protocol_type=observation.protocol_type)
    context.rows.group_health.append(_row(state, observation, context, ended, Totals(), (), ended=True))


def _membership(state: GroupState, observation: GroupObservation) -> Membership:
    lives_modern = state.modern.key_type is not None
    # The broker may report that a group was upgraded before the log has been read that far.
    if lives_modern or observation.group_type in _MODERN:
        verdict = modern_verdict(state, observation)
    else:
        verdict = classic_verdict(state, observation)
    membership_of = modern_membership if lives_modern else classic_membership
    return membership_of(state, observation, verdict)


def _row(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    membership: Membership,
    totals: Totals,
    findings: tuple[Finding, ...],
    *,
    ended: bool = False,
) -> GroupHealthRow:
    config, verdict = context.config, membership.verdict
    expected = config.expected_strategy(context.group)
    told = None if ended else observation.state
    return GroupHealthRow(
        cluster=config.cluster,
        cluster_id=observation.cluster_id,
        group_id=context.group,
        source=LOG,
        log_partition=partition_column(observation.log_partition),
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=ended,
        state=told if told is not None else membership.state,
        group_type=observation.group_type,
        protocol_type=membership.protocol_type,
        strategy=membership.strategy,
        expected_strategy=expected,
        strategy_mismatch=mismatch(expected, membership.strategy),
        incarnation=membership.incarnation,
        generation=membership.generation,
        last_decision_time=membership.decided,
        members=membership.members,
        verdict=verdict.verdict,
        verdict_reason=verdict.reason,
        drifted_count=verdict.drifted_count,
        findings=findings,
        topics=totals.topics,
        partitions=totals.partitions,
        assigned_partitions=membership.assigned,
        lag_total=_most(totals.total),
        lag_read_committed_total=_most(totals.stable),
        lost_records=_most(sum(sum(of.values()) for of in totals.lost.values())) or 0,
        lag_max=totals.largest,
        lag_unknown=totals.unknown,
        lag_status=lag.STATUSES[totals.status],
        commits=state.commits,
        imbalance=membership.balance[0],
        imbalance_optimal=membership.balance[1],
    )


def _most(total: int | None) -> int | None:
    """A sum limited to the tables' int64; only absurd offsets exceed it."""
    return None if total is None else min(total, _MOST)
