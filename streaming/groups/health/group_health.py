"""Rows of `group_health`, one whenever something about a group has changed and one at its end; and its findings.

A finding is a problem that holds now, with the time since when. A finding is about the present and a verdict about one
decision, so a group can have both. Start times are round or record times, never those of a local clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from streaming.groups.classic.cost import EAGER
from streaming.groups.classic.drift import classic_membership, classic_verdict
from streaming.groups.classic.membership import leader_counts, owners_of, wanted_topics
from streaming.groups.classic.state import Transfer
from streaming.groups.context import Context, GroupConfig
from streaming.groups.health.activity import (
    idle_members,
    idle_modern_members,
    never_committed,
    rebalance_timeout,
    reconciling,
    stuck_rebalance,
)
from streaming.groups.health.columns import FindingAtRound, Membership, finding_of, some
from streaming.groups.health.left_out import left_out
from streaming.groups.health.storm import storm
from streaming.groups.lag import oldest_unread
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.offset_events import findings_of_offsets
from streaming.groups.lag.totals import Totals
from streaming.groups.load.balance import weigh_again
from streaming.groups.load.rows import end_member_load, write_member_load
from streaming.groups.modern.verdicts import modern_membership, modern_verdict
from streaming.groups.rows import Finding, GroupHealthRow, partition_column
from streaming.groups.state import GroupState
from streaming.groups.verdicts import INVARIANT, NOT_APPLICABLE, UNEXPLAINED, UNVERIFIED, StandingVerdict, mismatch
from streaming.plurals import counted
from streaming.records import GroupObservation, MembershipRecord, TopicObservation
from streaming.times import day_of

_MODERN = frozenset({"consumer", "share", "streams"})

_MOST = 2**63 - 1

# kafkajs' leader deals the topics to which it subscribes itself (`assigners/roundRobinAssigner`), and no metadata that
# it may see later changes that. (Java's knows the topics of all members.)
_DEALS_OWN_TOPICS = frozenset({"RoundRobinAssigner"})


def write_health(state: GroupState, observation: GroupObservation, context: Context, totals: Totals) -> None:
    """Write the group's row if it has changed, or if the last one is a heartbeat old."""
    findings = _findings_of(state, observation, context.config, totals.lost)
    write_row(state, observation, context, totals, _membership(state, observation), findings)


def write_row(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    totals: Totals,
    membership: Membership,
    findings: tuple[Finding, ...],
) -> None:
    """Write a row with these columns, and those of `member_load`, if it has changed or the last one is too old."""
    if state.load is not None and weigh_again(state, state.load, observation):
        write_member_load(state, state.load, observation, context)
    row = _row(state, observation, context, membership, totals, findings)
    # Any change makes a new row, except in the round itself and the commits since the last row. A group that is behind
    # gets older with each round: what counts is since when, which stays as long as nothing moves. One that keeps up is
    # behind by what has come since the round before, always something else. The pace at which a lag drains follows from
    # the lag and the time. When data is lost counts as the time of that; the reason why it is not known alone does not.
    # Rates change at each end of a window, which is as long as a row's time to be repeated.
    last = totals.loss.last
    says = msgspec.msgpack.encode(
        msgspec.structs.replace(
            row,
            round=0,
            round_time=0,
            event_date=0,
            commits=0,
            time_behind_seconds_min=None if totals.keeps_up else totals.unread_max,
            time_behind_seconds_max=None if totals.keeps_up else totals.unread_min,
            drain_seconds=None,
            loses_data_in_seconds_min=None if row.loses_data_in_seconds_min is None else totals.loss.not_before,
            loses_data_in_seconds_max=None if row.loses_data_topic is None or last is None else last.end,
            loses_data_reason=None,
            produced_per_second=None,
            consumed_per_second=None,
            consumed_per_second_behind=None,
            load_imbalance=None,
            load_imbalance_optimal_min=None,
            load_imbalance_optimal_max=None,
            hot_partitions=None,
        )
    )
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
    if state.load is not None:
        end_member_load(state.load, frozenset(), observation, context)


