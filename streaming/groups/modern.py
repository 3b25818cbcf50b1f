"""Groups that the broker assigns, in the core: their records followed, and a row of churn for each decision.

A decision (`consumer_group.py`) gives its row of churn at once, as that follows from the log alone; the rows of its
members wait for the names of topics (`modern_members.py`).
"""

from __future__ import annotations

import msgspec

from streaming.groups.config import GroupConfig
from streaming.groups.consumer_group import Decision, Ended, behind, subscribed, take
from streaming.groups.facts import ChurnRow, ReplacedMember, Rows
from streaming.groups.inputs import OtherRecords
from streaming.groups.modern_inputs import (
    CONSUMER,
    SHARE,
    STREAMS,
    GroupEpoch,
    IdPartitions,
    ModernInput,
    ModernMember,
    Removed,
)
from streaming.groups.modern_members import close_modern_members, topic_names, write_modern_members
from streaming.groups.modern_verdict import strategy_of
from streaming.groups.state import GROUP_METADATA_TYPES, GroupState
from streaming.groups.times import day_of

__all__ = [
    "as_counted",
    "follow",
    "modern_owners",
    "modern_topics",
    "not_converged",
]

_METADATA_TYPE = {CONSUMER: 3, SHARE: 11, STREAMS: 17}
# Stands for any type that does not tell whether the group lives.
_OTHER_TYPE = 5

# Decisions that wait for a round, for a verdict and for the names of topics; as many as classic decisions wait.
_WAITING_MAX = 64

# Epochs are int32, and a broken record may have any.
_INT32 = 2**31 - 1

# Text of a finding names at most this many members; the rest is counted.
_NAMED = 3


def as_counted(item: ModernInput) -> OtherRecords:
    """One record as the count of itself: by such counts the core tells under which protocol a group lives."""
    removed = isinstance(item, Removed)
    metadata = item.key_type in GROUP_METADATA_TYPES if isinstance(item, Removed) else isinstance(item, GroupEpoch)
    return OtherRecords(
        key_type=_METADATA_TYPE[item.group_type] if metadata else _OTHER_TYPE,
        records=int(not removed),
        tombstones=int(removed),
        first_record=item.record,
        last_record=item.record,
        last_time=item.record_time,
        deleted=removed,
        log_partition=item.log_partition,
    )


def follow(state: GroupState, item: ModernInput, group: str, config: GroupConfig, rows: Rows) -> None:
    """Take in a record of a modern group, and write what a decision says."""
    classic = state.current
    # The upgrade of a classic group writes its tombstone and the new group's records in one append.
    upgraded = (
        state.modern_group is None
        and classic is not None
        and state.tombstoned is not None
        and item.record == state.tombstoned + 1
    )
    state.modern_group, word = take(state.modern_group, item, born=upgraded)
    if upgraded and state.modern_group is not None and classic is not None:
        state.modern_group.told = {m.member_id: m.group_instance_id for m in classic.record.members}
        state.modern_incarnation = classic.incarnation
        state.upgraded = True
    if isinstance(word, Decision):
        _decide(state, word, group, config, rows)
    elif isinstance(word, Ended):
        write_modern_members(state, group, config, rows)
        close_modern_members(state, word.record, word.record_time, group, config, rows)
        state.modern_epoch = state.modern_incarnation = state.modern_verdict = None
        state.upgraded = False


def _decide(state: GroupState, decision: Decision, group: str, config: GroupConfig, rows: Rows) -> None:
    if state.modern_incarnation is None:
        state.modern_incarnation = decision.record
    before = state.modern_epoch
    # What a classic group owned is known by name, the first target by topic id.
    comparable = decision.before is not None and not state.upgraded and decision.group_type != SHARE
    instances = {member.member_id: member.instance_id for member in decision.members}
    rows.rebalance_churn.append(
        ChurnRow(
            cluster=config.cluster,
            group_id=group,
            log_partition=decision.log_partition,
            record_offset=decision.record,
            record_time=decision.record_time,
            event_date=day_of(decision.record_time),
            revision=1,
            kind="became_empty" if decision.became_empty else "rebalance",
            incarnation=state.modern_incarnation,
            generation=decision.epoch,
            previous_generation=before,
            generations_skipped=min(_INT32, max(0, decision.epoch - before - 1)) if before is not None else None,
            follows=None,
            protocol_type=decision.group_type,
            strategy=strategy_of(decision.assignors),
            leader=None,
            members=len(decision.members),
            partitions=len({place for target in decision.targets.values() for place in _places(target)}),
            joined=decision.joined,
            left=decision.left or (),
            replaced=tuple([ReplacedMember(instances[new] or "", old, new) for old, new in decision.replaced]),
            moves=_moves(decision) if comparable else None,
            moves_least=None,
            in_transfer=0,
            join_completed_time=None,
            unowned_partition_seconds_min=None,
            unowned_partition_seconds_max=None,
        )
    )
    state.modern_epoch = decision.epoch
    state.upgraded = False
    decision = msgspec.structs.replace(decision, incarnation=state.modern_incarnation)
    state.unjudged = [*state.unjudged, decision][-_WAITING_MAX:]
    state.unnamed.append(decision)
    if len(state.unnamed) > _WAITING_MAX:
        oldest, *rest = state.unnamed
        state.unnamed = [oldest]
        write_modern_members(state, group, config, rows)
        state.unnamed = rest


def _moves(decision: Decision) -> int:
    """Partitions that go from one member to another; a replaced member under its new id is no other."""
    now = {place: name for name, target in decision.targets.items() for place in _places(target)}
    renamed = dict(decision.replaced)
    return sum(
        now.get(place, name) != renamed.get(name, name)
        for name, target in (decision.before or {}).items()
        for place in _places(target)
        if place in now
    )


def _places(partitions: IdPartitions) -> list[tuple[str, int]]:
    return [(name, number) for name, numbers in partitions for number in numbers]


def not_converged(state: GroupState) -> tuple[str, int, str] | None:
    """The finding that members of a consumer group have not reached its newest target; None when all have."""
    group = state.modern_group
    if group is None or group.decided is None or group.group_type != CONSUMER:
        return None
    late = behind(group)
    if not late:
        return None
    names = ", ".join(name[:200] for name in late[:_NAMED]) + (", …" if len(late) > _NAMED else "")
    detail = f"{len(late)} of {len(group.members)} members have not reached epoch {group.decided.epoch}: {names}"
    return "not_converged", group.decided.record_time, detail


def modern_owners(state: GroupState) -> dict[str, dict[int, ModernMember]]:
    """Who owns each partition of a consumer group at present, by topic name; what is being given up is still owned."""
    group = state.modern_group
    if state.modern is None or group is None or group.group_type != CONSUMER:
        return {}
    names = topic_names(state)
    owners: dict[str, dict[int, ModernMember]] = {}
    for member_id, member in group.members.items():
        current = group.currents.get(member_id)
        for topic_id, numbers in (*current.partitions, *current.revoking) if current is not None else ():
            if topic_id in names:
                of_topic = owners.setdefault(names[topic_id], {})
                for number in numbers:
                    of_topic.setdefault(number, member)
    return owners


def modern_topics(state: GroupState) -> frozenset[str] | None:
    """Names of the topics that any member of a consumer group subscribes to; None where that is not known."""
    group = state.modern_group
    if state.modern is None or group is None or group.group_type != CONSUMER or not group.members:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        of_member = subscribed(group, member)
        if of_member is None:
            return None
        topics |= of_member
    return frozenset(topics)
