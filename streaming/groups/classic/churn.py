"""Rebalances: what changed from one decision to the next, and what the change cost.

A decision is a membership record that settles who owns what. Everything here follows from the log alone, so a row is
written as soon as its record is read, and is the same whenever the log is read again. The cost is known only when the
owners have committed again; then the row is written a second time, as a revision.

Source of the rules: `GroupMetadataManager` (Scala 3.9 and Java 4.2); cooperative generations: KIP-429.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from assignors import AssignorError, optimal_moves
from streaming.groups.boundaries import reach_record
from streaming.groups.classic.before import Past, departures, past_of, replaced_members
from streaming.groups.classic.causes import Change, classic_causes
from streaming.groups.classic.cost import (
    CONNECT_EAGER,
    EAGER,
    note_state,
    open_cost,
    rebalance_protocol,
    stopped_unmoved,
)
from streaming.groups.classic.membership import (
    Owners,
    balance_of,
    close_members,
    columns_of,
    group_for_assignors,
    is_connect,
    is_consumer,
    is_streams,
    owners_in,
    owners_of,
    undecodable,
    wanted_topics,
    write_members,
)
from streaming.groups.classic.state import ClassicDecision, Owned, Transfer
from streaming.groups.classic.what_if import by_member, most_partitions
from streaming.groups.context import NEWEST, Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.rows import ChurnRow, ReplacedMember, known
from streaming.groups.state import GroupState
from streaming.groups.verdicts import WAITING_MAX
from streaming.records import GroupObservation, MembershipRecord, MembershipTombstone, each_of, worker_of

_KEPT_MAX: Final = 50_000
"""Partitions times members up to which the state keeps what the members had before: some 100 KB at the very most. A
configured strategy needs it, also where `what_if` is turned off."""


def decide(state: GroupState, record: MembershipRecord, context: Context) -> None:
    """Process a membership record: write its churn and member rows, and let the decision wait for its verdict."""
    reach_record(state, context.rows, record.record, record)
    past = past_of(state, record, context)
    change = _change_of(state, record, past)
    row = _churn_row(state, record, past, change, context)
    state.classic.balance = change.balance
    if not record.members:
        state.uncommitted = None
    if past.decides:
        _begin(state, record, past, change)
    if past.kind == "rebalance" and past.before is not None:
        row, state.classic.cost = open_cost(state, row, change.was, change.after, past.before, record)
    # In a compacted stretch, the record of a group with static members may be a member's return, not a rebalance.
    is_static = any(member.group_instance_id is not None for member in record.members)
    if not past.compacted or past.before is not None or not is_static:
        context.rows.rebalance_churn.append(row)
    state.classic.rounds = None
    write_members(state, record, past.incarnation, context)
    _hand_to_verdicts(state, record, past, change, context)


def _begin(state: GroupState, record: MembershipRecord, past: Past, change: Change) -> None:
    """What begins with a decision. A static member that returns under a new id keeps its partitions, so none of it."""
    if not past.compacted:
        # What compaction has left says nothing about how often a group rebalanced.
        count_rebalance(state, record.record_time)
    state.classic.cost = None
    state.classic.transfer = Transfer(record.record, record.record_time, change.pending) if change.pending else None


def _hand_to_verdicts(
    state: GroupState, record: MembershipRecord, past: Past, change: Change, context: Context
) -> None:
    """Make it the current decision, which waits for the round after it; only the newest of too many wait."""
    classic, decides = state.classic, past.decides
    size = most_partitions(record, change.owned) * len(record.members)
    keeps = decides and not change.pending and size <= max(_KEPT_MAX, context.config.what_if_max_size)
    decision = ClassicDecision(
        record,
        past.kind,
        past.incarnation,
        after_unseen=past.before is None or bool(past.skipped),
        before=change.owned if keeps else None,
        partitions_moved_optimal=change.optimal if decides else None,
        first_half=decides and bool(change.pending),
        after_round=state.clock.now,
    )
    classic.current = decision
    classic.committed = record.record_time
    classic.unreadable = -1
    state.modern.lives, state.modern.ended = False, None
    classic.handed_over = classic.tombstoned = None
    if decides:
        classic.waiting.append(decision)
        if len(classic.waiting) > NEWEST:
            # `what_if` tries no other strategies at the decisions before the newest ones.
            older = classic.waiting[-NEWEST - 1]
            classic.waiting[-NEWEST - 1] = msgspec.structs.replace(older, before=None)
    del classic.waiting[:-WAITING_MAX]


def _change_of(state: GroupState, record: MembershipRecord, past: Past) -> Change:
    before = past.before
    transfer = state.classic.transfer if before is not None else None
    replaced = replaced_members(before, record)
    after = owners_of(record, before)
    was = _owners_before(before, record, transfer, replaced) if past.known else None
    if past.decision is not None and was and _may_have_been_in_transfer(past.decision, record, was, after):
        was = None
    owned = None if was is None else by_member(was)
    # A downgrade happens when the last KIP-848 member leaves; the rebalance that follows at once takes its partitions.
    gives_on = past.kind == "migration" or (past.kind == "rebalance" and record.protocol not in EAGER)
    moves, pending = _compare(was, after, _given_on(record, was or {}) if gives_on else frozenset())
    with of_record(len(state.classic.waiting), decides=past.decides):
        optimal = None if pending else _least_moves(owned, record)
        balance = balance_of(record)
    follows = transfer if transfer is not None and past.kind == "rebalance" else None
    return Change(replaced, was, after, owned, moves, optimal, pending, follows, balance)


def _churn_row(state: GroupState, record: MembershipRecord, past: Past, change: Change, context: Context) -> ChurnRow:
    """The decision's row; of a rebalance, with how its members gave partitions up."""
    returned = {r.new_member_id for r in change.replaced}
    joined = _only_in(record, past.before, returned) if past.known else None
    left = _only_in(past.before, record, {r.old_member_id for r in change.replaced})
    is_rebalance = past.kind == "rebalance"
    counts_stops = is_rebalance and not record.seen
    return ChurnRow(
        **columns_of(record, past.incarnation, context),
        revision=1,
        kind=past.kind,
        previous_generation=past.previous_generation,
        generations_skipped=past.skipped,
        follows=None if change.follows is None else change.follows.record,
        protocol_type=record.protocol_type,
        strategy=record.protocol,
        leader=record.leader,
        members=len(record.members),
        partitions=sum(map(len, owners_in(record).by_partition.values())),
        joined=joined,
        left=left,
        replaced=change.replaced,
        partitions_moved=change.moves,
        partitions_moved_optimal=change.optimal,
        partitions_pending_handover=len(change.pending),
        join_completed_time=known(record.state_time),
        causes=classic_causes(record, past, change, joined, departures(state, past, record, left)),
        rebalance_protocol=rebalance_protocol(record) if is_rebalance else None,
        partitions_stopped_unmoved=stopped_unmoved(record, change.was, change.after, returned)
        if counts_stops
        else None,
        decided_time_min=context.made[0],
        decided_time_max=context.made[1],
    )


