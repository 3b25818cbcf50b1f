"""Modern groups in the core: processes their records and writes a churn row with its causes for each decision.

The churn row follows from the log alone, so it is written as soon as the decision is complete (`replay.py`).
Member rows wait for topic names (`members.py`).

The causes are why the coordinator made a new target, as far as its records prove it. A new target follows when the
group epoch rises, and it rises only for what the coordinator writes: a member came or is gone, subscribed to other
topics, or the subscribed topics' metadata changed. So nearly everything is certain. What is not:

- A member that leaves, one whose session or rebalance timeout ended, and one that an administrator removed are written
  with the same three tombstones (`GroupMetadataManager.consumerGroupFenceMember`), and the timeouts of the brokers are
  not in the log.
- Since Kafka 4.1 the topics' metadata is a hash of ids, names, partition counts and racks (KIP-1101). Where it has
  changed, the targets show which topic has other partitions. A share group records which partitions it has initialized,
  and so may assign.
- A streams group's topology, and the settings that its assignor goes by, are written with each epoch (Kafka 4.2 on).
- A static member that returns under another id makes no new target, so it is never a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from assignors import from_topics, moves
from streaming.groups.causes import TopicChange, cause, causes_in_order, coordinator_moved, of_members, of_topics
from streaming.groups.classic.membership import owners_of
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.modern.group import (
    Before,
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
from streaming.groups.rows import Cause, ChurnRow, ReplacedMember
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
    ShareTopics,
    UnreadableModern,
    counts_in,
    holders,
    row_of,
)

_METADATA: Final = "the metadata of the topics changed, and its partitions did"

_INITIALIZED: Final = "the group has initialized other partitions than before"

_GONE: Final = "gone; a leave and a timeout look the same in the log, and the coordinator's own log tells them apart"


def modern_causes(
    decision: ModernDecision,
    before: Before | None,
    leader_epoch: int,
    names: Mapping[str, str],
    *,
    migrated: bool,
) -> tuple[Cause, ...]:
    """The causes of a decision.

    Args:
        decision: The decision.
        before: The group at the decision before it; None for its first record.
        leader_epoch: Leader epoch of the decision; -1 when not known.
        names: Topic names by id.
        migrated: The group was a classic one until now.
    """
    joined = of_members("member_joined", decision.joined or (), "not in the previous decision")
    gone = of_members("member_gone", decision.left or (), _GONE)
    if migrated:
        return causes_in_order([cause("migration", "the group was upgraded to the KIP-848 protocol"), *joined, *gone])
    if decision.joined is None or before is None:
        return (cause("unknown", "the decision before it is not known"),)
    found = [*joined, *gone]
    evidence = "the log does not show why"
    if decision.tasks is None and not decision.became_empty:
        others = before.resubscribed.keys() - set(decision.joined)
        changed = [member.member_id for member in decision.members if member.member_id in others]
        found += of_members("subscription_changed", changed, "subscribe to other topics than before")
        if before.new_metadata:
            evidence = "the metadata of the topics changed, and the targets do not show how"
            counts = _changed_counts(decision, names, unchanged=not found)
            shows = _INITIALIZED if isinstance(decision.topics, ShareTopics) else _METADATA
            found += of_topics("partitions_changed", counts, shows)
        if len(before.asked) == len(decision.assignors) == 1 and before.asked != decision.assignors:
            (first,), (second,) = before.asked, decision.assignors
            found.append(cause("strategy_changed", "most members ask for another assignor", before=first, after=second))
    if decision.tasks is not None and not decision.became_empty:
        found += _of_topology(decision, before)
        if before.new_metadata:
            evidence = "the topics of the topology changed, and the targets do not show how"
    if not found:
        found.append(cause("unknown", evidence))
    found += coordinator_moved(before.leader_epoch, leader_epoch)
    return causes_in_order(found)


def _of_topology(decision: ModernDecision, before: Before) -> Iterator[Cause]:
    """What changed for a streams group: the assignor's settings, and how many tasks its subtopologies have."""
    settings = decision.tasks.settings if decision.tasks is not None else {}
    for name in sorted(before.settings.keys() & settings.keys()):
        one, other = before.settings[name], settings[name]
        if one != other:
            yield cause("settings_changed", f"{name[:100]} was {one[:20]} and is {other[:20]}", before=one, after=other)
    first, second = counts_in((decision.before or {}).values()), counts_in(decision.targets.values())
    for name in sorted(first.keys() & second.keys()):
        if before.new_metadata and first[name] != second[name]:
            evidence = f"the topics of the topology changed, and the tasks of subtopology {name[:100]} did"
            yield cause("partitions_changed", evidence, before=str(first[name]), after=str(second[name]))


def _changed_counts(decision: ModernDecision, names: Mapping[str, str], *, unchanged: bool) -> Iterator[TopicChange]:
    """Topics of which the target has another number of partitions than the one before.

    Where members or subscriptions have changed (`unchanged` is False), only topics that both have and that have grown:
    any other may have come or gone with a subscription.
    """
    first, second = counts_in((decision.before or {}).values()), counts_in(decision.targets.values())
    for topic_id in first.keys() | second.keys():
        one, other = first.get(topic_id, 0), second.get(topic_id, 0)
        if 0 < one < other or (unchanged and one != other):
            yield TopicChange(names.get(topic_id, topic_id), str(one), str(other))


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
    elif isinstance(word, Removed):
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
