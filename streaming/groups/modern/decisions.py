"""Modern groups in the core: processes their records and writes a churn row for each decision.

The churn row follows from the log alone, so it is written as soon as the decision is complete (`replay.py`).
Member rows wait for topic names (`members.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from assignors import from_topics, moves
from streaming.groups.classic.membership import owners_of
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.modern.causes import modern_causes
from streaming.groups.modern.group import (
    Before,
    Ended,
    ModernDecision,
    ModernGroup,
    ModernState,
    assignor_of,
    newest_targets,
)
from streaming.groups.modern.members import (
    close_modern_members,
    columns_of,
    write_modern_members,
)
from streaming.groups.modern.pauses import Pauses
from streaming.groups.modern.replay import replay
from streaming.groups.modern.rules import named, names_at, topic_names
from streaming.groups.modern.types import TYPES
from streaming.groups.rows import ChurnRow, ReplacedMember
from streaming.groups.state import GroupState
from streaming.groups.verdicts import WAITING_MAX, generations_between
from streaming.records import (
    CONSUMER,
    CONSUMER_EPOCH_TYPE,
    MODERN_RECORDS,
    CurrentAssignment,
    GroupEpoch,
    Member,
    MembershipRecord,
    ModernInput,
    Removed,
    UnreadableModern,
    holders,
    row_of,
)

_UNREADABLE_MAX = 1_000
"""Limit for the unreadable rows of a group's table that are kept by name."""


def meet(state: GroupState, group_type: str, *, born: bool) -> None:
    """Begin with a group that is seen for the first time: a look shows all of its members and targets.

    Args:
        state: The group's state; nothing happens if the group is known, or a classic group is being upgraded to it.
        group_type: Its type; only to a consumer group can a classic one be upgraded.
        born: It had no members until now.
    """
    ended = state.classic.current is not None and state.classic.tombstoned is not None
    if state.modern.group is None and not (ended and group_type == CONSUMER):
        state.modern.group = ModernGroup(group_type, exact=True, before=Before({} if born else None))


def pass_over(state: GroupState, item: UnreadableModern, context: Context) -> None:  # noqa: ARG001
    """Note a record that cannot be decoded. Nothing is said of targets and owners while there is one."""
    unreadable = state.modern.unreadable
    # Beyond the limit one entry stands for all others, and stays until the group ends.
    unreadable.setdefault(row_of(item) if len(unreadable) < _UNREADABLE_MAX else "", item.record)
    state.modern.cost = None


def follow(state: GroupState, item: ModernInput, context: Context) -> None:
    """Process a record of a modern group, and write the rows of a decision."""
    modern, classic, of_type = state.modern, state.classic, TYPES[item.group_type]
    modern.unreadable.pop(row_of(item), None)
    # The upgrade of a classic group appends its tombstone and the new group's records at once. If there are other
    # records between them, the classic group had ended and this is another group of the same name.
    upgraded = (
        modern.group is None
        and classic.current is not None
        and classic.tombstoned is not None
        and item.record == classic.tombstoned + 1
    )
    handed_over = _handed_over(state, item)
    owner = _owner_in(item) if of_type.rebalance_protocol is not None else None
    # The record changes the group in place.
    before = modern.group.before if modern.group is not None else None
    owned = modern.group.currents.get(owner or "") if modern.group is not None else None
    modern.group, word = replay(modern.group, item, of_type.subscribing, born=upgraded)
    if owner is not None and modern.group is not None and not (context.is_seen or modern.unreadable):
        modern.cost = modern.cost or Pauses()
        told = modern.cost.shift(item, owned, modern.group.currents.get(owner))
        if told is not None:
            context.rows.rebalance_churn.append(told)
    if upgraded and modern.group is not None and classic.current is not None:
        modern.group.before.members = {m.member_id: m.group_instance_id for m in classic.current.record.members}
        modern.upgraded = True
    if isinstance(item, GroupEpoch) and not modern.lives:
        modern.lives = True
        classic.handed_over = None
        if classic.tombstoned is not None and not modern.upgraded:
            classic.current = None
    if isinstance(word, ModernDecision):
        _decide(state, word, before, context)
    elif isinstance(word, Ended):
        write_modern_members(state, context)
        close_modern_members(state, word.record, word.record_time, context)
        was_empty = before is not None and before.members == {}
        # Nothing continues from an empty group: a classic group right after it is a new one.
        state.modern = ModernState(ended=None if was_empty else word.record, waiting=modern.waiting)
        classic.handed_over = handed_over
        state.rebalances = state.uncommitted = None
        if state.elapsed < 0 and was_empty:
            state.modern.waiting = []


