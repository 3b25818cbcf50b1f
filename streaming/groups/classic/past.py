"""What came before a membership record: the decision that it follows, or that nobody knows of one.

The log may be compacted, the group deleted and created again under its name, moved from one protocol to the other, or
only seen by rounds. `churn.py` compares the record with what is known here.

Source of the rules: `GroupMetadataManager` (Scala 3.9 and Java 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.classic.state import ClassicDecision
from streaming.groups.compaction import is_compacted
from streaming.groups.context import Context
from streaming.groups.rows import ReplacedMember
from streaming.groups.state import GroupState
from streaming.groups.verdicts import generations_between
from streaming.records import MembershipRecord


@dataclass(frozen=True, slots=True)
class Past:
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


def past_of(state: GroupState, record: MembershipRecord, context: Context) -> Past:
    """The time before a record, as far as the log or the rounds tell of it."""
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
    return Past(
        kind=kind,
        incarnation=_incarnation(previous if continues else None, record, context),
        decision=told,
        before=before,
        # When compaction left this as the first record of an older group, the previous owners are unknown.
        known=before is not None or (record.generation <= 1 and not migrated and not compacted),
        previous_generation=previous_generation,
        skipped=None if previous_generation is None else generations_between(previous_generation, record.generation),
        compacted=compacted,
    )


def _seen_past_of(state: GroupState, record: MembershipRecord, context: Context) -> Past:
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
    return Past(
        kind=kind,
        incarnation=_incarnation(previous if continues else None, record, context),
        decision=told,
        before=before,
        known=before is not None or (state.seen is not None and state.seen.empty),
        previous_generation=before.generation if before is not None and not before.seen else None,
        skipped=None,
        compacted=False,
    )


def _incarnation(continued: ClassicDecision | None, record: MembershipRecord, context: Context) -> int:
    if continued is not None:
        return continued.incarnation
    return context.config.incarnations.of(context.group, record.record)


def _only_returned(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether all that has changed is that static members came back under other ids, with their partitions."""

    def fixed(members: MembershipRecord) -> dict[str, tuple[object, ...]]:
        return {
            m.group_instance_id or m.member_id: (m.group_instance_id is None, m.topics, m.assigned)
            for m in members.members
        }

    is_same = before.protocol == record.protocol and fixed(before) == fixed(record)
    return is_same and bool(replaced_members(before, record))


def _kind(before: MembershipRecord | None, record: MembershipRecord, *, migrated: bool) -> str:
    if migrated:
        return "migration"
    if not record.members:
        return "created" if before is None and record.generation == 0 else "became_empty"
    if before is None or record.generation != before.generation:
        return "rebalance"
    # A static member that returns keeps what it has, and no coordinator writes anything else under the same generation.
    # What was written all the same (the log lost its end, or somebody else wrote to it) is judged like any decision.
    return "static_replacement" if _assigned(before) == _assigned(record) else "rebalance"


def _assigned(record: MembershipRecord) -> dict[str, object]:
    return {m.group_instance_id or m.member_id: m.assigned for m in record.members}


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


def replaced_members(before: MembershipRecord | None, record: MembershipRecord) -> tuple[ReplacedMember, ...]:
    """Static members that have returned under other ids since the record before."""
    if before is None:
        return ()
    ids = {m.group_instance_id: m.member_id for m in before.members if m.group_instance_id is not None}
    return tuple(
        ReplacedMember(m.group_instance_id, ids[m.group_instance_id], m.member_id)
        for m in record.members
        if m.group_instance_id is not None and ids.get(m.group_instance_id, m.member_id) != m.member_id
    )
