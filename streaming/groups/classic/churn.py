"""Rebalances: what changed from one decision to the next, and what the change cost.

A decision is a membership record that settles who owns what. Everything here follows from the log alone, so a row is
written as soon as its record is read, and is the same whenever the log is read again. The cost is known only when the
owners have committed again; then the row is written a second time, as a revision.

Source of the rules: `GroupMetadataManager` (Scala 3.9 and Java 4.2); cooperative generations: KIP-429.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from assignors import AssignorError, optimal_moves
from streaming.groups.budget import of_record
from streaming.groups.classic.causes import Decided, classic_causes, topics_shown
from streaming.groups.classic.cost import EAGER, await_reason, open_cost, rebalance_protocol, stopped_unmoved
from streaming.groups.classic.membership import (
    Owners,
    balance_of,
    close_members,
    generation_column,
    group_of,
    owners_of,
    subscribed_topics,
    write_members,
)
from streaming.groups.classic.state import ClassicDecision, Owned, Transfer
from streaming.groups.compaction import is_compacted
from streaming.groups.context import Context
from streaming.groups.health.storm import count_rebalance
from streaming.groups.rows import ChurnRow, ReplacedMember, partition_column
from streaming.groups.state import GroupState
from streaming.groups.verdicts import WAITING_MAX, drop_oldest, generations_between
from streaming.groups.what_if.classic import await_verdict, by_member
from streaming.records import MembershipRecord, MembershipTombstone
from streaming.times import day_of


def decide(state: GroupState, record: MembershipRecord, context: Context) -> None:
    """Process a membership record: write its churn and member rows, and let the decision wait for its verdict."""
    classic = state.classic
    past = _past_of(state, record, context)
    before = past.before
    transfer = classic.transfer if before is not None else None
    replaced = _replaced(before, record)
    after = owners_of(record)
    was = _owners_before(before, transfer, replaced) if past.known else None
    if past.decision is not None and was and _may_have_been_in_transfer(past.decision, record, was, after):
        was = None
    owned = None if was is None else by_member(was)
    # A downgrade happens when the last KIP-848 member leaves; the rebalance that follows at once takes its partitions.
    gives_on = past.kind == "migration" or (past.kind == "rebalance" and record.protocol not in EAGER)
    moves, pending = _compare(was, after, subscribed_topics(record) if gives_on else None)
    with of_record(len(classic.waiting), decides=past.decides):
        optimal = None if pending else _least_moves(owned, record)
        classic.balance = balance_of(record)
    follows = transfer if transfer is not None and past.kind == "rebalance" else None
    row = _churn_row(record, past, replaced, after, _Moved(moves, optimal, pending, follows), context)
    shown = topics_shown(state, record, pending)
    decided = Decided(
        kind=past.kind,
        record=record,
        before=before,
        after_return=past.decision is not None and past.decision.kind == "static_replacement",
        known=past.known,
        joined=row.joined,
        left=row.left,
        replaced=replaced,
        skipped=past.skipped,
        follows={} if follows is None else follows.owners,
        pending=pending,
        shown=classic.shown,
        now=shown,
        topics=state.topics,
    )
    row = msgspec.structs.replace(row, causes=classic_causes(decided))
    if past.kind == "rebalance":
        returned = {r.new_member_id for r in replaced}
        row = msgspec.structs.replace(
            row,
            rebalance_protocol=rebalance_protocol(record),
            partitions_stopped_unmoved=None if record.seen else stopped_unmoved(record, was, after, returned),
        )
    if not record.members:
        state.uncommitted = None
    if past.decides:
        if not past.compacted:
            # (What compaction has left says nothing about how often a group rebalanced.)
            count_rebalance(state, record.record_time)
        classic.shown = shown
        # A static member that returns under a new id keeps its partitions, so the cost and handover stay open then.
        classic.cost = None
        classic.transfer = Transfer(record.record, record.record_time, pending) if pending else None
    if past.kind == "rebalance" and before is not None:
        row, classic.cost = open_cost(state, row, was, after, before, record)
    # In a compacted stretch, the record of a group with static members may be a member's return, not a rebalance.
    if not past.compacted or before is not None or not any(m.group_instance_id is not None for m in record.members):
        context.rows.rebalance_churn.append(row)
        await_reason(state, row)
    write_members(state, record, past.incarnation, context)

    unseen = before is None or bool(past.skipped)
    decision = ClassicDecision(record, past.kind, past.incarnation, after_unseen=unseen)
    classic.current = decision
    state.modern.key_type = state.modern.ended = None
    classic.handed_over = classic.tombstoned = None
    if past.decides:
        await_verdict(classic.waiting, decision, owned, optimal, context.config, first_half=bool(pending))
    if len(classic.waiting) > WAITING_MAX:
        at = len(classic.waiting) - WAITING_MAX - 1
        oldest = classic.waiting[at]
        emptied = msgspec.structs.replace(oldest.record, members=())
        classic.waiting[at] = ClassicDecision(emptied, "dropped", oldest.incarnation)
        drop_oldest(classic.waiting)


@dataclass(frozen=True, slots=True)
class _Past:
    """What the log says about the time before a membership record.

    Attributes:
        kind: Kind of the record's churn row.
        incarnation: The group's incarnation.
        decision: The previous decision of the same incarnation; None if there is none, or it is unknown.
        before: The previous decision's record; None also if records between the two may be missing.
        known: Whether the previous owners are known; a group that began with this record had none.
        previous_generation: Generation of the previous decision; None if there is none.
        skipped: Number of generations between the two; None if there is no previous decision.
        compacted: The record lies in a compacted stretch of the log.
    """

    kind: str
    incarnation: int
    decision: ClassicDecision | None
    before: MembershipRecord | None
    known: bool
    previous_generation: int | None
    skipped: int | None
    compacted: bool

    @property
    def decides(self) -> bool:
        """Whether the record is a decision; a static member's return is not, and leaves the previous one to judge."""
        return self.kind != "static_replacement"