def _decide(
    state: GroupState,
    decision: ModernDecision,
    was: Before | None,
    context: Context,
) -> None:
    modern, before = state.modern, state.modern.epoch
    if modern.unreadable:
        exact = decision.became_empty  # tombstones can be read
        decision = msgspec.structs.replace(decision, exact=exact, before=None, joined=None, left=None)
        if modern.group is not None:
            modern.group.before.members = None  # nor is it known what the next one changes
    of_type = TYPES[decision.group_type]
    moved = of_type.moves(decision)
    names = names_at(state, decision)
    upgraded = state.classic.current if modern.upgraded else None
    if upgraded is not None:
        classic = upgraded.record
        # A lower epoch means that the classic group was empty, which restarts at the first epoch: a new incarnation.
        if decision.epoch >= classic.generation:
            before = None if classic.seen else classic.generation
            modern.incarnation = upgraded.incarnation
        are_classic = [member.classic_protocols is not None for member in decision.members]
        if classic.members or any(are_classic):
            moved = _moves_of_upgrade(classic, decision, names)
            decision = msgspec.structs.replace(decision, before=None, carried_over=all(are_classic))
    if modern.incarnation is None:
        modern.incarnation = context.config.incarnations.of(context.group, decision.record)
    decision = msgspec.structs.replace(decision, incarnation=modern.incarnation)
    if decision.became_empty:
        state.uncommitted = None
    if decision.exact or not state.is_compacted(decision.record):
        # For a decision partly removed by compaction, even the number of members would be a guess.
        count_rebalance(state, decision.record_time)
        with of_record(len(modern.waiting)):
            least = of_type.least_moves(decision, names)
        row = _churn_row(state, decision, was, before, (moved, least), names, context)
        if of_type.rebalance_protocol is not None:
            row = _with_pauses(state, decision, row, of_type.rebalance_protocol, context)
        context.rows.rebalance_churn.append(row)
    else:
        modern.cost = None
    modern.epoch = decision.epoch
    modern.upgraded = False
    modern.waiting.append(decision)
    modern.unnamed += 1
    if modern.unnamed > WAITING_MAX:
        write_modern_members(state, context, most=1)
    del modern.waiting[:-WAITING_MAX]


def _owner_in(item: ModernInput) -> str | None:
    """Id of the member whose current assignment the record sets or removes; None for other records."""
    if isinstance(item, CurrentAssignment):
        return item.member_id
    if isinstance(item, Removed) and MODERN_RECORDS.get(item.key_type) is CurrentAssignment:
        return item.part
    return None


def _with_pauses(
    state: GroupState, decision: ModernDecision, row: ChurnRow, rebalance_protocol: str, context: Context
) -> ChurnRow:
    """Start tracking the cost of a decision; returns its row, with bounds of 0 if nothing moves."""
    modern = state.modern
    # Members of the classic protocol in the group may rebalance eagerly.
    if row.kind == "rebalance" and all(member.classic_protocols is None for member in decision.members):
        row = msgspec.structs.replace(row, rebalance_protocol=rebalance_protocol, partitions_stopped_unmoved=0)
    if context.is_seen:
        return row
    modern.cost = modern.cost or Pauses()
    if decision.became_empty or modern.group is None:
        modern.cost.forget()
        return row
    if decision.before is None or not decision.exact:
        modern.cost = None  # the current owners may be unknown as well
        return row
    return modern.cost.begin(row, decision.before, decision.targets, modern.group.currents)


def _churn_row(
    state: GroupState,
    decision: ModernDecision,
    was: Before | None,
    before: int | None,
    moved: tuple[int | None, int | None],
    names: Mapping[str, str],
    context: Context,
) -> ChurnRow:
    """The decision's row, with its causes, and with how its members rebalanced."""
    group = state.modern.group
    assert group is not None  # noqa: S101  # it has just decided
    kind = "migration" if state.modern.upgraded else "became_empty" if decision.became_empty else "rebalance"
    skipped = generations_between(before, decision.epoch) if before is not None else None
    instances = {member.member_id: member.instance_id for member in decision.members}
    return ChurnRow(
        **columns_of(decision, decision.incarnation, context),
        revision=1,
        kind=kind,
        previous_generation=before,
        generations_skipped=skipped,
        protocol_type=decision.group_type,
        strategy=assignor_of(decision.assignors),
        members=len(decision.members),
        partitions=len(holders(decision.targets)),
        joined=decision.joined,
        left=decision.left or (),
        replaced=tuple([ReplacedMember(instances[new] or "", old, new) for old, new in decision.replaced]),
        partitions_moved=moved[0],
        partitions_moved_optimal=moved[1],
        causes=modern_causes(decision, was, group.before.leader_epoch, names, migrated=kind == "migration"),
        decided_time_min=context.made[0],
        decided_time_max=context.made[1],
    )


def _moves_of_upgrade(classic: MembershipRecord, decision: ModernDecision, names: Mapping[str, str]) -> int | None:
    """Moves from the classic group's assignment, by topic name, to the first target, by topic id; None if unknown."""
    after = named(decision.targets, names)
    if after is None or owners_of(classic) is None:
        return None
    renamed = dict(decision.replaced)
    before = {renamed.get(member.member_id, member.member_id): member.assigned or () for member in classic.members}
    return moves(from_topics(before), from_topics(after))


def _handed_over(state: GroupState, item: ModernInput) -> ClassicDecision | None:
    """The newest decision of a consumer group that ends with this record, in the form of a classic record.

    None if the record does not end a consumer group, or the decision is not completely known.
    """
    group = state.modern.group
    if group is None or not group.before.members or state.modern.epoch is None:
        return None
    if not isinstance(item, Removed) or item.key_type != CONSUMER_EPOCH_TYPE:
        return None
    names = topic_names(state)
    targets = newest_targets(group)
    members = []
    for member_id, instance_id in group.before.members.items():
        assigned = named({member_id: targets.get(member_id, ())}, names)
        members.append(
            Member(
                member_id=member_id,
                group_instance_id=instance_id,
                client_id="",
                client_host="",
                topics=(),
                assigned=assigned[member_id] if assigned is not None else None,
                undecodable=None if assigned is not None else "no round has named its topics",
            )
        )
    record = MembershipRecord(
        record=item.record,
        record_time=item.record_time,
        protocol_type=CONSUMER,
        generation=state.modern.epoch,
        members=tuple(members),
        log_partition=item.log_partition,
    )
    incarnation = state.modern.incarnation if state.modern.incarnation is not None else item.record
    return ClassicDecision(record, "rebalance", incarnation)