def note_round(state: GroupState, observation: GroupObservation, context: Context) -> None:  # noqa: ARG001
    """Note the group's state, and by when the newest decision was made: at the first round whose time is certain."""
    note_state(state, observation)
    current, clock = state.classic.current, state.clock
    if current is not None and current.decided_by < 0 and clock.sure and clock.other is None:
        decided_by = min(current.record.record_time, clock.now)
        state.classic.current = msgspec.structs.replace(current, decided_by=decided_by)


def end_membership(state: GroupState, tombstone: MembershipTombstone, context: Context) -> None:
    """Process a type-2 tombstone: the group was deleted, has expired, or continues under another protocol.

    If no round has shown the group yet, its state is dropped at once, because no observation will come to close it.
    """
    reach_record(state, context.rows, tombstone.record)
    close_members(state, tombstone.record, tombstone.record_time, context)
    if state.classic.current is not None and state.classic.tombstoned is None:
        state.classic.tombstoned = tombstone.record
    state.classic.transfer = state.classic.cost = state.classic.rounds = None
    state.classic.unreadable = -1
    state.rebalances = None
    if state.elapsed < 0:
        state.classic.waiting = []
        left = {
            topic: {partition: known for partition, known in partitions.items() if known.committed >= 0}
            for topic, partitions in state.partitions.items()
        }
        state.partitions = {topic: partitions for topic, partitions in left.items() if partitions}


