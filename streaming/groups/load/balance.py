"""How evenly the produced records lie on a group's members, and which partitions no assignment could make even.

A **hot member** has more than its share because of the assignment: another one would mend it, so the imbalance is above
the bounds of the least possible one. A **hot partition** has by itself more than a member's fair share, so only more
partitions, or other keys, would mend it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from assignors import AssignorError, Group, Subscription, imbalance, load_imbalance_optimal
from streaming.groups.context import Context
from streaming.groups.kind import Ownership, Owning, OwningMember
from streaming.groups.load.rates import counts_of
from streaming.groups.rows import HotPartition, MemberLoadRow, for_people
from streaming.groups.state import LoadState
from streaming.records import GroupObservation, count_of, each_of
from streaming.times import day_of

# A fair share is never met exactly: within a tenth of it, partitions that carry the same would be called hot in turns.
_CLEARLY: Final = 1.1

# The hottest ones are enough to act upon.
_MOST_NAMED: Final = 10


def weigh_again(load: LoadState, observation: GroupObservation, owners: Ownership) -> bool:
    """Weigh what the members carry, if the assignment or the rates are others than at the round before.

    Returns:
        Whether they are.
    """
    if load.assignment == owners.version and load.since != observation.elapsed_time:
        return False
    load.assignment = owners.version
    _weigh(load, owners)
    return True


def _weigh(load: LoadState, owners: Ownership) -> None:
    """Compute the columns about balance for the present assignment with the rates of the newest ended window."""
    load.imbalance = load.imbalance_optimal = load.hot_partitions = None
    if not owners.are_known or not load.length:
        return
    counts, _ = _counts(owners, load)
    shares = [load_of(of, counts) for of in owners.members]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return
    load.imbalance = imbalance(known)
    if load.imbalance is None:
        return
    load.hot_partitions = _hot(owners, counts, sum(known), load.length)
    load.imbalance_optimal = _optimal(owners, counts, load.imbalance)


def _counts(owners: Ownership, load: LoadState) -> tuple[dict[str, array[int]], dict[str, array[int]]]:
    """Records produced and consumed in the newest ended window, of each topic that a member owns partitions of."""
    counts = {topic: counts_of(load, topic) for topic in owners.by_partition}
    return {topic: of[0] for topic, of in counts.items()}, {topic: of[1] for topic, of in counts.items()}


def load_of(owning: Owning, counts: Mapping[str, Sequence[int]]) -> int | None:
    """Records of a member's partitions; None if those of one of them are not known."""
    total = 0
    for topic, partitions in owning.partitions or ():
        of_topic = counts[topic]
        for partition in partitions:
            if not 0 <= partition < len(of_topic) or of_topic[partition] < 0:
                return None
            total += of_topic[partition]
    return total


def _hot(owners: Ownership, counts: Mapping[str, Sequence[int]], total: int, length: int) -> tuple[HotPartition, ...]:
    partitions_held = [place for of in owners.members for place in each_of(of.partitions)]
    # With more members than partitions, some cannot have a share.
    fair = total / min(len(owners.members), len(partitions_held))
    hot = [
        HotPartition(for_people(topic), partition, counts[topic][partition] * 1000 / length)
        for topic, partition in partitions_held
        if counts[topic][partition] > _CLEARLY * fair
    ]
    return tuple(sorted(hot, key=lambda one: (-one.per_second, one.topic, one.partition))[:_MOST_NAMED])


def _optimal(owners: Ownership, counts: Mapping[str, Sequence[int]], present: float) -> tuple[float, float] | None:
    """Bounds of the least imbalance of the owned partitions; None if it is not known who may have them."""
    subscriptions = []
    for member, partitions_of, topics in owners.members:
        if topics is None or not {topic for topic, _ in partitions_of or ()}.issubset(topics):
            return None
        subscriptions.append(Subscription(member.member_id, tuple(sorted(counts.keys() & topics))))
    owned: dict[str, list[int]] = {topic: [0] * len(of_topic) for topic, of_topic in counts.items()}
    for topic, partitions in owners.by_partition.items():
        for partition in partitions:
            owned[topic][partition] = counts[topic][partition]
    try:
        group = Group(tuple(subscriptions), {topic: len(of_topic) for topic, of_topic in owned.items()})
        found = load_imbalance_optimal(group, owned)
    except AssignorError:
        return None
    if found is None:
        return None
    if len(owners.subtopologies) > len(set(owners.subtopologies.values())):
        return found[0], max(found[0], present)  # topics of one subtopology cannot be given to different members
    return (found[0], max(found[0], min(found[1], present)))


def write_member_load(load: LoadState, observation: GroupObservation, context: Context, owners: Ownership) -> None:
    """Write the rows of a round that ends a window, and the closing rows of members that have left since the last one.

    Args:
        load: The group's load.
        observation: The round: it ends a window, or is the first with another assignment.
        context: Rows are written here.
        owners: Who owns what.
    """
    end_member_load(load, {of.member.member_id for of in owners.members}, observation, context)
    # Without a certain length there are no rates; rows that are open say so.
    if load.since != observation.elapsed_time or not (owners.are_known and (load.length or load.members)):
        return
    produced, consumed = _counts(owners, load)
    carried = [load_of(of, produced) for of in owners.members]
    known = [count for count in carried if count is not None]
    total = sum(known) if len(known) == len(carried) else 0
    context.rows.member_load.extend(
        _load_row(
            of.member.member_id,
            observation,
            context,
            of.member,
            count_of(of.partitions),
            _per_second(count, load.length),
            _per_second(load_of(of, consumed), load.length),
            count / total if load.length and total and count is not None else None,
        )
        for of, count in zip(owners.members, carried, strict=True)
    )
    load.members = tuple([of.member.member_id for of in owners.members])


def end_member_load(
    load: LoadState, staying: AbstractSet[str], observation: GroupObservation, context: Context
) -> None:
    """Write the closing rows of members that have an open row and are not among those that stay."""
    gone = [member_id for member_id in load.members if member_id not in staying]
    context.rows.member_load.extend(_load_row(member_id, observation, context) for member_id in gone)
    if gone:
        load.members = tuple([member_id for member_id in load.members if member_id in staying])


def _load_row(
    member_id: str,
    observation: GroupObservation,
    context: Context,
    member: OwningMember | None = None,
    partitions: int = 0,
    produced: float | None = None,
    consumed: float | None = None,
    share: float | None = None,
) -> MemberLoadRow:
    """A member's row; its closing row where no member is given."""
    return MemberLoadRow(
        cluster=context.config.cluster,
        group_id=context.group,
        member_id=member_id,
        source=context.source,
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=member is None,
        client_id=member.client_id if member is not None else None,
        client_host=member.client_host if member is not None else None,
        partitions=partitions,
        produced_per_second=produced,
        consumed_per_second=consumed,
        share=share,
    )


def _per_second(count: int | None, length: int) -> float | None:
    if count is not None and length:
        return count * 1000 / length
    return None
