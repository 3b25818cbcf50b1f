"""The cost of a rebalance: how long its partitions had no owner, as a lower and an upper bound.

The log does not show when one member stops and the next one starts; `unowned.py` has what it does show. The next round
shows what arrived meanwhile (`delayed.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from streaming.groups.causes import moved_by_brokers, newest_epoch
from streaming.groups.classic.membership import Owners, generation_column, subscribed_topics
from streaming.groups.classic.state import OpenCost
from streaming.groups.classic.unowned import (
    affected_partitions,
    await_owners,
    end_by_commits,
    end_by_decision,
    is_complete,
    kept,
    least_ms,
    note_commit,
)
from streaming.groups.delayed import (
    HANDOVER_PENDING,
    NO_COMMIT,
    NO_ROUND,
    OWNERS_UNKNOWN,
    SEEN_ONLY,
    STRATEGY_UNKNOWN,
    WAITING_MAX,
    NewestTimes,
    Stop,
    Stopped,
    arrived_before,
    bounds,
    with_delayed,
)
from streaming.groups.modern.pauses import MOST_MS, commit, complete
from streaming.groups.rows import ChurnRow, Rows
from streaming.groups.state import GroupState
from streaming.records import CommitWindow, GroupObservation, MembershipRecord

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
    """Set the lower bound of the time without an owner, and wait for what gives the upper bound (`unowned.py`).

    For an unknown strategy the lower bound counts only partitions with another owner, and there is no upper bound. Nor
    is there one where members gave up a partition before they joined and nobody got it, although somebody subscribes to
    its topic. In the first half of a cooperative rebalance members still own what they are to hand over.

    What arrived meanwhile waits for the next round (`GroupState.stopped`); until then the row says why it is not known.
    None of this is known for a decision that was only seen.
    """
    if record.seen:
        return msgspec.structs.replace(row, records_delayed_reason=SEEN_ONLY), None
    if was is None or after is None:
        return msgspec.structs.replace(row, records_delayed_reason=OWNERS_UNKNOWN), None
    protocols = {record.protocol, before.protocol} if before.members else {record.protocol}
    eager = protocols <= EAGER
    is_known = eager or protocols <= _COOPERATIVE
    affected = affected_partitions(was, after, record, eager=eager, known=is_known)
    unbounded = None if is_known else STRATEGY_UNKNOWN
    if is_known and _leaves_out(state, was, after, record):
        unbounded = HANDOVER_PENDING
    if not affected:
        if was and unbounded is not None:
            return msgspec.structs.replace(row, records_delayed_reason=unbounded), None
        row = _with_bounds(row, 0, 0)
        if row.partitions_pending_handover:
            return msgspec.structs.replace(row, records_delayed_reason=HANDOVER_PENDING), None
        return msgspec.structs.replace(row, records_delayed_min=0, records_delayed_max=0), None
    stops = _stops(state, affected, record) if unbounded is None else None
    row = msgspec.structs.replace(row, records_delayed_reason=unbounded or (NO_COMMIT if stops is None else NO_ROUND))
    rounds = state.classic.rounds
    least = least_ms(record, rounds, eager=eager)
    if least is not None:
        row = _with_bounds(row, least * len(set(affected) - kept(record)), None)
    if rounds is not None and rounds.preparing is not None:
        row = msgspec.structs.replace(row, preparing_since=rounds.preparing.opened)
    if unbounded is not None:
        return row, None
    if stops is not None:
        await_round(state, Stopped(row, stops))
    return row, await_owners(state, row, affected, was, after, before, record, eager=eager)


def _leaves_out(state: GroupState, was: Owners, after: Owners, record: MembershipRecord) -> bool:
    """Whether a partition that had an owner has none now, although it may exist and a member may subscribe to it.

    Members that reported it had it when they joined; what they are to hand over counts for the next decision.
    """
    reported = kept(record)
    subscribed = subscribed_topics(record)
    counts = {topic: known.counts[-1].count for topic, known in state.topics.items()}
    return any(
        partition < counts.get(topic, partition + 1) and (topic, partition) not in reported
        for topic, partitions in was.items()
        if subscribed is None or topic in subscribed
        for partition in partitions.keys() - after.get(topic, {}).keys()
    )


def commit_after_rebalance(state: GroupState, window: CommitWindow) -> None:
    """Use the first commits after a rebalance for the upper bound of their partitions' time without an owner."""
    if state.modern.pauses is not None:
        topic = state.topics.get(window.topic)
        known = state.partitions.get(window.topic, {}).get(window.partition)
        topic_id = window.topic_id or (topic.topic_id if topic is not None else None)
        commit(state.modern.pauses, topic_id, window, known.commit_time if known is not None else -1)
    if state.classic.cost is not None and window.commits:
        note_commit(state.classic.cost, window.topic, window.partition, window.first_commit_time)


