"""Rows of `group_health`, one whenever something about a group has changed and one at its end; and its findings.

A finding is a problem that holds now, with the time since when. A finding is about the present and a verdict about one
decision, so a group can have both. Start times are round or record times, never those of a local clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from streaming.groups.context import Context
from streaming.groups.health.activity import never_committed, storm
from streaming.groups.kind import FindingAtRound, Kind, LagRules, Membership, Ownership
from streaming.groups.lag import oldest_unread
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.totals import NO_END, Totals, findings_of_offsets
from streaming.groups.load.balance import end_member_load, weigh_again, write_member_load
from streaming.groups.rows import MOST, Finding, GroupHealthRow, for_people, known
from streaming.groups.share.deliveries import findings_of_deliveries
from streaming.groups.state import GroupState, LoadState
from streaming.groups.verdicts import NOT_APPLICABLE, UNVERIFIED, StandingVerdict, mismatch
from streaming.records import SHARE, GroupObservation
from streaming.times import day_of


def write_health(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    totals: Totals,
    kind: Kind,
    owners: Ownership,
    rules: LagRules,
) -> None:
    """Write the group's row if it has changed, or if the last one is a heartbeat old; and rows of `member_load`."""
    membership = _too_large(state, observation) or kind.membership(state, observation)
    found = _log_findings(observation)
    if state.members_known:
        found.extend(kind.findings(state, observation, context, owners))
    found.extend(_findings_about_offsets(state, observation, totals, rules))
    findings = _keep_since(state, found)
    if state.load is not None and weigh_again(state.load, observation, owners):
        write_member_load(state.load, observation, context, owners)
    row = _health_row(state, observation, context, membership, totals, findings)
    # Any change makes a new row, except in the round itself and the commits since the last row. A group that is behind
    # gets older with each round: what counts is since when, which stays as long as nothing moves. One that keeps up is
    # behind by what has come since the round before, always something else. When data is lost is such a time, too; the
    # reason why that is not known is no change by itself. Rates change at each end of a window, which is as long as a
    # row's time to be repeated.
    says = msgspec.msgpack.encode(
        msgspec.structs.replace(
            row,
            round=0,
            round_time=0,
            event_date=0,
            commits=0,
            time_behind_seconds_min=None if totals.keeps_up else totals.unread_max,
            time_behind_seconds_max=None if totals.keeps_up else totals.unread_min,
            loses_data_in_seconds_min=None if row.loses_data_in_seconds_min is None else totals.loss.not_before,
            loses_data_in_seconds_max=None if row.loses_data_topic is None else totals.loss.last.end,
            loses_data_reason=None,
            produced_per_second=None,
            consumed_per_second=None,
            load_imbalance=None,
            load_imbalance_optimal_min=None,
            load_imbalance_optimal_max=None,
            hot_partitions=None,
        )
    )
    due = observation.elapsed_time - state.health_at >= context.config.repeated_after_ms(observation)
    if says != state.health or due:
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
    context.rows.group_health.append(_health_row(state, observation, context, ended, Totals(), (), ended=True))
    if state.load is not None:
        end_member_load(state.load, frozenset(), observation, context)


def _too_large(state: GroupState, observation: GroupObservation) -> Membership | None:
    """The membership of a group that is only seen, and has too many members to be asked for; None for any other."""
    if state.seen is None or not state.seen.untold:
        return None
    untold = state.seen.untold
    reason = f"its membership is too large to be asked for in rounds: {untold:,} members"
    verdict = StandingVerdict(UNVERIFIED, reason, 0)
    return Membership("Unknown", verdict, protocol_type=observation.protocol_type, members=untold)


