"""`sticky` and `cooperative-sticky` of kafka-python from 3.0 on, and aiokafka's `sticky`: `StickyAssignmentExecutor`.

Modelled on Java 2.4's algorithm. It takes elements from Python sets of strings, in an order that depends on the hash
seed of the leader's process: where the result may depend on it, it is not recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.assignment import Assignment, from_pairs
from assignors.clients.sticky.balance import Balancing, pairwise_differences
from assignors.clients.sticky.claims import (
    NOTHING,
    MemberData,
    claims_by_generation,
    read_kafka_python,
    read_sticky,
    said_in_subscription,
    two_newest,
    without_others,
)
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.task import Movements, Potential, Task, largest_first
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.model import Group, PartitionRacks, Recompute, Subscription

_SEED = "the result depends on the hash seed of the leader's Python process"
_OTHER_TOPICS = "a member had partitions of a topic that nobody subscribes to any more"
_KEY_ERROR = "kafka-python raises KeyError: the previous owner of a partition takes no part in the reassignment"


class _Movements(Movements):
    def actual(self, partition: int, owner: int, target: int) -> int:
        pair = self.pair_of.get(partition)
        reverse = self.moved.get((self.row_of[partition], target, owner if pair is None else pair[0]))
        if reverse is None:
            return partition
        if len(reverse[0]) > 1:
            raise CannotTell(_SEED)
        return next(iter(reverse[0]))


class _Balance(Balancing):
    """Java's steps, except where a defaultdict creates missing entries."""

    def result(self) -> list[dict[int, None]]:
        # Fixed members that were looked up as a previous owner: from then on they count as members without partitions.
        self.ghosts: set[int] = set()
        return super().result()

    def _no_movements(self) -> Movements:
        return _Movements(self.indexed, self.topic_of)

    def _reassign(self, partitions: Sequence[int]) -> bool:
        seeded = self.task.seeded and self.everything is partitions
        if seeded and partitions and not self._is_balanced():
            raise CannotTell(_SEED)
        return super()._reassign(partitions)

    def _size_of_previous(self, member: int, size: int) -> int:
        if not self.fixed[member]:
            return self.sizes[member]
        if size > 1:
            raise LeaderWouldFail(_KEY_ERROR)
        self.ghosts.add(member)
        return 0

    def _score(self) -> int:
        return pairwise_differences([*(self.sizes[member] for member in self.moving), *(0 for _ in self.ghosts)])


class _BalanceFrom3012(_Balance):
    """From 3.0.12 on: if a third member owns the substitute, the partition moves to that member in exchange.

    Before, only the substitute moved, and the partition's owner stayed as full as it was.
    """

    def _move(self, partition: int, target: int) -> Sequence[int]:
        owner = self.owner[partition]
        moved = self.movements.actual(partition, owner, target)
        substitute = self.owner[moved]
        changed: tuple[int, ...] = ()
        if substitute != owner:
            changed = self._transfer(partition, substitute)
        return *changed, *self._transfer(moved, target)


def _sticky(read: Callable[[Subscription], MemberData], balance: type[_Balance]) -> Recompute:
    def recompute(group: Group, _racks: PartitionRacks | None) -> Assignment:
        indexed = IndexedGroup.of_others(group, group.members)
        return indexed.assignment_of_sets(_dealt(group, indexed, list(map(read, group.members)), balance))

    return recompute


def _read_own(member: Subscription) -> MemberData:
    return read_kafka_python(member.user_data)


def _read_javas(member: Subscription) -> MemberData:
    said, _ = read_sticky(member.user_data)
    if said.generation is None:
        return NOTHING
    return said


sticky_before_3_0_12 = _sticky(_read_own, _Balance)
sticky = _sticky(_read_own, _BalanceFrom3012)
# A copy of kafka-python's class before 3.0.12, whose user data are Java's of version 1.
aiokafka = _sticky(_read_javas, _Balance)


def _cooperative(balance: type[_Balance]) -> Recompute:
    def recompute(group: Group, _racks: PartitionRacks | None) -> Assignment:
        """Leave out partitions that another member had; if two members had one, the later member counts."""
        indexed = IndexedGroup.of_others(group, group.members)
        dealt = _dealt(group, indexed, list(map(said_in_subscription, group.members)), balance)
        given, _ = without_others(indexed, dealt, [member.owned for member in group.members])
        return from_pairs({m.member_id: sorted(mine) for m, mine in zip(group.members, given, strict=True)})

    return recompute


cooperative_before_3_0_12 = _cooperative(_Balance)
cooperative = _cooperative(_BalanceFrom3012)


def _dealt(
    group: Group, indexed: IndexedGroup, data: Sequence[MemberData], balance: type[_Balance]
) -> list[dict[int, None]]:
    if not group.members:
        return []
    # Two claims of one generation: the first counts, but in generation 0, which is falsy, the last.
    claims = claims_by_generation(data, overwriting=0)
    newest, before = two_newest(claims, claims)
    if group.other_topics_known and any(topic not in indexed.index for topic, _ in newest):
        raise CannotTell(_OTHER_TOPICS)
    existing, previous = indexed.existing(newest, before)
    potential = Potential(indexed, gap=0, counts_topics=False)
    partitions, seeded = potential.in_order(indexed), False
    if newest and not group.other_topics_known and _identical(potential):
        queues = []
        for claimed in existing:
            had_another = [partition for partition in claimed if partition in previous]
            seeded |= len(had_another) > 1
            queues.append([*had_another, *(p for p in reversed(claimed) if p not in previous)])
        first = dict.fromkeys(largest_first(indexed, queues))
        partitions = [*first, *(partition for partition in partitions if partition not in first)]
    task = Task.keeping(indexed, potential, existing, previous, partitions)
    task.seeded = seeded
    return balance(indexed, potential, task, None).result()


def _identical(potential: Potential) -> bool:
    """Whether all members list the same existing topics in the same order, and all topics have the same members."""
    return len(set(map(tuple, potential.topics))) <= 1 and len(set(map(tuple, potential.consumers))) <= 1