def _membership(state: GroupState, observation: GroupObservation) -> Membership:
    if state.seen is not None and state.seen.untold:
        untold = state.seen.untold
        reason = f"its membership is too large to be asked for in rounds: {untold:,} members"
        verdict = StandingVerdict(UNVERIFIED, reason, 0)
        return Membership("Unknown", verdict, protocol_type=observation.protocol_type, members=untold)
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
    configured = None if observation.configured is None else observation.configured.strategy
    told = None if ended else observation.state
    oldest, loss = totals.unread_partition, totals.loss
    in_danger = totals.total is not None and not totals.keeps_up
    last = loss.last if in_danger else None
    load = state.load if not ended else None
    optimal = load.imbalance_optimal if load is not None else None
    return GroupHealthRow(
        cluster=config.cluster,
        cluster_id=observation.cluster_id,
        group_id=context.group,
        source=context.source,
        log_partition=partition_column(observation.log_partition),
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=ended,
        state=told if told is not None else membership.state,
        group_type=observation.group_type,
        protocol_type=membership.protocol_type,
        strategy=membership.strategy,
        expected_strategy=configured,
        strategy_mismatch=mismatch(configured, membership.strategy),
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
        commits=state.commits if not context.is_seen else None,
        imbalance=membership.balance[0],
        imbalance_optimal=membership.balance[1],
        time_behind_seconds_min=_seconds_since(totals.unread_max, totals, state.clock.now),
        time_behind_seconds_max=None
        if totals.unread_reason is not None
        else _seconds_since(totals.unread_min, totals, state.clock.now),
        time_behind_reason=oldest_unread.LAG_UNKNOWN if totals.total is None else totals.unread_reason,
        time_behind_topic=oldest[0] if oldest is not None else None,
        time_behind_partition=oldest[1] if oldest is not None else None,
        drain_seconds=totals.drain_seconds,
        loses_data_in_seconds_min=_seconds_until(loss.not_before, state.clock.now)
        if in_danger and loss.open_reason is None
        else None,
        loses_data_in_seconds_max=_seconds_until(last.end, state.clock.now) if last is not None else None,
        loses_data_reason=loss.reason(lag_known=totals.total is not None, keeps_up=totals.keeps_up),
        loses_data_topic=last.topic if last is not None else None,
        loses_data_partition=last.partition if last is not None else None,
        loses_data_retention_seconds=last.retention_ms / 1000 if last is not None else None,
        loses_data_by=loss.by if in_danger else None,
        produced_per_second=load.produced_per_second if load is not None else None,
        consumed_per_second=load.consumed_per_second if load is not None else None,
        consumed_per_second_behind=load.consumed_per_second_behind if load is not None else None,
        load_imbalance=load.imbalance if load is not None else None,
        load_imbalance_optimal_min=optimal[0] if optimal is not None else None,
        load_imbalance_optimal_max=optimal[1] if optimal is not None else None,
        hot_partitions=load.hot_partitions if load is not None else None,
        verdict_basis=verdict.basis,
    )


def _seconds_since(time: int | None, totals: Totals, now: int) -> float | None:
    """Seconds from a time to a round; 0 if there is no such time, None if no lag is known at all."""
    if totals.total is None:
        return None
    # (The oldest unread record may have come while the round was under way.)
    return max(0, now - time) / 1000 if time is not None else 0.0


def _seconds_until(time: int | None, now: int) -> float | None:
    """Seconds from a round to a time; 0 if it has passed, None if there is none."""
    return None if time is None else max(0, time - now) / 1000


def _most(total: int | None) -> int | None:
    """A sum limited to the tables' int64; only absurd offsets exceed it."""
    return None if total is None else min(total, _MOST)


