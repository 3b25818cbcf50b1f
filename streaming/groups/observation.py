"""One round of one group: lag rows, verdicts that can now be given, the group's health, its end."""

from __future__ import annotations

import msgspec

from streaming.groups.classic.drift import judge_waiting, judged_of, mismatch, verdict_row
from streaming.groups.classic.members import close_members
from streaming.groups.classic.membership import counts_of, is_consumer
from streaming.groups.classic.seen_racks import see_racks
from streaming.groups.config import GroupConfig
from streaming.groups.health.findings import findings_of
from streaming.groups.lag import offset_events
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.rows import Totals, close_partition, lag_rows, live_record
from streaming.groups.lag.time_passed import take_time
from streaming.groups.modern.consumer_group import asked_assignors, state_of
from streaming.groups.modern.members import close_modern_members, write_modern_members
from streaming.groups.modern.verdicts import no_verdict_on, strategy_of, write_modern_verdicts
from streaming.groups.rows import LOG, Finding, GroupHealthRow, Rows, partition_column
from streaming.groups.state import CountSeen, GroupState, TopicState
from streaming.groups.verdict import NOT_APPLICABLE
from streaming.groups.what_if.classic import what_if_of_judged
from streaming.records import SHARE, STREAMS, GroupObservation, MembershipRecord
from streaming.times import day_of

__all__ = ["close_group", "judge_round", "pass_round"]

PENDING = "pending"

_MOST = 2**63 - 1


def judge_round(state: GroupState, observation: GroupObservation, group: str, config: GroupConfig, rows: Rows) -> None:
    """Judge one round: the state has taken in exactly the log records below its position."""
    passed, rounds = take_time(state, observation)
    _see_topics(state, observation, config)
    write_modern_members(state, group, config, rows)
    if _was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, group, config, rows)
    write_modern_verdicts(state, observation, group, config, rows)
    _give_verdicts(state, observation, group, config, rows)
    before = len(rows.lag)
    totals = lag_rows(state, observation, group, config, rows, passed, rounds)
    offset_events.note(state, state.clock.now, rows.lag[before:])
    findings = findings_of(state, observation, config, totals.lost)
    _health_row(state, observation, group, config, rows, totals, findings)


def pass_round(state: GroupState, observation: GroupObservation, group: str, config: GroupConfig, rows: Rows) -> None:
    """Pass over a round of a time that compaction took out of the log: only verdicts on what is there are given."""
    take_time(state, observation)
    _see_topics(state, observation, config)
    _give_verdicts(state, observation, group, config, rows)


def close_group(state: GroupState, observation: GroupObservation, group: str, config: GroupConfig, rows: Rows) -> None:
    """Write the closing rows of a group that the brokers no longer list, or that is no longer watched."""
    take_time(state, observation)
    _give_verdicts(state, observation, group, config, rows, last=True)
    close_members(state, observation.log_position, observation.time, group, config, rows)
    write_modern_members(state, group, config, rows)
    write_modern_verdicts(state, observation, group, config, rows)
    close_modern_members(state, observation.log_position, observation.time, group, config, rows)
    for topic, partitions in sorted(state.partitions.items()):
        for partition, known in sorted(partitions.items()):
            if known.row is not None or known.commits:
                close_partition(state, known, observation, group, topic, partition, config, rows, subscribed=True)
    rows.group_health.append(_health(state, observation, group, config, Totals(), (), ended=True))


def _most(total: int | None) -> int | None:
    """A sum as the tables hold it: int64, which only end offsets that no broker has can exceed."""
    return None if total is None else min(total, _MOST)


def _see_topics(state: GroupState, observation: GroupObservation, config: GroupConfig) -> None:
    """Remember the counts and racks that this round shows; what is older than any verdict may need is dropped."""
    now = state.clock.now
    horizon = now - 2 * config.metadata_grace_ms
    for seen in observation.topics:
        count = seen.partitions or 0
        known = state.topics.get(seen.topic)
        if known is None:
            known = TopicState([CountSeen(count, now, now)], now, seen.topic_id)
            state.topics[seen.topic] = known
            see_racks(known, seen, now, horizon)
            continue
        see_racks(known, seen, now, horizon)
        newest = known.counts[-1]
        if (known.topic_id and seen.topic_id and known.topic_id != seen.topic_id) or count < newest.count:
            # Deleted and made again under the same name: offsets before say nothing of offsets now.
            known.renewed = now
            for partition in state.partitions.get(seen.topic, {}).values():
                partition.forget_rounds()
        if offset_events.was_made_anew(known, seen):
            offset_events.make_anew(known, state.partitions.get(seen.topic, {}).values(), now)
        known.topic_id = seen.topic_id or known.topic_id
        if newest.count == count:
            newest.last = now
            continue
        known.counts.append(CountSeen(count, now, now))
        # The newest one before the horizon was still in force at it, so it stays.
        while len(known.counts) > 2 and known.counts[1].last < horizon:
            del known.counts[0]
    shown = {t.topic for t in observation.topics}
    for topic in [t for t, known in state.topics.items() if t not in shown and known.counts[-1].last < horizon]:
        del state.topics[topic]


def _give_verdicts(
    state: GroupState, observation: GroupObservation, group: str, config: GroupConfig, rows: Rows, *, last: bool = False
) -> None:
    """Judge what can be judged now."""
    now, latest = state.clock.now, max(state.clock.now, observation.time)
    verdicts = judge_waiting(state, now, latest, config, last=last)
    for decision, verdict in zip(state.waiting, verdicts, strict=False):
        rows.drift.append(
            verdict_row(judged_of(decision, group, observation.log_partition), verdict, observation, config)
        )
        state.verdict = verdict.verdict
        state.verdict_reason = verdict.reason
        state.drifted_count = len(verdict.drifted)
    rows.what_if.extend(what_if_of_judged(state, verdicts, group, observation, config))
    state.waiting = state.waiting[len(verdicts) :]


