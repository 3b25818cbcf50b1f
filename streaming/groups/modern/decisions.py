"""Groups that the broker assigns, in the core: their records followed, and a row of churn for each decision.

A decision (`consumer_group.py`) gives its row of churn at once, as that follows from the log alone; the rows of its
members wait for the names of topics (`modern_members.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from assignors import from_topics, moves
from streaming.groups.budget import of_record
from streaming.groups.classic.churn import WAITING_MAX, drop_oldest, generations_between
from streaming.groups.classic.membership import owners_of
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.compaction import is_compacted
from streaming.groups.context import Context
from streaming.groups.finding import Found, some
from streaming.groups.modern.balance import least_moves_of_target, moves_of_target
from streaming.groups.modern.consumer_group import Ended, ModernDecision, behind, newest_targets, subscribed, take
from streaming.groups.modern.members import (
    close_modern_members,
    named,
    names_at,
    read_by_tasks,
    topic_names,
    write_modern_members,
)
from streaming.groups.modern.pauses import Pauses, begin, forget, places_of, shift
from streaming.groups.modern.verdicts import strategy_of
from streaming.groups.rows import LOG, ChurnRow, ReplacedMember, partition_column
from streaming.groups.state import GROUP_METADATA_TYPES, GroupState
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    CurrentAssignment,
    GroupEpoch,
    Member,
    MembershipRecord,
    ModernInput,
    ModernMember,
    Removed,
)
from streaming.times import day_of

__all__ = [
    "follow",
    "modern_owners",
    "modern_topics",
    "reconciling",
]

_METADATA_TYPE = {CONSUMER: 3, SHARE: 11, STREAMS: 17}
_CURRENT_TYPE = 8


def follow(state: GroupState, item: ModernInput, context: Context) -> None:
    """Take in a record of a modern group, and write what a decision says."""
    classic = state.classic.current
    # The upgrade of a classic group writes its tombstone and the new group's records in one append; where other
    # records lie between, the classic group had ended, and another of its name begins.
    upgraded = (
        state.modern.group is None
        and classic is not None
        and state.classic.tombstoned is not None
        and item.record == state.classic.tombstoned + 1
    )
    handed_over = _handed_over(state, item)
    was_empty = state.modern.group is not None and state.modern.group.told == {}
    owner = _owner_in(item)
    owned = state.modern.group.currents.get(owner) if state.modern.group is not None and owner is not None else None
    state.modern.group, word = take(state.modern.group, item, born=upgraded)
    if owner is not None and state.modern.group is not None:
        state.modern.pauses = state.modern.pauses or Pauses()
        told = shift(state.modern.pauses, item, owned, state.modern.group.currents.get(owner))
        if told is not None:
            context.rows.rebalance_churn.append(told)
    if upgraded and state.modern.group is not None and classic is not None:
        state.modern.group.told = {m.member_id: m.group_instance_id for m in classic.record.members}
        state.modern.upgraded = True
    if isinstance(item, GroupEpoch) and state.modern.key_type is None:
        state.modern.key_type = _METADATA_TYPE[item.group_type]
        state.classic.handed_over = None
        if state.classic.tombstoned is not None and not state.modern.upgraded:
            state.classic.current = None
    if isinstance(word, ModernDecision):
        _decide(state, word, context)
    elif isinstance(word, Ended):
        write_modern_members(state, context)
        close_modern_members(state, word.record, word.record_time, context)
        state.modern.key_type = state.modern.epoch = state.modern.incarnation = None
        state.modern.verdict = state.modern.balance = None
        # (Of an empty group nothing goes on: a classic one that begins right behind it begins anew.)
        state.modern.ended = None if was_empty else word.record
        if was_empty and state.steady < 0:
            state.modern.waiting = []  # no round will come to judge a group that none has shown
        state.classic.handed_over = handed_over
        state.modern.pauses = None
        state.modern.upgraded = False


def _decide(state: GroupState, decision: ModernDecision, context: Context) -> None:
    before = state.modern.epoch
    moved = moves_of_target(decision)
    names = names_at(state, decision)
    classic = state.classic.current.record if state.modern.upgraded and state.classic.current is not None else None
    if classic is not None and state.classic.current is not None:
        # (An empty group starts again at its first epoch.)
        if decision.epoch >= classic.generation:
            before, state.modern.incarnation = classic.generation, state.classic.current.incarnation
        if classic.members or any(member.classic_protocols is not None for member in decision.members):
            moved = _moves_of_upgrade(classic, decision, names)
            decision = msgspec.structs.replace(
                decision,
                before=None,
                carried_over=all(member.classic_protocols is not None for member in decision.members),
            )
    if state.modern.incarnation is None:
        state.modern.incarnation = decision.record
    if decision.exact or not is_compacted(state, decision.record):
        # (Of one that compaction has left a part of, even the number of its members would be a guess.)
        row = _churn_row(state, decision, before, moved, names, classic, context)
        context.rows.rebalance_churn.append(_open_pauses(state, decision, row))
    else:
        state.modern.pauses = None
    state.modern.epoch = decision.epoch
    state.modern.upgraded = False
    decision = msgspec.structs.replace(decision, incarnation=state.modern.incarnation)
    state.modern.waiting.append(decision)
    if len(state.modern.waiting) > WAITING_MAX:
        at = len(state.modern.waiting) - WAITING_MAX - 1
        state.modern.waiting[at] = _dropped(state.modern.waiting[at])
        drop_oldest(state.modern.waiting)
    state.modern.unnamed.append(decision)
    if len(state.modern.unnamed) > WAITING_MAX:
        oldest, *rest = state.modern.unnamed
        # (The members of one that is known in part only are shown by the next.)
        state.modern.unnamed = [oldest] if oldest.exact else []
        write_modern_members(state, context)
        state.modern.unnamed = rest


def _dropped(decision: ModernDecision) -> ModernDecision:
    """What is kept of a decision that nobody will judge any more: the columns of its row."""
    return msgspec.structs.replace(
        decision,
        dropped=True,
        members=(),
        subscriptions={},
        targets={},
        before=None,
        joined=None,
        left=None,
        replaced=(),
        undescribed=(),
        topics=None,
        topology=None,
    )


def _owner_in(item: ModernInput) -> str | None:
    """Id of the member of a consumer group whose current assignment the record tells; None of others."""
    if item.group_type != CONSUMER:
        return None
    if isinstance(item, CurrentAssignment):
        return item.member_id
    return item.part if isinstance(item, Removed) and item.key_type == _CURRENT_TYPE else None


def _open_pauses(state: GroupState, decision: ModernDecision, row: ChurnRow) -> ChurnRow:
    """Begin to wait for the cost of a decision of a consumer group; its row, with the cost where there is none."""
    if decision.group_type != CONSUMER:
        state.modern.pauses = (
            None  # of a share group's partitions several members own each, and tasks are no partitions
        )
        return row
    state.modern.pauses = state.modern.pauses or Pauses()
    if decision.became_empty or state.modern.group is None:
        forget(state.modern.pauses)
        return row
    if decision.before is None or not decision.exact:
        state.modern.pauses = None  # who owned what until now may not be known either
        return row
    return begin(state.modern.pauses, row, decision.before, decision.targets, state.modern.group.currents)


def _churn_row(
    state: GroupState,
    decision: ModernDecision,
    before: int | None,
    moved: int | None,
    names: Mapping[str, str],
    classic: MembershipRecord | None,
    context: Context,
) -> ChurnRow:
    assert state.modern.incarnation is not None  # noqa: S101  # the decision belongs to one
    instances = {member.member_id: member.instance_id for member in decision.members}
    with of_record(len(state.modern.waiting)):
        partitions_moved_optimal = least_moves_of_target(decision, names)
    return ChurnRow(
        cluster=context.config.cluster,
        group_id=context.group,
        decision=decision.record,
        source=LOG,
        log_partition=partition_column(decision.log_partition),
        record_time=decision.record_time,
        event_date=day_of(decision.record_time),
        revision=1,
        kind="migration" if classic is not None else "became_empty" if decision.became_empty else "rebalance",
        incarnation=state.modern.incarnation,
        generation=decision.epoch,
        previous_generation=before,
        generations_skipped=generations_between(before, decision.epoch) if before is not None else None,
        follows=None,
        protocol_type=decision.group_type,
        strategy=strategy_of(decision.assignors),
        leader=None,
        members=len(decision.members),
        partitions=len({place for target in decision.targets.values() for place in places_of(target)}),
        joined=decision.joined,
        left=decision.left or (),
        replaced=tuple([ReplacedMember(instances[new] or "", old, new) for old, new in decision.replaced]),
        partitions_moved=moved,
        partitions_moved_optimal=partitions_moved_optimal,
        partitions_pending_handover=0,
        join_completed_time=None,
        unassigned_partition_seconds_min=None,
        unassigned_partition_seconds_max=None,
    )


def _moves_of_upgrade(classic: MembershipRecord, decision: ModernDecision, names: Mapping[str, str]) -> int | None:
    """Moves from what a classic group owned, by topic name, to the first target, by topic id."""
    after = named(decision.targets, names)
    if after is None or owners_of(classic) is None:
        return None
    renamed = dict(decision.replaced)
    before = {renamed.get(member.member_id, member.member_id): member.assigned or () for member in classic.members}
    return moves(from_topics(before), from_topics(after))


def _handed_over(state: GroupState, item: ModernInput) -> ClassicDecision | None:
    """What a consumer group that ends with this record leaves: its newest decision, as a classic record would hold it.

    None where the record is no such end, or the decision is not known whole.
    """
    group = state.modern.group
    if group is None or group.group_type != CONSUMER or not group.told or state.modern.epoch is None:
        return None
    if not isinstance(item, Removed) or item.key_type not in GROUP_METADATA_TYPES:
        return None
    names = topic_names(state)
    targets = newest_targets(group)
    members = []
    for member_id, instance_id in group.told.items():
        assigned = named({member_id: targets.get(member_id, ())}, names)
        members.append(
            Member(
                member_id=member_id,
                group_instance_id=instance_id,
                client_id="",
                client_host="",
                rebalance_timeout=-1,
                session_timeout=-1,
                subscription_version=None,
                topics=(),
                owned=(),
                generation=None,
                rack=None,
                user_data=None,
                assigned=assigned[member_id] if assigned is not None else None,
                undecodable=None if assigned is not None else "no round has named its topics",
            )
        )
    record = MembershipRecord(
        record=item.record,
        record_time=item.record_time,
        protocol_type=CONSUMER,
        generation=state.modern.epoch,
        protocol=None,
        leader=None,
        state_time=-1,
        members=tuple(members),
        value_version=-1,
        log_partition=item.log_partition,
    )
    incarnation = state.modern.incarnation if state.modern.incarnation is not None else item.record
    return ClassicDecision(record, "rebalance", incarnation)


def reconciling(state: GroupState) -> Found | None:
    """The finding that members of a consumer group have not reached its newest target; None when all have."""
    group = state.modern.group
    if group is None or group.decided is None or group.group_type != CONSUMER:
        return None
    late = behind(group)
    if not late:
        return None
    detail = f"{len(late)} of {len(group.members)} members have not reached epoch {group.decided.epoch}: {some(late)}"
    return Found("reconciling", group.decided.record_time, detail)


def modern_owners(state: GroupState) -> dict[str, dict[int, ModernMember]]:
    """Who owns each partition at present, by topic name; what is being given up is still owned.

    In share groups a partition may have several members, and is said to have none.
    """
    group = state.modern.group
    if state.modern.key_type is None or group is None or group.group_type == SHARE:
        return {}
    names = topic_names(state)
    owners: dict[str, dict[int, ModernMember]] = {}
    for member_id, member in group.members.items():
        current = group.currents.get(member_id)
        owned = (*current.partitions, *current.revoking) if current is not None else ()
        if group.group_type == STREAMS:
            for read in read_by_tasks(state, group.topology, owned) or ():
                owners.setdefault(read.topic, {}).update(dict.fromkeys(read.partitions, member))
            continue
        for topic_id, numbers in owned:
            if topic_id in names:
                of_topic = owners.setdefault(names[topic_id], {})
                for number in numbers:
                    of_topic.setdefault(number, member)
    return owners


def modern_topics(state: GroupState) -> frozenset[str] | None:
    """Names of the topics that any member of a consumer group subscribes to; None where that is not known."""
    group = state.modern.group
    if state.modern.key_type is None or group is None or group.group_type != CONSUMER or not group.members:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        of_member = subscribed(group, member)
        if of_member is None:
            return None
        topics |= of_member
    return frozenset(topics)
