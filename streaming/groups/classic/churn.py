"""Rebalances: what changed from one decision to the next, and what the change cost.

A decision is a membership record that settles who owns what. Everything here follows from the log alone, so a
row is there as soon as its record is, and the same whenever the log is read again. The cost is known only when
the owners have committed again: then the row is written a second time, as a revision.

Source of the rules: kafka.md 2.8 and 2.9 (GroupMetadataManager, Scala 3.9 and Java 4.2); cooperative
generations: KIP-429.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from assignors import AssignorError, optimal_moves
from streaming.groups.budget import of_record
from streaming.groups.classic.cost import EAGER, open_cost
from streaming.groups.classic.members import close_members, write_members
from streaming.groups.classic.membership import Owners, balance_of, group_of, owners_of, subscribed_topics
from streaming.groups.compaction import is_compacted
from streaming.groups.config import GroupConfig
from streaming.groups.modern.consumer_group import Decision as ModernDecision
from streaming.groups.rows import LOG, ChurnRow, ReplacedMember, Rows, partition_column
from streaming.groups.state import Decision, GroupState, Owned, Transfer
from streaming.groups.what_if.classic import await_verdict, by_member
from streaming.records import MembershipRecord, MembershipTombstone
from streaming.times import day_of

__all__ = ["WAITING_MAX", "decide", "drop_oldest", "end_membership", "generations_between"]

WAITING_MAX: Final = 64
"""A flapping group without rounds would let the state grow; a verdict after this many unjudged decisions helps nobody.
The dropped ones get the verdict `unverified` with this reason."""

# Of a dropped decision some hundred bytes are kept, for its row of `drift`. A group that flaps for a weekend without a
# round makes tens of thousands: beyond this many they are only counted. `rebalance_churn` has a row of each.
_DROPPED_MAX = 1_000

# Generations are int32, and a broken record may have any.
_INT32 = 2**31 - 1

_Waiting = TypeVar("_Waiting", Decision, ModernDecision)


def decide(state: GroupState, record: MembershipRecord, group: str, config: GroupConfig, rows: Rows) -> None:
    """Take in a membership record: the churn row, the members' rows, and a decision that waits for its verdict."""
    # A downgrade writes the tombstones of the modern group, its metadata's last, and the type-2 record in one append.
    # (A group of the same name that begins right there begins without members.)
    migrated = bool(record.members) and (state.modern is not None or state.modern_ended == record.record - 1)
    # Of a group that comes back from another protocol its newest decision there counts, not the last classic one.
    handed_over = state.handed_over if migrated else None
    previous = handed_over or state.current
    continues = previous is not None and (
        migrated or (state.tombstoned is None and _continues(previous.record, record))
    )
    incarnation = previous.incarnation if previous is not None and continues else record.record
    told = handed_over if migrated else previous if continues else None
    before = told.record if told is not None else None
    kind = _kind(before, record, migrated=migrated)
    skipped = generations_between(before.generation, record.generation) if before is not None else None
    previous_generation = before.generation if before is not None else None
    compacted = is_compacted(state, record.record)
    if compacted and before is not None and before.generation != record.generation:
        before = None  # who came and went since is not known: records between the two may be missing
    # The first record that is left of an older group (compaction) says nothing of what was before it.
    known_before = before is not None or (record.generation <= 1 and not migrated and not compacted)

    replaced = _replaced(before, record)
    transfer = state.transfer if before is not None else None
    after = owners_of(record)
    was = _owners_before(before, transfer, replaced) if known_before else None
    if told is not None and was and _may_have_been_in_transfer(told, record, was, after):
        was = None
    owned = None if was is None else by_member(was)
    # Whoever brings a group back by leaving it leaves its partitions to the rebalance that follows at once.
    gives_on = kind == "migration" or (kind == "rebalance" and record.protocol not in EAGER)
    moves, pending = _compare(was, after, subscribed_topics(record) if gives_on else None)
    with of_record(len(state.waiting), decides=kind != "static_replacement"):
        partitions_moved_optimal = None if pending else _least_moves(owned, record)
        state.imbalance, state.imbalance_optimal = balance_of(record)
    row = ChurnRow(
        cluster=config.cluster,
        group_id=group,
        decision=record.record,
        source=LOG,
        log_partition=partition_column(record.log_partition),
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        revision=1,
        kind=kind,
        incarnation=incarnation,
        generation=record.generation,
        previous_generation=previous_generation,
        generations_skipped=skipped,
        follows=transfer.record if transfer is not None and kind == "rebalance" else None,
        protocol_type=record.protocol_type,
        strategy=record.protocol,
        leader=record.leader,
        members=len(record.members),
        partitions=sum(len(p) for p in after.values()) if after is not None else 0,
        joined=_only_in(record, before, {r.new_member_id for r in replaced}) if known_before else None,
        left=_only_in(before, record, {r.old_member_id for r in replaced}),
        replaced=replaced,
        partitions_moved=moves,
        partitions_moved_optimal=partitions_moved_optimal,
        partitions_pending_handover=sum(len(p) for p in pending.values()),
        join_completed_time=record.state_time if record.state_time >= 0 else None,
        unassigned_partition_seconds_min=None,
        unassigned_partition_seconds_max=None,
    )
    if kind != "static_replacement":
        # (Whoever comes back under a new id goes on with what it had, and so does the waiting for its commits.)
        state.cost = None
        state.transfer = Transfer(record.record, record.record_time, pending) if pending else None
    if kind == "rebalance" and before is not None:
        row, state.cost = open_cost(state, row, was, after, before, record)
    # (What is left of a group with static members may be the record of a return, which was no rebalance.)
    if not compacted or before is not None or not any(m.group_instance_id is not None for m in record.members):
        rows.rebalance_churn.append(row)
    write_members(state, record, incarnation, group, config, rows)

    decision = Decision(record, kind, incarnation, after_unseen=before is None or bool(skipped))
    state.current = decision
    state.modern = None
    state.modern_ended = None
    state.handed_over = None
    state.tombstoned = None
    if kind != "static_replacement":
        # (A replacement decides nothing; the decision before it is judged as it was made.)
        await_verdict(
            state.waiting,
            decision,
            owned,
            row.partitions_moved_optimal,
            config,
            first_half=bool(pending),
        )
    if len(state.waiting) > WAITING_MAX:
        at = len(state.waiting) - WAITING_MAX - 1
        oldest = state.waiting[at]
        state.waiting[at] = Decision(msgspec.structs.replace(oldest.record, members=()), "dropped", oldest.incarnation)
        drop_oldest(state.waiting)


