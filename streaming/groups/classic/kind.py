"""Classic groups: a member leads, and one record of a generation says who owns what; with the findings about members.

A rebalance without an end, topics that nobody sees, partitions without an owner, members without a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.groups.classic import churn
from streaming.groups.classic.cost import EAGER
from streaming.groups.classic.drift import judge_again, write_classic_verdicts
from streaming.groups.classic.membership import (
    close_members,
    counts_of,
    idle_threads,
    is_streams,
    owners_in,
    standing_members,
    wanted_topics,
)
from streaming.groups.classic.state import Transfer
from streaming.groups.context import Context, GroupConfig
from streaming.groups.health.activity import idle_members
from streaming.groups.kind import (
    UNKNOWN_TIMEOUT_MS,
    FindingAtRound,
    Kind,
    Membership,
    Ownership,
    finding_of,
    found_before,
    unexplained,
    with_count,
)
from streaming.groups.modern.kind import modern_verdict
from streaming.groups.state import GroupState
from streaming.groups.verdicts import INVARIANT, NOT_APPLICABLE, PENDING, UNVERIFIED, StandingVerdict
from streaming.records import (
    GroupObservation,
    MembershipRecord,
    MembershipTombstone,
    TopicObservation,
    UnreadableMembership,
)
from streaming.terminal import counted

# kafkajs' leader deals the topics to which it subscribes itself (`assigners/roundRobinAssigner`), and no metadata that
# it may see later changes that. (Java's knows the topics of all members.)
_DEALS_OWN_TOPICS = frozenset({"RoundRobinAssigner"})

REBALANCING: Final = {
    "PreparingRebalance": "join again",
    "CompletingRebalance": "get their assignments from the leader",
}
"""States of a classic group without an assignment in force (`ClassicGroupState`), and what its members must do."""

_PHASES = 3
"""A rebalance has two phases with a timeout each, and a group that is kept from its end by members that come and go
begins again. It may take this many timeouts as a whole."""


def classic_findings(
    state: GroupState, observation: GroupObservation, context: Context, owners: Ownership
) -> list[FindingAtRound]:
    """The findings about the members of a classic group, and about what they were given."""
    record = state.live_record()
    judged: list[FindingAtRound] = []
    if record is not None and (owners.are_known or not record.members):
        judged = _membership_findings(state, record, observation, context.config, owners)
    if observation.held_since is not None:
        judged = found_before(judged, state.findings)
    stuck = stuck_rebalance(state, record, observation)
    return [*stuck, *judged, *unexplained(state.classic.verdict, state.clock.now)]


def rebalance_timeout(record: MembershipRecord) -> int:
    """Time within which a rebalance of the group completes, ms: the longest rebalance timeout of its members.

    Where members are only seen, nobody knows their timeouts: then a time that few exceed.
    """
    if record.seen:
        return UNKNOWN_TIMEOUT_MS
    # Records of version 0 have no rebalance timeout; the coordinator then uses the session timeout.
    return max(
        (m.rebalance_timeout if m.rebalance_timeout >= 0 else m.session_timeout for m in record.members), default=0
    )


def stuck_rebalance(
    state: GroupState, record: MembershipRecord | None, observation: GroupObservation
) -> Iterator[FindingAtRound]:
    """A rebalance of a classic group that takes longer than its members' timeouts allow.

    Each rebalance that ends leaves a record. So as long as no new one is there, rounds that show the group rebalancing
    show one and the same rebalance, or one that began again without having ended.

    Args:
        state: The group's state, including this round.
        record: Its live membership; None if it has none.
        observation: The round.
    """
    task = REBALANCING.get(observation.state or "")
    # Without a generation nobody knows the timeouts.
    if task is None or record is None or not record.members:
        return
    limit, elapsed = rebalance_timeout(record), observation.elapsed_time
    # What counts is how long rounds have watched it: after an outage it may be another rebalance. So the beginnings of
    # the whole and of the phase are kept in elapsed time.
    whole, phase = f"rebalance watched since {record.record}", f"{observation.state} watched since {record.record}"
    began, entered = (min(state.findings.get(name, elapsed), elapsed) for name in (whole, phase))
    counted = elapsed
    if observation.held_since is not None:
        # While the offsets log is blocked, nobody can tell whether there is a new record. So nothing new is found, but
        # what was found stays, and so do the beginnings: without a new record it was the same rebalance.
        if whole not in state.findings:
            return
        counted -= max(0, state.clock.now - observation.held_since)
    is_stuck = counted - entered > limit or counted - began > _PHASES * limit
    detail = (
        f"{observation.state}: the members of the last generation ({len(record.members)}) have {limit // 1_000:,} s to "
        f"{task}, and no generation has followed"
    )
    if record.seen:
        detail = (
            f"{observation.state}: rounds have seen no end of it for {limit // 1_000:,} s, and the "
            f"members before it ({len(record.members)}) were to {task}; their timeouts are not known"
        )
    yield FindingAtRound("stuck_rebalance", state.clock.now, detail, f"rebalance since {record.record}", shown=is_stuck)
    for name in (whole, phase):
        yield FindingAtRound("stuck_rebalance", elapsed, detail, name, shown=False)


def _membership_findings(
    state: GroupState, record: MembershipRecord, observation: GroupObservation, config: GroupConfig, owners: Ownership
) -> list[FindingAtRound]:
    now, passed = state.clock.now, state.clock.passed
    subscribed = wanted_topics(record)
    found: list[FindingAtRound] = []
    current = state.classic.current
    decided = current.decided_by if current is not None and current.decided_by >= 0 else record.record_time
    shown = {t.topic: t for t in observation.topics}
    unseen = sorted(
        t for t in subscribed if config.watches_topic(t) and (t not in shown or shown[t].partitions is None)
    )
    found += finding_of("topic_not_visible", "subscribed, but not visible", [(now, topic) for topic in unseen])
    found.extend(_odd_owners(state, record, shown, decided, config))

    # While the offsets log is blocked, there may be a newer generation: nothing becomes graver than it was.
    may_worsen = observation.held_since is None or "unassigned" in state.findings
    stale: list[tuple[int, str]] = []
    orphaned: list[tuple[int, str]] = []
    partitions_pending_handover = _still_in_transfer(state.classic.transfer, shown)
    # A cooperative rebalance leaves partitions without an owner for a while: between its two generations, or at a round
    # that sees the first and not yet the second.
    settled = record.protocol in EAGER or passed - decided > rebalance_timeout(record)
    for topic in sorted(subscribed):
        seen = shown.get(topic)
        if seen is None or seen.partitions is None:
            continue
        of_topic = owners.by_partition.get(topic, {})
        moving = partitions_pending_handover.get(topic, set())
        known_to_leader = max((-1, *of_topic, *moving)) + 1
        grown_at = _grown_at(state, topic, known_to_leader, decided) if seen.partitions > known_to_leader else None
        if grown_at is not None and _deals_without(record, topic):
            orphaned.append((decided, f"{topic[:200]} (the leader does not subscribe to it)"))
        elif grown_at is not None:
            text = f"{topic[:200]} ({known_to_leader} to {seen.partitions} partitions)"
            late = may_worsen and now - grown_at >= config.metadata_grace_ms
            (orphaned if late else stale).append((grown_at, text))
        if settled and may_worsen and len(of_topic) < known_to_leader:
            known = range(min(known_to_leader, seen.partitions))
            holes = sum(1 for p in known if p not in of_topic and p not in moving)
            if holes:
                orphaned.append((decided, with_count(topic, holes)))
    found += finding_of("stale_metadata", "new partitions that the leader has not seen", stale)

    count = sum(map(len, partitions_pending_handover.values()))
    if count and state.classic.transfer is not None:
        detail = f"{counted(count, 'partition')} given up by one member and not yet given to the next"
        given_up = min(state.classic.transfer.time, decided)
        if not may_worsen or passed - given_up <= rebalance_timeout(record):
            found.append(FindingAtRound("partitions_pending_handover", given_up, detail))
        else:
            orphaned.append((given_up, detail))
    found += finding_of("unassigned", "partitions without an owner", orphaned)
    # Who waits for a partition will get it, and one without an owner is the graver finding.
    if settled and not (count or orphaned or stale):
        if is_streams(record):
            found += idle_threads(record, decided)
        else:
            found += idle_members(owners, observation, record.protocol, decided)
    return found


def _deals_without(record: MembershipRecord, topic: str) -> bool:
    """Whether the leader deals its own topics alone, and this is none of them."""
    leads = next((m.topics or () for m in record.members if m.member_id == record.leader), None)
    return record.protocol in _DEALS_OWN_TOPICS and leads is not None and topic not in leads


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
            if is_old and partitions and seen is not None and seen.partitions and max(partitions) >= seen.partitions:
                beyond[topic] = beyond.get(topic, 0) + sum(number >= seen.partitions for number in partitions)
    if not (strange or beyond):
        return
    for name, what, counts in (
        ("not_subscribed", "assigned to members that do not subscribe to the topic", strange),
        ("no_such_partition", "assigned, but the topic has no such partitions", beyond),
    ):
        where = [(decided, with_count(topic, n)) for topic, n in sorted(counts.items()) if n]
        yield from finding_of(name, what, where)


def _still_in_transfer(transfer: Transfer | None, shown: dict[str, TopicObservation]) -> dict[str, set[int]]:
    """Partitions pending handover that still exist, by topic."""
    found: dict[str, set[int]] = {}
    for topic, partition in transfer.owners if transfer is not None else ():
        seen = shown.get(topic)
        if seen is not None and partition < (seen.partitions or 0):
            found.setdefault(topic, set()).add(partition)
    return found


def _grown_at(state: GroupState, topic: str, known_to_leader: int, decided: int) -> int | None:
    """Time of the first round with more partitions than the leader knew, not before its decision, ms; None if none."""
    known = state.topics.get(topic)
    if known is None:
        return None
    times = [c.first for c in known.counts if c.count > known_to_leader]
    if times:
        return max(min(times), decided)
    return None


def _note_unreadable(state: GroupState, item: UnreadableMembership, context: Context) -> None:  # noqa: ARG001
    if state.classic.unreadable < 0:
        state.classic.unreadable = item.record


def _end(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_classic_verdicts(state, observation, context, last=True)
    close_members(state, observation.log_position, observation.time, context)


def _owners(state: GroupState) -> Ownership:
    record = state.live_record()
    if record is None:
        return Ownership()
    return owners_in(record)


def classic_membership(state: GroupState, observation: GroupObservation) -> Membership:
    """The membership of a classic group; without a live record, little more than its verdict."""
    record = state.live_record()
    # The broker may report that a group was upgraded before the log has been read that far.
    is_upgraded = observation.group_type not in {None, "classic"}
    verdict = modern_verdict(state, observation) if is_upgraded else _verdict(state, observation, record)
    current = state.classic.current
    if record is None or current is None:
        return Membership("Empty", verdict, protocol_type=observation.protocol_type)
    counts = counts_of(record)
    return Membership(
        "Stable" if record.members else "Empty",
        verdict,
        protocol_type=record.protocol_type,
        strategy=record.protocol,
        incarnation=current.incarnation,
        generation=record.known_generation,
        decided=record.record_time,
        members=len(record.members),
        assigned=sum(counts) if counts else 0,
        balance=state.classic.balance if counts and state.members_known else (None, None),
    )


def _verdict(state: GroupState, observation: GroupObservation, record: MembershipRecord | None) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    if state.classic.unreadable >= 0:
        reason = (
            f"the membership record at offset {state.classic.unreadable} cannot be read (see quarantine): what was "
            "decided since is not known"
        )
        return StandingVerdict(UNVERIFIED, reason, 0)
    if record is None:
        if observation.state not in {None, "Empty", "Dead"}:
            return StandingVerdict(PENDING, "the group has members, but their assignment has not been seen yet", 0)
        if not state.partitions:
            return StandingVerdict(PENDING, "neither members nor committed offsets of the group have been seen", 0)
        if observation.seen is not None and observation.protocol_type:
            return StandingVerdict(NOT_APPLICABLE, "the group is empty", 0)
        reason = "no membership: offsets are committed without joining the group (assign and commit)"
        return StandingVerdict(NOT_APPLICABLE, reason, 0)
    classic = state.classic
    if classic.waiting or classic.verdict is None:
        return StandingVerdict(PENDING, "no round has judged the newest decision yet", 0)
    return classic.verdict


CLASSIC: Final = Kind(
    records={
        MembershipRecord: churn.decide,
        MembershipTombstone: churn.end_membership,
        UnreadableMembership: _note_unreadable,
    },
    lives=lambda state: not state.modern.lives,
    note_round=churn.note_round,
    write_verdicts=write_classic_verdicts,
    judge_again=judge_again,
    owners=_owners,
    standing_members=standing_members,
    membership=classic_membership,
    findings=classic_findings,
    end=_end,
)
"""Groups of the classic protocol, and those that only commit offsets."""