def _past_of(state: GroupState, record: MembershipRecord, context: Context) -> _Past:
    if record.seen:
        return _seen_past_of(state, record, context)
    classic, modern = state.classic, state.modern
    # A downgrade appends the modern group's tombstones, that of its metadata last, and the type-2 record at once. A new
    # group of the same name that happens to start at that offset has no members yet.
    migrated = bool(record.members) and (modern.key_type is not None or modern.ended == record.record - 1)
    # After a downgrade the previous decision is the newest one under KIP-848, not the last classic one.
    handed_over = classic.handed_over if migrated else None
    previous = handed_over or classic.current
    continues = previous is not None and (
        migrated or (classic.tombstoned is None and _continues(previous.record, record))
    )
    told = handed_over if migrated else previous if continues else None
    before = told.record if told is not None else None
    previous_generation = before.generation if before is not None else None
    kind = _kind(before, record, migrated=migrated)
    compacted = is_compacted(state, record.record)
    if compacted and before is not None and before.generation != record.generation:
        before = None  # records between the two may be missing, so who joined or left is unknown
    return _Past(
        kind=kind,
        incarnation=previous.incarnation
        if previous is not None and continues
        else context.config.incarnations.of(context.group, record.record),
        decision=told,
        before=before,
        # When compaction left this as the first record of an older group, the previous owners are unknown.
        known=before is not None or (record.generation <= 1 and not migrated and not compacted),
        previous_generation=previous_generation,
        skipped=None if previous_generation is None else generations_between(previous_generation, record.generation),
        compacted=compacted,
    )


def _seen_past_of(state: GroupState, record: MembershipRecord, context: Context) -> _Past:
    """The same for a membership that was only seen: generations between two looks leave no trace."""
    classic, modern = state.classic, state.modern
    migrated = bool(record.members) and modern.ended == record.record - 1
    previous = (classic.handed_over if migrated else None) or classic.current
    continues = previous is not None and (migrated or classic.tombstoned is None)
    told = classic.handed_over if migrated else previous if continues else None
    before = told.record if told is not None else None
    kind = "migration" if migrated else "rebalance" if record.members else "became_empty"
    if kind == "rebalance" and before is not None and _only_returned(before, record):
        kind = "static_replacement"
    return _Past(
        kind=kind,
        incarnation=previous.incarnation
        if previous is not None and continues
        else context.config.incarnations.of(context.group, record.record),
        decision=told,
        before=before,
        known=before is not None or (state.seen is not None and state.seen.empty),
        previous_generation=before.generation if before is not None and not before.seen else None,
        skipped=None,
        compacted=False,
    )