def _health_row(
    state: GroupState,
    observation: GroupObservation,
    group: str,
    config: GroupConfig,
    rows: Rows,
    totals: Totals,
    findings: tuple[Finding, ...],
) -> None:
    row = _health(state, observation, group, config, totals, findings, ended=False)
    # What makes a new row: anything but the round itself and the commits counted since the last row.
    says = msgspec.msgpack.encode(msgspec.structs.replace(row, round=0, round_time=0, event_date=0, commits=0))
    # (The rounds of an idle group are its heartbeats: the next one may come a little early.)
    if says != state.health or observation.idle or observation.steady - state.health_at >= config.heartbeat_ms:
        rows.group_health.append(row)
        state.health = says
        state.health_at = observation.steady
        state.commits = 0


def _health(
    state: GroupState,
    observation: GroupObservation,
    group: str,
    config: GroupConfig,
    totals: Totals,
    findings: tuple[Finding, ...],
    *,
    ended: bool,
) -> GroupHealthRow:
    record = live_record(state) if not ended else None
    verdict, reason = _verdict(state, record, observation, ended=ended)
    counts = counts_of(record) if record is not None and is_consumer(record) else None
    strategy = record.protocol if record is not None else None
    expected = config.expected_strategy(group)
    incarnation = state.current.incarnation if state.current is not None and record is not None else None
    generation = record.generation if record is not None else None
    decided = record.record_time if record is not None else None
    members = len(record.members) if record is not None else 0
    assigned = sum(counts) if counts else 0
    drifted = state.drifted_count
    balance = (state.imbalance, state.imbalance_optimal) if counts else (None, None)
    modern = state.modern_group if state.modern is not None and not ended else None
    if modern is not None:
        drifted = state.modern_verdict[2] if state.modern_verdict is not None else 0
        strategy = strategy_of(asked_assignors(modern))
        incarnation, generation = state.modern_incarnation, state.modern_epoch
        decided = modern.decided.record_time if modern.decided is not None else None
        members = len(modern.members)
        balance = state.modern_balance or balance
        if _was_met_empty(state):
            generation, balance = modern.epoch, (None, None)  # which has no target
        assigned = len({(t, p) for current in modern.currents.values() for t, of in current.partitions for p in of})
    return GroupHealthRow(
        cluster=config.cluster,
        cluster_id=observation.cluster_id,
        group_id=group,
        source=LOG,
        log_partition=partition_column(observation.log_partition),
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=ended,
        state=_state(state, record, observation, ended=ended),
        group_type=observation.group_type,
        protocol_type=record.protocol_type if record is not None else observation.protocol_type,
        strategy=strategy,
        expected_strategy=expected,
        strategy_mismatch=mismatch(expected, strategy),
        incarnation=incarnation,
        generation=generation,
        last_decision_time=decided,
        members=members,
        verdict=verdict,
        verdict_reason=reason,
        drifted_count=drifted if verdict == "drifted" else 0,
        findings=findings,
        topics=totals.topics,
        partitions=totals.partitions,
        assigned_partitions=assigned,
        lag_total=_most(totals.total),
        lag_read_committed_total=_most(totals.stable),
        lost_records=_most(sum(sum(of.values()) for of in totals.lost.values())) or 0,
        lag_max=totals.largest,
        lag_unknown=totals.unknown,
        lag_status=lag.STATUSES[totals.status],
        commits=state.commits,
        imbalance=balance[0],
        imbalance_optimal=balance[1],
    )


def _state(state: GroupState, record: MembershipRecord | None, observation: GroupObservation, *, ended: bool) -> str:
    if ended:
        return "Gone" if observation.gone is None else observation.gone.capitalize()
    if observation.state is not None:
        return observation.state
    if record is None:
        if state.modern is not None:
            return state_of(state.modern_group) if state.modern_group is not None else "Unknown"
        return "Empty"
    return "Stable" if record.members else "Empty"


def _was_met_empty(state: GroupState) -> bool:
    """Whether the last member had left a group that the broker assigns before anything was read of it."""
    group = state.modern_group
    return group is not None and not group.members and group.epoch > (state.modern_epoch or -1)


def _verdict(
    state: GroupState, record: MembershipRecord | None, observation: GroupObservation, *, ended: bool
) -> tuple[str, str | None]:
    if ended:
        return (
            NOT_APPLICABLE,
            "the group is gone" if observation.gone != "filtered" else "the group is not watched any more",
        )
    if state.modern is not None or observation.group_type in {"consumer", "share", "streams"}:
        kind = state.modern_group.group_type if state.modern_group is not None else observation.group_type
        if kind in {SHARE, STREAMS}:
            return NOT_APPLICABLE, no_verdict_on(kind)
        if _was_met_empty(state):
            return NOT_APPLICABLE, "the group is empty"
        if state.modern_verdict is not None:
            return state.modern_verdict[:2]
        return PENDING, "no target assignment of the group was read yet"
    if record is None:
        if observation.state not in {None, "Empty", "Dead"}:
            return PENDING, "the group has members, but no record of its membership was read yet"
        if not state.partitions:
            return PENDING, "neither a membership nor a committed offset of the group is in the log"
        return NOT_APPLICABLE, "no membership: offsets are committed without joining (assign and commit)"
    if state.waiting or state.verdict is None:
        return PENDING, "no round has judged the newest decision yet"
    return state.verdict, state.verdict_reason