def drop_oldest(waiting: list[_Waiting]) -> None:
    """Keep of the oldest dropped decision no more than that there was one, once there are too many; in place."""
    if len(waiting) > WAITING_MAX + _DROPPED_MAX:
        more = waiting.pop(0).more + 1
        waiting[0] = msgspec.structs.replace(waiting[0], more=waiting[0].more + more)


def generations_between(before: int, generation: int) -> int:
    """How many generations, or epochs, lie between two decisions of which no decision was read."""
    return min(_INT32, max(0, generation - before - 1))


def _kind(before: MembershipRecord | None, record: MembershipRecord, *, migrated: bool) -> str:
    if migrated:
        return "migration"
    if not record.members:
        return "created" if before is None and record.generation == 0 else "became_empty"
    return "static_replacement" if before is not None and record.generation == before.generation else "rebalance"


def end_membership(
    state: GroupState, tombstone: MembershipTombstone, group: str, config: GroupConfig, rows: Rows
) -> None:
    """Take in a type-2 tombstone: the group was deleted, has expired, or goes on under another protocol.

    What no round ever showed is forgotten at once: for a group that ended before the first round no observation will
    come to close it.
    """
    close_members(state, tombstone.record, tombstone.record_time, group, config, rows)
    if state.current is not None and state.tombstoned is None:
        state.tombstoned = tombstone.record
    state.transfer = None
    state.cost = None
    if state.steady < 0:
        state.waiting = []
        for topic, partitions in list(state.partitions.items()):
            left = {partition: known for partition, known in partitions.items() if known.committed >= 0}
            state.partitions[topic] = left
            if not left:
                del state.partitions[topic]


def _continues(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether a record goes on where the one before stopped, or the group began anew in between."""
    if record.generation > before.generation:
        return True
    if record.generation < before.generation:
        return False
    # The same generation is written again when a static member is replaced; other members under the same number
    # are another group of that name (deleted and made again while nobody looked).
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
    """Owners before the decision: partitions in transfer have their first owner, replaced members the new id."""
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


def _may_have_been_in_transfer(told: Decision, record: MembershipRecord, was: Owners, after: Owners | None) -> bool:
    """Whether partitions without an owner may have been given up in the decision before, of which that is not known."""
    if record.protocol in EAGER or not told.after_unseen or told.record.generation <= 1:
        return False
    return any(p not in was.get(topic, ()) for topic, partitions in (after or {}).items() for p in partitions)


def _compare(was: Owners | None, after: Owners | None, wanted: frozenset[str] | None) -> tuple[int | None, Owners]:
    """Count moves, and find what is left in transfer: lost owners of topics still wanted; of none where it is None."""
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