def _health_row(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    membership: Membership,
    totals: Totals,
    findings: tuple[Finding, ...],
    *,
    ended: bool = False,
) -> GroupHealthRow:
    verdict, loss, now = membership.verdict, totals.loss, state.clock.now
    told = None if ended else observation.state
    in_danger = totals.total is not None and not totals.keeps_up
    last = loss.last if in_danger else NO_END
    load = state.load if state.load is not None and not ended else LoadState(-1, -1)
    optimal_min, optimal_max = load.imbalance_optimal or (None, None)
    behind_topic, behind_partition = totals.unread_partition or (None, None)
    behind_most = _seconds_since(totals.unread_min, totals, now)
    safe_for = _seconds_until(loss.not_before, now) if in_danger and loss.open_reason is None else None
    # Positional arguments, in the order of the table's columns: with keywords this took a tenth of a round's time.
    return GroupHealthRow(
        context.config.cluster,
        observation.cluster_id,
        context.group,
        context.source,
        known(observation.log_partition),
        observation.round,
        observation.time,
        day_of(observation.time),
        ended,
        told if told is not None else membership.state,
        observation.group_type,
        membership.protocol_type,
        membership.strategy,
        observation.configured_strategy,
        mismatch(observation.configured_strategy, membership.strategy),
        membership.incarnation,
        membership.generation,
        membership.decided,
        membership.members,
        verdict.verdict,
        verdict.reason,
        verdict.drifted_count,
        findings,
        len(totals.topics),
        totals.partitions,
        membership.assigned,
        _most(totals.total),
        _most(totals.stable),
        _most(sum([sum(of.values()) for of in totals.events.lost.values()])) or 0,
        totals.largest,
        totals.unknown,
        lag.STATUSES[totals.status],
        state.commits if not context.is_seen else None,
        *membership.balance,
        _seconds_since(totals.unread_max, totals, now),
        behind_most if totals.unread_reason is None else None,
        oldest_unread.LAG_UNKNOWN if totals.total is None else totals.unread_reason,
        for_people(behind_topic) if behind_topic is not None else None,
        behind_partition,
        safe_for,
        _seconds_until(last.end, now),
        loss.reason(lag_known=totals.total is not None, keeps_up=totals.keeps_up),
        last.topic,
        last.partition,
        last.retention_seconds,
        loss.by if in_danger else None,
        load.produced_per_second,
        load.consumed_per_second,
        load.imbalance,
        optimal_min,
        optimal_max,
        load.hot_partitions,
        verdict.basis,
    )


def _seconds_since(time: int | None, totals: Totals, now: int) -> float | None:
    """Seconds from a time to a round; 0 if there is no such time, None if no lag is known at all."""
    if totals.total is None:
        return None
    # The oldest unread record may have come while the round was under way.
    if time is not None:
        return max(0, now - time) / 1000
    return 0.0


def _seconds_until(time: int | None, now: int) -> float | None:
    """Seconds from a round to a time; 0 if it has passed, None if there is none."""
    if time is None:
        return None
    return max(0, time - now) / 1000


def _most(total: int | None) -> int | None:
    """A sum limited to the tables' int64; only absurd offsets exceed it."""
    if total is None:
        return None
    return min(total, MOST)


def _findings_about_offsets(
    state: GroupState, observation: GroupObservation, totals: Totals, rules: LagRules
) -> Iterator[FindingAtRound]:
    """The findings about how often the group rebalances, and what it commits or acknowledges."""
    commits = rules.kept_by_members is None
    if commits:
        yield from never_committed(state, observation)
    if (raging := storm(state.rebalances, state.clock.now)) is not None:
        yield raging
    if commits:
        yield from findings_of_offsets(state, state.clock.now, totals.events)
    if observation.group_type == SHARE:
        yield from findings_of_deliveries(state, observation)


def _keep_since(state: GroupState, found: Iterable[FindingAtRound]) -> tuple[Finding, ...]:
    """The findings that are shown at a round, since the first of the rounds that found them; kept in the state."""
    kept = {}
    result = []
    for one in found:
        name = one.kept_as or one.name
        kept[name] = first = min(state.findings.get(name, one.since), one.since)
        if one.shown:
            result.append(Finding(one.name, first, for_people(one.detail)))
    state.findings = kept
    return tuple(result)


def _log_findings(observation: GroupObservation) -> list[FindingAtRound]:
    if observation.held_since is None:
        return []
    # The page appends "since ..." to the text, so the part that this refers to comes last.
    where = f"partition {observation.log_partition} of the offsets log"
    detail = f"lag is unknown, {_holder(observation)} is open: no progress on {where}"
    return [FindingAtRound("offsets_blocked", observation.held_since, detail)]


def _holder(observation: GroupObservation) -> str:
    if observation.held_by is not None:
        return f"transaction {observation.held_by[:200]!r}"
    if observation.held_by_producer is None:
        return "a transaction"
    return f"a transaction of producer {observation.held_by_producer}"