def _findings_of(
    state: GroupState, observation: GroupObservation, config: GroupConfig, lost: Mapping[str, Mapping[int, int]]
) -> tuple[Finding, ...]:
    """The findings at this round; their start times are kept in the state.

    Args:
        state: The group's state, including this round.
        observation: The round.
        config: Settings.
        lost: Number of offsets deleted before the group committed past them, by topic and partition.
    """
    now = state.clock.now
    found = list(_log_findings(observation))
    if state.members_known:
        found.extend(_findings_about_members(state, observation, config))
    verdict = (state.modern if state.modern.key_type is not None else state.classic).verdict
    if verdict is not None and verdict.reason == UNEXPLAINED and state.members_known:
        found.append(FindingAtRound("unexplained_assignment", now, UNEXPLAINED))
    found.extend(never_committed(state, observation))
    if (raging := storm(state.rebalances, now)) is not None:
        found.append(raging)
    found.extend(findings_of_offsets(state, now, lost))
    return keep_since(state, found)


def _findings_about_members(
    state: GroupState, observation: GroupObservation, config: GroupConfig
) -> Iterator[FindingAtRound]:
    """The findings about members, and about what they were given."""
    record = state.live_record()
    yield from stuck_rebalance(state, record, observation)
    judged = _membership_findings(state, record, observation, config) if record is not None else []
    lacking = left_out(state, observation, config)
    judged.extend(lacking)
    behind = reconciling(state)
    if behind is None and not lacking:
        judged.extend(idle_modern_members(state, observation))
    if observation.held_since is not None:
        # There may be records that nobody can read yet: what was found before them stays, and nothing new is found.
        judged = [one for one in judged if (one.kept_as or one.name) in state.findings]
    yield from judged
    if behind is not None:
        yield behind


def keep_since(state: GroupState, found: Iterable[FindingAtRound]) -> tuple[Finding, ...]:
    """The findings that are shown at a round, since the first of the rounds that found them; kept in the state."""
    kept = {}
    result = []
    for one in found:
        name = one.kept_as or one.name
        kept[name] = first = min(state.findings.get(name, one.since), one.since)
        if one.shown:
            result.append(Finding(one.name, first, one.detail))
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
    return (
        "a transaction"
        if observation.held_by_producer is None
        else f"a transaction of producer {observation.held_by_producer}"
    )


def _membership_findings(
    state: GroupState, record: MembershipRecord, observation: GroupObservation, config: GroupConfig
) -> list[FindingAtRound]:
    now, passed = state.clock.now, state.clock.passed
    subscribed = wanted_topics(record)
    owners = owners_of(record)
    if owners is None:
        return []
    found: list[FindingAtRound] = []
    current = state.classic.current
    decided = current.decided_by if current is not None and current.decided_by >= 0 else record.record_time
    shown = {t.topic: t for t in observation.topics}
    unseen = sorted(
        t for t in subscribed if config.watches_topic(t) and (t not in shown or shown[t].partitions is None)
    )
    if unseen:
        found.append(FindingAtRound("topic_not_visible", now, f"subscribed, but not visible: {some(unseen)}"))
    found.extend(_odd_owners(state, record, shown, decided, config))

    # While the offsets log is blocked, there may be a newer generation: nothing becomes graver than it was.
    may_worsen = observation.held_since is None or "unassigned" in state.findings
    stale: list[tuple[int, str]] = []
    orphaned: list[tuple[int, str]] = []
    counts = leader_counts(record)
    partitions_pending_handover = _still_in_transfer(state.classic.transfer, shown)
    # A cooperative rebalance leaves partitions without an owner for a while: between its two generations, or at a round
    # that sees the first and not yet the second.
    settled = record.protocol in EAGER or passed - decided > rebalance_timeout(record)
    for topic in sorted(subscribed):
        seen = shown.get(topic)
        if seen is None or seen.partitions is None:
            continue
        of_topic = owners.get(topic, {})
        moving = partitions_pending_handover.get(topic, frozenset())
        known_to_leader = max(counts[topic], max(moving, default=-1) + 1)
        grown_at = _grown_at(state, topic, known_to_leader, decided) if seen.partitions > known_to_leader else None
        leads = next((m.topics or () for m in record.members if m.member_id == record.leader), None)
        if grown_at is not None and record.protocol in _DEALS_OWN_TOPICS and leads is not None and topic not in leads:
            orphaned.append((decided, f"{topic[:200]} (the leader does not subscribe to it)"))
        elif grown_at is not None:
            text = f"{topic[:200]} ({known_to_leader} to {seen.partitions} partitions)"
            late = may_worsen and now - grown_at >= config.metadata_grace_ms
            (orphaned if late else stale).append((grown_at, text))
        if settled and may_worsen and len(of_topic) < known_to_leader:
            known = range(min(known_to_leader, seen.partitions))
            holes = sum(1 for p in known if p not in of_topic and p not in moving)
            if holes:
                orphaned.append((decided, f"{topic[:200]} ({counted(holes, 'partition')})"))
    if stale:
        found.append(finding_of("stale_metadata", "new partitions that the leader has not seen", stale))

    count = sum(map(len, partitions_pending_handover.values()))
    if count and state.classic.transfer is not None:
        detail = f"{counted(count, 'partition')} given up by one member and not yet given to the next"
        given_up = min(state.classic.transfer.time, decided)
        if not may_worsen or passed - given_up <= rebalance_timeout(record):
            found.append(FindingAtRound("partitions_pending_handover", given_up, detail))
        else:
            orphaned.append((given_up, detail))
    if orphaned:
        found.append(finding_of("unassigned", "partitions without an owner", orphaned))
    # (Who waits for a partition will get it, and one without an owner is the graver finding.)
    if settled and not (count or orphaned or stale):
        found.extend(idle_members(record, shown, decided))
    return found


