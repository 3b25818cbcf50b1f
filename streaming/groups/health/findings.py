"""Findings about a group at a round: problems that hold now, and since when.

A finding is about the present and a verdict about one decision, so a group can have both. Start times are round or
record times, never those of a local clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.groups.classic.cost import EAGER
from streaming.groups.classic.membership import leader_counts, owners_of, subscribed_topics
from streaming.groups.classic.state import Transfer
from streaming.groups.context import GroupConfig
from streaming.groups.health.columns import Found, some
from streaming.groups.lag.offset_events import findings_of_offsets
from streaming.groups.modern.decisions import reconciling
from streaming.groups.rows import Finding
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, MembershipRecord, TopicObservation

__all__ = ["findings_of"]


def findings_of(
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
    if state.classic.current is not None and state.classic.tombstoned is None and state.modern.key_type is None:
        found.extend(_membership_findings(state, state.classic.current.record, observation, config))
    behind = reconciling(state)
    if behind is not None:
        found.append(behind)
    found.extend(findings_of_offsets(state, now, lost))
    kept = {}
    result = []
    for name, since, detail in found:
        first = min(state.findings.get(name, since), since)
        kept[name] = first
        result.append(Finding(name, first, detail))
    state.findings = kept
    return tuple(result)


def _log_findings(observation: GroupObservation) -> list[Found]:
    if observation.held_since is None:
        return []
    # The page appends "since ..." to the text, so the part that this refers to comes last.
    where = f"partition {observation.log_partition} of the offsets log"
    detail = f"lag is unknown, {_holder(observation)} is open: no progress on {where}"
    return [Found("offsets_blocked", observation.held_since, detail)]


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
) -> list[Found]:
    found: list[Found] = []
    now = state.clock.now
    subscribed = subscribed_topics(record)
    owners = owners_of(record)
    if subscribed is None or owners is None:
        return found
    shown = {t.topic: t for t in observation.topics}
    unseen = sorted(
        t for t in subscribed if config.watches_topic(t) and (t not in shown or shown[t].partitions is None)
    )
    if unseen:
        found.append(Found("topic_not_visible", now, f"subscribed, but not visible: {some(unseen)}"))

    stale: list[tuple[int, str]] = []
    orphaned: list[tuple[int, str]] = []
    counts = leader_counts(record)
    partitions_pending_handover = _still_in_transfer(state.classic.transfer, shown)
    # A cooperative rebalance leaves partitions without an owner for a while: between its two generations, or at a round
    # that sees the first and not yet the second.
    settled = record.protocol in EAGER or now - record.record_time > _rebalance_timeout(record)
    for topic in sorted(subscribed):
        seen = shown.get(topic)
        if seen is None or seen.partitions is None:
            continue
        of_topic = owners.get(topic, {})
        moving = partitions_pending_handover.get(topic, frozenset())
        known_to_leader = max(counts[topic], max(moving, default=-1) + 1)
        grown_at = _grown_at(state, topic, known_to_leader, record) if seen.partitions > known_to_leader else None
        if grown_at is not None:
            text = f"{topic[:200]} ({known_to_leader} to {seen.partitions} partitions)"
            late = now - grown_at >= config.metadata_grace_ms
            (orphaned if late else stale).append((grown_at, text))
        if settled and len(of_topic) < known_to_leader:
            known = range(min(known_to_leader, seen.partitions))
            holes = sum(1 for p in known if p not in of_topic and p not in moving)
            if holes:
                orphaned.append((record.record_time, f"{topic[:200]} ({holes} partitions)"))
    if stale:
        found.append(_finding("stale_metadata", "new partitions that the leader has not seen", stale))

    count = sum(map(len, partitions_pending_handover.values()))
    if count and state.classic.transfer is not None:
        detail = f"{count} partitions given up by one member and not yet given to the next"
        if now - state.classic.transfer.time <= _rebalance_timeout(record):
            found.append(Found("partitions_pending_handover", state.classic.transfer.time, detail))
        else:
            orphaned.append((state.classic.transfer.time, detail))
    if orphaned:
        found.append(_finding("unassigned", "partitions without an owner", orphaned))
    return found


def _finding(name: str, what: str, where: list[tuple[int, str]]) -> Found:
    return Found(name, min(since for since, _ in where), f"{what}: {some([text for _, text in where])}")


def _still_in_transfer(transfer: Transfer | None, shown: dict[str, TopicObservation]) -> dict[str, frozenset[int]]:
    """Partitions pending handover that still exist, by topic."""
    found = {}
    for topic, owners in (transfer.owners if transfer is not None else {}).items():
        seen = shown.get(topic)
        left = frozenset(p for p in owners if seen is not None and seen.partitions is not None and p < seen.partitions)
        if left:
            found[topic] = left
    return found


def _rebalance_timeout(record: MembershipRecord) -> int:
    """Time within which a rebalance of the group completes, ms: the longest rebalance timeout of its members."""
    # Records of version 0 have no rebalance timeout; the coordinator then uses the session timeout.
    return max(
        (m.rebalance_timeout if m.rebalance_timeout >= 0 else m.session_timeout for m in record.members), default=0
    )


def _grown_at(state: GroupState, topic: str, known_to_leader: int, record: MembershipRecord) -> int | None:
    """Time of the first round with more partitions than the leader knew, not before its decision, ms; None if none."""
    known = state.topics.get(topic)
    if known is None:
        return None
    times = [c.first for c in known.counts if c.count > known_to_leader]
    return max(min(times), record.record_time) if times else None