def _only_returned(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether all that has changed is that static members came back under other ids, with their partitions."""

    def fixed(members: MembershipRecord) -> dict[str, tuple[object, ...]]:
        return {
            m.group_instance_id or m.member_id: (m.group_instance_id is None, m.topics, m.assigned)
            for m in members.members
        }

    is_same = before.protocol == record.protocol and fixed(before) == fixed(record)
    return is_same and bool(_replaced(before, record))


@dataclass(frozen=True, slots=True)
class _Moved:
    """Partitions that a decision moved, the fewest possible, those pending handover, and the decision it completes."""

    partitions: int | None
    optimal: int | None
    pending: Owners
    follows: Transfer | None


def _churn_row(
    record: MembershipRecord,
    past: _Past,
    replaced: tuple[ReplacedMember, ...],
    after: Owners | None,
    moved: _Moved,
    context: Context,
) -> ChurnRow:
    joined = _only_in(record, past.before, {r.new_member_id for r in replaced}) if past.known else None
    return ChurnRow(
        cluster=context.config.cluster,
        group_id=context.group,
        decision=record.record,
        source=context.source,
        log_partition=partition_column(record.log_partition),
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        revision=1,
        kind=past.kind,
        incarnation=past.incarnation,
        generation=generation_column(record),
        previous_generation=past.previous_generation,
        generations_skipped=past.skipped,
        follows=None if moved.follows is None else moved.follows.record,
        protocol_type=record.protocol_type,
        strategy=record.protocol,
        leader=record.leader,
        members=len(record.members),
        partitions=sum(len(p) for p in after.values()) if after is not None else 0,
        joined=joined,
        left=_only_in(past.before, record, {r.old_member_id for r in replaced}),
        replaced=replaced,
        partitions_moved=moved.partitions,
        partitions_moved_optimal=moved.optimal,
        partitions_pending_handover=sum(len(p) for p in moved.pending.values()),
        join_completed_time=record.state_time if record.state_time >= 0 else None,
        unassigned_partition_seconds_min=None,
        unassigned_partition_seconds_max=None,
        decided_time_min=context.made[0],
        decided_time_max=context.made[1],
    )


def _kind(before: MembershipRecord | None, record: MembershipRecord, *, migrated: bool) -> str:
    if migrated:
        return "migration"
    if not record.members:
        return "created" if before is None and record.generation == 0 else "became_empty"
    return "static_replacement" if before is not None and record.generation == before.generation else "rebalance"


def end_membership(state: GroupState, tombstone: MembershipTombstone, context: Context) -> None:
    """Process a type-2 tombstone: the group was deleted, has expired, or continues under another protocol.

    If no round has shown the group yet, its state is dropped at once, because no observation will come to close it.
    """
    close_members(state, tombstone.record, tombstone.record_time, context)
    if state.classic.current is not None and state.classic.tombstoned is None:
        state.classic.tombstoned = tombstone.record
    state.classic.transfer = None
    state.classic.cost = None
    state.rebalances = None
    if state.elapsed < 0:
        state.classic.waiting = []
        state.stopped = []
        for topic, partitions in list(state.partitions.items()):
            left = {partition: known for partition, known in partitions.items() if known.committed >= 0}
            state.partitions[topic] = left
            if not left:
                del state.partitions[topic]


def _continues(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether a record continues the previous one's group; False if the group was created again in between."""
    if record.generation > before.generation:
        return True
    if record.generation < before.generation:
        return False
    # The same generation is written again when a static member is replaced. With other members it is another group of
    # that name, deleted and created again in between.
    ours = {m.group_instance_id or m.member_id for m in before.members}
    theirs = {m.group_instance_id or m.member_id for m in record.members}
    return ours == theirs


def _replaced(before: MembershipRecord | None, record: MembershipRecord) -> tuple[ReplacedMember, ...]:
    if before is None:
        return ()
    ids = {m.group_instance_id: m.member_id for m in before.members if m.group_instance_id is not None}
    return tuple(
        ReplacedMember(m.group_instance_id, ids[m.group_instance_id], m.member_id)
        for m in record.members
        if m.group_instance_id is not None and ids.get(m.group_instance_id, m.member_id) != m.member_id
    )


def _only_in(one: MembershipRecord | None, other: MembershipRecord | None, without: set[str]) -> tuple[str, ...]:
    if one is None:
        return ()
    known = {m.member_id for m in other.members} if other is not None else set()
    return tuple(m.member_id for m in one.members if m.member_id not in known and m.member_id not in without)


def _owners_before(
    before: MembershipRecord | None, transfer: Transfer | None, replaced: tuple[ReplacedMember, ...]
) -> Owners | None:
    """Owners before the decision: the first owner for partitions pending handover, the new id for replaced members."""
    if before is None:
        return {}
    owners = owners_of(before)
    if owners is None:
        return None
    if transfer is not None:
        for topic, partitions in transfer.owners.items():
            of_topic = owners.setdefault(topic, {})
            for partition, owner in partitions.items():
                of_topic.setdefault(partition, owner)
    if replaced:
        new = {r.old_member_id: r.new_member_id for r in replaced}
        owners = {t: {p: new.get(m, m) for p, m in of_topic.items()} for t, of_topic in owners.items()}
    return owners


def _may_have_been_in_transfer(
    told: ClassicDecision, record: MembershipRecord, was: Owners, after: Owners | None
) -> bool:
    """Whether the previous decision may have taken its unowned partitions from an owner that was not seen."""
    if record.protocol in EAGER or not told.after_unseen or 0 <= told.record.generation <= 1:
        return False
    return any(p not in was.get(topic, ()) for topic, partitions in (after or {}).items() for p in partitions)


def _compare(was: Owners | None, after: Owners | None, wanted: frozenset[str] | None) -> tuple[int | None, Owners]:
    """Count moves, and find the partitions pending handover with their last owners.

    Args:
        was: Owners before; None when unknown.
        after: Owners after; None when unknown.
        wanted: Topics still subscribed, whose unowned partitions are pending handover; None if no handover is expected.
    """
    if was is None or after is None:
        return None, {}
    moves = 0
    pending: Owners = {}
    for topic, partitions in was.items():
        now = after.get(topic, {})
        for partition, owner in partitions.items():
            new = now.get(partition)
            if new is None:
                if wanted is not None and topic in wanted:
                    pending.setdefault(topic, {})[partition] = owner
            elif new != owner:
                moves += 1
    return moves, pending


def _least_moves(owned: Owned | None, record: MembershipRecord) -> int | None:
    if owned is None or not record.members or owners_of(record) is None:
        return None
    try:
        return optimal_moves({member: dict(topics) for member, topics in owned.items()}, group_of(record))
    except AssignorError:
        return None
