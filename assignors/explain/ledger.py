"""The books of an explanation: every step is entered and checked; at the end they must show the assignment.

A step says what the computation did. `Ledger` replays the steps over the group's own facts (subscriptions, claims,
racks, partition counts), which come from the input and not from the computation, so that a wrong sentence is found
before anybody reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assignors.assignment import Assignment, PartitionId, same


class WrongStepError(Exception):
    """A step contradicts the group, an earlier step or the assignment."""


def require(holds: object, what: str) -> None:
    """Refuse a step whose claim does not hold.

    Raises:
        WrongStepError: It does not.
    """
    if not holds:
        raise WrongStepError(what)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a group without computing anything.

    Attributes:
        topics: Topics that each member subscribes to, by member id, in the order of the input.
        counts: Partition count by topic.
        instances: `group.instance.id` by member id; None for a dynamic member.
        racks: Rack by member id; None for a member without one.
        replicas: Racks of the replicas by topic; None when unknown.
        claims: Partitions that each member says it has, or that its previous target lists.
    """

    topics: Mapping[str, frozenset[str]]
    counts: Mapping[str, int]
    instances: Mapping[str, str | None] = field(default_factory=dict)
    racks: Mapping[str, str | None] = field(default_factory=dict)
    replicas: Mapping[str, Sequence[Sequence[str]]] | None = None
    claims: Mapping[str, frozenset[PartitionId]] = field(default_factory=dict)

    def subscribers(self, topic: str) -> list[str]:
        """Members that subscribe to a topic."""
        return [member for member, topics in self.topics.items() if topic in topics]

    def exists(self, partition: PartitionId) -> bool:
        """Whether a topic has this partition."""
        return 0 <= partition[1] < self.counts.get(partition[0], 0)

    def in_rack(self, member: str, partition: PartitionId) -> bool:
        """Whether a partition has a replica in the member's rack."""
        of_topic = (self.replicas or {}).get(partition[0], ())
        return 0 <= partition[1] < len(of_topic) and self.racks.get(member) in set(of_topic[partition[1]])

    def claimants(self, partition: PartitionId) -> list[str]:
        """Members that say they have a partition."""
        return [member for member, claimed in self.claims.items() if partition in claimed]

    def could_have(self, member: str) -> int:
        """Number of partitions of a member's topics."""
        return sum(self.counts.get(topic, 0) for topic in self.topics[member])


class Ledger:
    """Who has what after the steps so far.

    Attributes:
        facts: The group's facts.
        owned: Partitions of each member, as ordered sets.
        order: The leader's order of members, once a step has told it.
        turn: Position of the next member in that order, for partitions dealt in turn.
        shares: Fewest and most partitions of a member, where the strategy has such shares.
        highest: Highest generation that a member claims, once a step has told it.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.owned: dict[str, dict[PartitionId, None]] = {member: {} for member in facts.topics}
        self.order: Sequence[str] = ()
        self.turn = 0
        self.shares: tuple[int, int] | None = None
        self.generations: Mapping[str, int] = {}
        self._sizes = dict.fromkeys(facts.topics, 0)
        self._before_moves: dict[str, dict[PartitionId, None]] | None = None
        self._takers: dict[str, list[str]] = {}

    def size(self, member: str) -> int:
        """Number of partitions that a member has now."""
        return self._sizes[member]

    def takers(self, topic: str) -> list[str]:
        """Subscribers of a topic."""
        found = self._takers.get(topic)
        if found is None:
            found = self._takers[topic] = self.facts.subscribers(topic)
        return found

    def give(self, member: str, partition: PartitionId) -> None:
        """Enter a partition of a member that does not have it."""
        require(member in self.owned, f"{member!r} is no member")
        require(partition not in self.owned[member], f"{member!r} gets {partition} twice")
        self.owned[member][partition] = None
        self._sizes[member] += 1

    def take(self, member: str, partition: PartitionId) -> None:
        """Take a partition from a member that has it."""
        require(member in self.owned and partition in self.owned[member], f"{member!r} does not have {partition}")
        del self.owned[member][partition]
        self._sizes[member] -= 1

    def remember(self) -> None:
        """Keep the present state, to which `undo` returns."""
        self._before_moves = {member: dict(owned) for member, owned in self.owned.items()}

    def undo(self) -> None:
        """Return to the state of `remember`."""
        require(self._before_moves is not None, "there is nothing to take back")
        self.owned = {member: dict(owned) for member, owned in (self._before_moves or {}).items()}
        self._sizes = {member: len(owned) for member, owned in self.owned.items()}

    def within_shares(self) -> None:
        """Require that each member has its share."""
        if self.shares is not None:
            low, high = self.shares
            for member, size in self._sizes.items():
                require(low <= size <= high, f"{member!r} has {size}, not {low} to {high}")

    def require_equal(self, assignment: Assignment) -> None:
        """Require that the books show the assignment, by topic names.

        Raises:
            WrongStepError: They do not.
        """
        mine: dict[str, dict[str, list[int]]] = {member: {} for member in self.owned}
        for member, owned in self.owned.items():
            for topic, number in owned:
                mine[member].setdefault(topic, []).append(number)
        shown: Assignment = {member: dict(topics) for member, topics in mine.items()}
        require(same(shown, assignment), "the steps do not add up to the assignment")


def all_places(assignment: Assignment) -> Iterable[tuple[str, PartitionId]]:
    """Member and partition of everything in an assignment."""
    for member, topics in assignment.items():
        for topic, partitions in topics.items():
            for number in partitions:
                yield member, (topic, number)