def _stops(
    state: GroupState, affected: Collection[tuple[str, int]], record: MembershipRecord
) -> dict[str, dict[int, Stop]] | None:
    """The partitions that a decision gives an owner again; None if one of them has no commit from before."""
    stops: dict[str, dict[int, Stop]] = {}
    newest = NewestTimes(state.round_opened, state.round_closed)
    for topic, partition in affected:
        arrived = arrived_before(state.partitions.get(topic, {}).get(partition), newest)
        if arrived is None:
            return None
        stops.setdefault(topic, {})[partition] = Stop(arrived, record.state_time, record.record_time)
    return stops


def await_round(state: GroupState, stopped: Stopped) -> None:
    """Let a rebalance whose partitions have owners again wait for the group's next round."""
    state.stopped.append(stopped)
    del state.stopped[:-WAITING_MAX]


def await_reason(state: GroupState, row: ChurnRow) -> None:
    """Let a decision whose coordinator has moved wait for the group's next round, which may know why."""
    waits = any(stopped.row.decision == row.decision for stopped in state.stopped)
    if not waits and newest_epoch(row.causes or ()) >= 0:
        await_round(state, Stopped(row, {}))


def close_cost(
    state: GroupState,
    rows: Rows,
    observation: GroupObservation | None = None,
    following: MembershipRecord | None = None,
) -> None:
    """Write a further revision of each rebalance of which more is known now.

    The upper bound of the newest one's time without an owner is known once every member has begun, or the next decision
    has come (`unowned.py`). What arrived meanwhile is known at the group's next round.

    Args:
        state: The group's state, before this round's lag is judged.
        rows: Rows are appended here.
        observation: The round that is judged now; None at other boundaries.
        following: The membership record that is processed next; None at other boundaries.
    """
    told: dict[int, ChurnRow] = {}
    pauses, cost = state.modern.pauses, state.classic.cost
    modern = complete(pauses) if pauses is not None else None
    if modern is not None:
        told[modern.decision] = modern
    if cost is not None:
        end_by_commits(cost, state.classic.rounds.newest if observation and state.classic.rounds else None)
        # A static member that returns writes a record of the same generation.
        if following is not None and generation_column(following) != cost.row.generation:
            end_by_decision(cost, following)
    if cost is not None and is_complete(cost):
        told[cost.row.decision] = _with_upper_bound(cost)
        cost = state.classic.cost = None
    if observation is not None and state.stopped:
        state.stopped = _told_by_round(state, observation, told)
    if not told:
        return
    rows.rebalance_churn.extend(told.values())
    # The next revision of a row begins with what is known now.
    for waiting in (cost, pauses, *state.stopped):
        if waiting is not None and waiting.row is not None:
            waiting.row = told.get(waiting.row.decision, waiting.row)


def _told_by_round(state: GroupState, observation: GroupObservation, told: dict[int, ChurnRow]) -> list[Stopped]:
    """Put the rows that a round completes into `told`.

    Returns:
        What goes on waiting: decisions whose coordinator had moved after the round looked who it was.
    """
    newest = NewestTimes(state.round_opened, state.round_closed)
    waiting: list[Stopped] = []
    for stopped in state.stopped:
        causes = stopped.row.causes or ()
        reasons = moved_by_brokers(causes, observation.coordinator_moves)
        row = told.get(stopped.row.decision)
        if stopped.stops or reasons != causes:
            row = row or msgspec.structs.replace(stopped.row, revision=stopped.row.revision + 1)
            row = msgspec.structs.replace(row, causes=reasons)
            if stopped.stops:
                row = with_delayed(row, bounds(stopped, state.partitions, newest, observation))
            told[row.decision] = row
        if 0 <= observation.coordinator_epoch < newest_epoch(causes):
            waiting.append(Stopped(row or stopped.row, {}))
    return waiting


def _with_upper_bound(cost: OpenCost) -> ChurnRow:
    row = msgspec.structs.replace(cost.row, revision=cost.row.revision + 1)
    return _with_bounds(row, None, cost.sum_ms)


def _with_bounds(row: ChurnRow, least: int | None, most: int | None) -> ChurnRow:
    """The row with these bounds, ms; None leaves one as it is."""
    low = row.unassigned_partition_seconds_min if least is None else round(min(MOST_MS, least) / 1000, 3)
    high = row.unassigned_partition_seconds_max if most is None else max(low or 0.0, round(most / 1000, 3))
    return msgspec.structs.replace(row, unassigned_partition_seconds_min=low, unassigned_partition_seconds_max=high)