def _only_in(one: MembershipRecord | None, other: MembershipRecord | None, without: set[str]) -> tuple[str, ...]:
    known = without | {member.member_id for member in (other.members if other is not None else ())}
    return tuple(m.member_id for m in (one.members if one is not None else ()) if m.member_id not in known)


def _owners_before(
    before: MembershipRecord | None,
    record: MembershipRecord,
    transfer: Transfer | None,
    replaced: tuple[ReplacedMember, ...],
) -> Owners | None:
    """Owners before the decision: the first owner for partitions pending handover, the new id for replaced members."""
    # Connect's units and topic partitions are two things, whatever their names.
    if before is None or is_connect(before) != is_connect(record):
        return {}
    owners = owners_of(before, record)
    if owners is None:
        return None
    for partition, owner in (transfer.owners if transfer is not None else {}).items():
        owners.setdefault(partition, owner)
    new = {r.old_member_id: r.new_member_id for r in replaced}
    return {partition: new.get(owner, owner) for partition, owner in owners.items()}


def _may_have_been_in_transfer(
    told: ClassicDecision, record: MembershipRecord, was: Owners, after: Owners | None
) -> bool:
    """Whether the previous decision may have taken its unowned partitions from an owner that was not seen."""
    if record.protocol in EAGER or not told.after_unseen or told.record.generation == 1:
        return False
    return after is not None and not after.keys() <= was.keys()


def _given_on(record: MembershipRecord, was: Owners) -> Collection[tuple[str, int]]:
    """Partitions that are pending handover if they had an owner before and have none now.

    A cooperative leader gives partitions of topics that somebody subscribes to. One of Connect gives what it takes from
    a worker, and while it waits for a worker that is gone (its delay), or could not assign, what that one had, too.
    Otherwise what nobody runs any more was deleted.
    """
    if not is_connect(record):
        wanted = wanted_topics(record)
        return [partition for partition in was if partition[0] in wanted]
    if record.protocol == CONNECT_EAGER:
        return ()
    workers = [worker for worker in map(worker_of, record.members) if worker is not None]
    if any(worker.delay or worker.error for worker in workers):
        return was.keys()
    return {unit for worker in workers for unit in each_of(worker.revoked)}


def _compare(
    was: Owners | None, after: Owners | None, given_on: Collection[tuple[str, int]]
) -> tuple[int | None, Owners]:
    """Count moves, and find the partitions pending handover with their last owners.

    Args:
        was: Owners before; None when unknown.
        after: Owners after; None when unknown.
        given_on: Those that are pending handover if nobody owns them now.
    """
    if was is None or after is None:
        return None, {}
    moves = sum(after.get(partition, owner) != owner for partition, owner in was.items())
    given = frozenset(given_on)
    return moves, {p: owner for p, owner in was.items() if p not in after and p in given}


def _least_moves(owned: Owned | None, record: MembershipRecord) -> int | None:
    if is_streams(record):
        return None  # tasks move, each with all of its partitions, and only where a copy of its state is
    if owned is None or not record.members or not is_consumer(record) or undecodable(record) is not None:
        return None
    try:
        return optimal_moves({member: dict(topics) for member, topics in owned.items()}, group_for_assignors(record))
    except AssignorError:
        return None
