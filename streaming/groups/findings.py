"""Findings of a group at a round: what a person may want to know, and since when it is so.

A finding is about now, a verdict about a decision; both can stand side by side. Since-times are round times or
record times, never a clock of ours.
"""

from __future__ import annotations

from streaming.groups.config import GroupConfig
from streaming.groups.facts import Finding
from streaming.groups.inputs import MembershipRecord, Tick, TopicTick
from streaming.groups.membership import leader_count, owners_of, subscribed_topics
from streaming.groups.state import GroupState

__all__ = ["findings_of"]

# Text of a finding names at most this many topics; the rest is counted.
_NAMED = 3


def findings_of(state: GroupState, tick: Tick, config: GroupConfig) -> tuple[Finding, ...]:
    """Find what holds at this round, and keep since when in the state."""
    found = list(_log_findings(tick))
    if state.current is not None and state.tombstoned is None and state.modern is None:
        found.extend(_membership_findings(state, state.current.record, tick, config))
    kept = {}
    result = []
    for name, since, detail in found:
        first = min(state.findings.get(name, since), since)
        kept[name] = first
        result.append(Finding(name, first, detail))
    state.findings = kept
    return tuple(result)


def _log_findings(tick: Tick) -> list[tuple[str, int, str]]:
    if tick.held_since is None:
        return []
    detail = f"an open transaction holds back partition {tick.log_partition} of the offsets log: lag is unknown"
    return [("log_held_back", tick.held_since, detail)]


def _membership_findings(
    state: GroupState, record: MembershipRecord, tick: Tick, config: GroupConfig
) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    subscribed = subscribed_topics(record)
    owners = owners_of(record)
    if subscribed is None or owners is None:
        return found
    shown = {t.topic: t for t in tick.topics}
    unseen = sorted(
        t for t in subscribed if config.watches_topic(t) and (t not in shown or shown[t].partitions is None)
    )
    if unseen:
        found.append(("topic_unseen", tick.time, f"subscribed, but no such topic was seen: {_some(unseen)}"))

    stale: list[str] = []
    stale_since = tick.time
    orphaned: list[str] = []
    orphaned_since = tick.time
    in_transfer = state.transfer.owners if state.transfer is not None else {}
    for topic in sorted(subscribed):
        seen = shown.get(topic)
        if seen is None or seen.partitions is None:
            continue
        known_to_leader = leader_count(record, topic)
        grown_at = _grown_at(state, seen, known_to_leader, record)
        of_topic = owners.get(topic, {})
        if seen.partitions > known_to_leader:
            text = f"{topic[:200]} ({known_to_leader} to {seen.partitions} partitions)"
            moving = in_transfer.get(topic, {})
            ours = [p for p in range(known_to_leader, seen.partitions) if p not in moving]
            if ours and grown_at is not None:
                if tick.time - grown_at < config.metadata_grace_ms:
                    stale.append(text)
                    stale_since = min(stale_since, grown_at)
                else:
                    orphaned.append(text)
                    orphaned_since = min(orphaned_since, grown_at)
        holes = [
            p
            for p in range(min(known_to_leader, seen.partitions))
            if p not in of_topic and p not in in_transfer.get(topic, {})
        ]
        if holes:
            orphaned.append(f"{topic[:200]} ({len(holes)} partitions)")
            orphaned_since = min(orphaned_since, record.record_time)
    if stale:
        found.append(("stale_metadata", stale_since, f"new partitions that the leader has not seen: {_some(stale)}"))

    count = sum(len(p) for p in in_transfer.values())
    if count and state.transfer is not None:
        timeout = max((m.rebalance_timeout for m in record.members), default=0)
        detail = f"{count} partitions given up by one member and not yet given to the next"
        if tick.time - state.transfer.time <= max(timeout, 0):
            found.append(("in_transfer", state.transfer.time, detail))
        else:
            orphaned.append(detail)
            orphaned_since = min(orphaned_since, state.transfer.time)
    if orphaned:
        found.append(("unassigned", orphaned_since, f"partitions without an owner: {_some(orphaned)}"))
    return found


def _grown_at(state: GroupState, seen: TopicTick, known_to_leader: int, record: MembershipRecord) -> int | None:
    """Time of the first round that showed more partitions than the leader knew, after its decision at the earliest."""
    known = state.topics.get(seen.topic)
    if known is None:
        return None
    times = [c.first for c in known.counts if c.count > known_to_leader]
    return max(min(times), record.record_time) if times else None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name[:250] for name in names[:_NAMED]) + more
