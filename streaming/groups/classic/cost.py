"""The cost of a rebalance: how long its partitions had no owner, as a lower and an upper bound.

The log does not show when one member stops and the next one starts. It shows the end of the join phase and the leader's
sync, which lie inside the pause, and the commits before and after, which contain it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from streaming.groups.classic.membership import Owners
from streaming.groups.classic.state import OpenCost
from streaming.groups.modern.pauses import MOST_MS, commit, complete
from streaming.groups.rows import ChurnRow, Rows
from streaming.groups.state import GroupState
from streaming.records import CommitWindow, MembershipRecord

EAGER: Final = frozenset({"range", "roundrobin", "sticky"})
"""Strategies whose members give up all partitions before they join. An unknown strategy may do either, so it is treated
as cooperative wherever that claims less."""

_COOPERATIVE = frozenset({"cooperative-sticky"})


def rebalance_protocol(record: MembershipRecord) -> str | None:
    """How the members of a rebalance joined: "eager" or "cooperative"; None where the record does not show it.

    A strategy that only eager members can offer was selected, or a member reported partitions that it kept, which eager
    members never do (KIP-429). Members that offer `cooperative-sticky` beside an eager strategy join eagerly, so the
    selected strategy alone does not make a rebalance cooperative.
    """
    if record.protocol in EAGER:
        return "eager"
    if record.protocol in _COOPERATIVE and any(member.owned for member in record.members):
        return "cooperative"
    return None


def stopped_unmoved(
    record: MembershipRecord, was: Owners | None, after: Owners | None, replaced: Collection[str]
) -> int | None:
    """Partitions that kept their owner and stopped all the same, because their members are eager.

    Args:
        record: The decision.
        was: Owners before; None when unknown.
        after: Owners after; None when unknown.
        replaced: Static members that came back under another id: they stopped because they restarted.

    Returns:
        None where owners or protocol are unknown, or where a cooperative member may have lost its partitions.
    """
    protocol = rebalance_protocol(record)
    if protocol is None or was is None or after is None:
        return None
    if protocol == "eager":
        return sum(
            after.get(topic, {}).get(partition) == owner and owner not in replaced
            for topic, partitions in was.items()
            for partition, owner in partitions.items()
        )
    had = {owner for partitions in was.values() for owner in partitions.values()}
    return 0 if all(m.owned for m in record.members if m.member_id in had and m.member_id not in replaced) else None


def open_cost(
    state: GroupState,
    row: ChurnRow,
    was: Owners | None,
    after: Owners | None,
    before: MembershipRecord,
    record: MembershipRecord,
) -> tuple[ChurnRow, OpenCost | None]:
    """Set the lower bound of the time without an owner, and wait for the commits that give the upper bound.

    Eager members give up all partitions before they join, so nobody owns anything at least from the end of the join
    phase (`currentStateTimestamp`) to the leader's sync. Cooperative members keep their partitions, so only those that
    change hands count. For an unknown strategy the lower bound counts only those too, and there is no upper bound.
    """
    if was is None or after is None:
        return row, None
    protocols = {record.protocol, before.protocol}
    eager = protocols <= EAGER
    affected = [
        (topic, partition)
        for topic, partitions in after.items()
        for partition, owner in partitions.items()
        if (first := was.get(topic, {}).get(partition)) is not None and (eager or first != owner)
    ]
    if not affected:
        if was and protocols <= _COOPERATIVE and not row.partitions_pending_handover:
            row = msgspec.structs.replace(
                row, unassigned_partition_seconds_min=0.0, unassigned_partition_seconds_max=0.0
            )
        return row, None
    if record.state_time >= 0:
        gone = min(MOST_MS, max(0, record.record_time - record.state_time)) * len(affected)
        row = msgspec.structs.replace(row, unassigned_partition_seconds_min=round(gone / 1000, 3))
    if not eager and not protocols <= _COOPERATIVE:
        return row, None
    waiting: dict[str, dict[int, int]] = {}
    for topic, partition in affected:
        known = state.partitions.get(topic, {}).get(partition)
        if known is None or known.commit_time < 0:
            return row, None  # without an earlier commit there is no upper bound
        waiting.setdefault(topic, {})[partition] = known.commit_time
    return row, OpenCost(row, waiting)


def commit_after_rebalance(state: GroupState, window: CommitWindow) -> None:
    """Use the first commits after a rebalance for the upper bound of their partitions' time without an owner."""
    if state.modern.pauses is not None:
        topic = state.topics.get(window.topic)
        known = state.partitions.get(window.topic, {}).get(window.partition)
        topic_id = window.topic_id or (topic.topic_id if topic is not None else None)
        commit(state.modern.pauses, topic_id, window, known.commit_time if known is not None else -1)
    cost = state.classic.cost
    if cost is None or not window.commits:
        return
    waiting = cost.waiting.get(window.topic)
    if waiting is None:
        return
    last = waiting.pop(window.partition, None)
    if last is None:
        return
    if not waiting:
        del cost.waiting[window.topic]
    cost.sum_ms = min(MOST_MS, cost.sum_ms + max(0, window.first_commit_time - last))


def close_cost(state: GroupState, rows: Rows) -> None:
    """Write the second revision of the newest rebalance once every partition has a new commit.

    If the next decision comes first, the upper bound stays NULL and there is no second revision.
    """
    told = complete(state.modern.pauses) if state.modern.pauses is not None else None
    if told is not None:
        rows.rebalance_churn.append(told)
    cost = state.classic.cost
    if cost is None or cost.waiting:
        return
    least = cost.row.unassigned_partition_seconds_min or 0.0
    rows.rebalance_churn.append(
        msgspec.structs.replace(
            cost.row, revision=2, unassigned_partition_seconds_max=max(least, round(cost.sum_ms / 1000, 3))
        )
    )
    state.classic.cost = None