def _odd_owners(
    state: GroupState,
    record: MembershipRecord,
    shown: Mapping[str, TopicObservation],
    decided: int,
    config: GroupConfig,
) -> Iterator[FindingAtRound]:
    """Members that own what they do not subscribe to, or what does not exist, as far as the verdict is not about that.

    Such partitions are usually read by nobody. Some leaders decide so: kafkajs' deals its own topics to all members,
    librdkafka's leaves some partitions with their owners.
    """
    verdict = state.classic.verdict
    if verdict is not None and verdict.basis == INVARIANT:
        return
    strange: dict[str, int] = {}
    beyond: dict[str, int] = {}
    is_old = state.clock.passed - decided > config.metadata_grace_ms
    for member in record.members:
        for topic, partitions in member.assigned or ():
            if topic not in (member.topics or ()):
                strange[topic] = strange.get(topic, 0) + len(partitions)
            seen = shown.get(topic)
            if is_old and seen is not None and seen.partitions:
                beyond[topic] = beyond.get(topic, 0) + sum(number >= seen.partitions for number in partitions)
    for name, what, counts in (
        ("not_subscribed", "assigned to members that do not subscribe to the topic", strange),
        ("no_such_partition", "assigned, but the topic has no such partitions", beyond),
    ):
        where = [(decided, f"{topic[:200]} ({counted(n, 'partition')})") for topic, n in sorted(counts.items()) if n]
        if where:
            yield finding_of(name, what, where)


def _still_in_transfer(transfer: Transfer | None, shown: dict[str, TopicObservation]) -> dict[str, frozenset[int]]:
    """Partitions pending handover that still exist, by topic."""
    found = {}
    for topic, owners in (transfer.owners if transfer is not None else {}).items():
        seen = shown.get(topic)
        left = frozenset(p for p in owners if seen is not None and seen.partitions is not None and p < seen.partitions)
        if left:
            found[topic] = left
    return found


def _grown_at(state: GroupState, topic: str, known_to_leader: int, decided: int) -> int | None:
    """Time of the first round with more partitions than the leader knew, not before its decision, ms; None if none."""
    known = state.topics.get(topic)
    if known is None:
        return None
    times = [c.first for c in known.counts if c.count > known_to_leader]
    return max(min(times), decided) if times else None
