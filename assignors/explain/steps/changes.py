"""Partitions that go to another member: free ones, moved ones, and those that must wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignors.assignment import PartitionId
from assignors.explain.ledger import Ledger, require
from assignors.explain.steps.step import Step, lines
from assignors.explain.words import count, grouped, name, names

WHYS = {
    "share": "Members below their share take the free partitions in turn",
    "extra": "What is left goes, one each, to members that may have one more",
    "rack": "Free partitions go to members in a rack of a replica that have room",
    "least": "Each free partition goes to the member with the fewest among the topic's subscribers",
    "least_in_rack": (
        "Each free partition goes to the member with the fewest among those of the topic's subscribers that have no "
        "rack or one of its racks"
    ),
    "fill": "Free partitions go to the members below their share, one filled up before the next",
    "fill_topic": "Free partitions go to the members below their share of the topic, one filled up before the next",
}

_WHYS_OF_ONE = {
    "share": "it was below its share, with {size}",
    "extra": "one more was left over, and it was among those that may have one more",
    "rack": "it is in a rack of a replica and had room, with {size}",
    "least": "with {size} it had the fewest among the topic's subscribers that could take more",
    "least_in_rack": "with {size} it had the fewest among the subscribers that have no rack or one of the partition's",
    "fill": "it was below its share, with {size}",
    "fill_topic": "it was below its share of the topic",
}


@dataclass(frozen=True, slots=True)
class Given(Step):
    """Free partitions given to members.

    Attributes:
        why: One of `WHYS`.
        given: (partition, member) in order.
        sizes: How many partitions each taker had just before.
    """

    kind = "given"
    why: str
    given: tuple[tuple[PartitionId, str], ...]
    sizes: tuple[int, ...]

    def _text(self, partition: PartitionId | None) -> str:
        if partition is None:
            return f"{WHYS[self.why]}. {lines(grouped(self.given))}."
        at = next(i for i, (one, _) in enumerate(self.given) if one == partition)
        reason = _WHYS_OF_ONE[self.why].format(size=count(self.sizes[at], "partition"))
        return f"{name(partition[0])} {partition[1]} was free and goes to {name(self.given[at][1])}: {reason}."

    def _about(self) -> Iterable[PartitionId]:
        return (partition for partition, _ in self.given)

    def _enter(self, ledger: Ledger) -> None:
        facts = ledger.facts
        for (partition, member), size in zip(self.given, self.sizes, strict=True):
            require(ledger.size(member) == size, f"{member!r} has {ledger.size(member)} partitions, not {size}")
            counted = ledger.shares is not None and self.why != "fill"
            require(
                counted or partition[0] in facts.topics[member],
                f"{member!r} does not subscribe to {partition[0]!r}",
            )
            if ledger.shares is not None:
                low, high = ledger.shares
                limit = {"share": low, "extra": high, "rack": high, "fill": high}[self.why]
                require(size < limit, f"{member!r} has its share already")
                require(self.why != "extra" or size == low, f"{member!r} is below its share")
            if self.why in ("rack", "least_in_rack"):
                free = self.why == "least_in_rack" and facts.racks.get(member) is None
                require(
                    free or facts.in_rack(member, partition),
                    f"{partition} has no replica in the rack of {member!r}",
                )
            if self.why.startswith("least"):
                self._require_fewest(ledger, partition, size)
            ledger.give(member, partition)
        if self.why == "share" and ledger.shares is not None:
            self._require_turns(ledger.shares[0])
        ledger.remember()

    def _require_turns(self, low: int) -> None:
        """Require that the takers come in turn, each until it has its share."""
        sizes: dict[str, int] = {}
        for (_, member), size in zip(self.given, self.sizes, strict=True):
            sizes.setdefault(member, size)
        circle = list(sizes)
        at = 0
        for _, member in self.given:
            require(circle[at] == member, f"it is not the turn of {member!r}")
            sizes[member] += 1
            if sizes[member] == low:
                circle.remove(member)
            else:
                at += 1
            at %= max(len(circle), 1)

    def _require_fewest(self, ledger: Ledger, partition: PartitionId, size: int) -> None:
        facts = ledger.facts
        for other in ledger.takers(partition[0]):
            if ledger.size(other) >= size or ledger.size(other) >= facts.could_have(other):
                continue
            may = self.why == "least" or facts.racks.get(other) is None or facts.in_rack(other, partition)
            require(not may, f"{other!r} has fewer than {size}")


MOVES = ("balance", "previous", "share")


@dataclass(frozen=True, slots=True)
class Moved(Step):
    """A partition moved from one member to another.

    Attributes:
        moved: The partition.
        source: Its owner.
        target: Its new owner.
        source_size: How many the owner had before.
        target_size: How many the new owner had before.
        why: "balance", "previous" (the target had it in an earlier generation) or "share" (the target is below it).
        instead_of: The partition that the computation was about to move, if it moved this one in its place.
        unsubscribed: Whether the target does not subscribe to the topic, which the leader does not check.
    """

    kind = "moved"
    moved: PartitionId
    source: str
    target: str
    source_size: int
    target_size: int
    why: str
    instead_of: PartitionId | None = None
    unsubscribed: bool = False

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        what = f"{name(self.moved[0])} {self.moved[1]}"
        said = (
            f"{what} moves from {name(self.source)}, which had {self.source_size:,}, to {name(self.target)}, "
            f"which had {self.target_size:,}"
        )
        if self.why == "previous":
            said += " and owned it in an earlier generation"
        if self.why == "share":
            said += " and would stay below its share"
        if self.unsubscribed:
            said += "; it does not subscribe to the topic, which the leader does not check here"
        if self.instead_of is not None:
            said += (
                f"; in place of {name(self.instead_of[0])} {self.instead_of[1]}, so that no two partitions of a topic "
                "move in opposite directions"
            )
        return said + "."

    def _about(self) -> Iterable[PartitionId]:
        return (self.moved,)

    def _enter(self, ledger: Ledger) -> None:
        require(ledger.size(self.source) == self.source_size, "the owner had another number")
        require(ledger.size(self.target) == self.target_size, "the new owner had another number")
        subscribes = self.moved[0] in ledger.facts.topics[self.target]
        require(subscribes != self.unsubscribed, f"{self.target!r} does or does not subscribe")
        require(subscribes or self.why != "balance" or self.instead_of, f"{self.target!r} does not subscribe")
        if self.why == "balance" and self.instead_of is None:
            require(self.source_size > self.target_size + 1, "the move does not even anything out")
        if self.why == "previous":
            claimed = (self.instead_of or self.moved) in ledger.facts.claims[self.target]
            require(claimed, f"{self.target!r} never had it")
        ledger.take(self.source, self.moved)
        ledger.give(self.target, self.moved)


@dataclass(frozen=True, slots=True)
class Undone(Step):
    """All moves were taken back.

    Attributes:
        moves: How many.
    """

    kind = "undone"
    moves: int

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        moves = count(self.moves, "move")
        return f"After {moves} the group is no more even than before, so they are all taken back."

    def _enter(self, ledger: Ledger) -> None:
        ledger.undo()


@dataclass(frozen=True, slots=True)
class HeldBack(Step):
    """Partitions that nobody gets in this generation, because another member has to give them up first.

    Attributes:
        held: (partition, the member it is meant for, members that say they have it).
    """

    kind = "held_back"
    held: tuple[tuple[PartitionId, str, tuple[str, ...]], ...]

    def _text(self, partition: PartitionId | None) -> str:
        if partition is not None:
            _, member, owners = next(one for one in self.held if one[0] == partition)
            what = f"{name(partition[0])} {partition[1]} is meant for {name(member)}"
            return f"{what}, but {self._owners(owners)}: not assigned yet."
        by_member = grouped((partition, member) for partition, member, _ in self.held)
        everybody = sorted({owner for _, _, of_one in self.held for owner in of_one})
        why = self._owners(everybody)
        return f"Not assigned yet, because {why}; the next generation gives them to {lines(by_member)}."

    @staticmethod
    def _owners(owners: Sequence[str]) -> str:
        if not owners:
            return "the leader has just taken it from that very member"
        return f"{names(owners)} must stop reading first"

    def _about(self) -> Iterable[PartitionId]:
        return (partition for partition, _, _ in self.held)

    def _enter(self, ledger: Ledger) -> None:
        ledger.within_shares()
        ledger.shares = None
        for partition, member, owners in self.held:
            for owner in owners:
                require(
                    owner != member and partition in ledger.facts.claims[owner],
                    f"{owner!r} never had {partition}",
                )
            ledger.take(member, partition)


@dataclass(frozen=True, slots=True)
class GivenBack(Step):
    """Unassigned partitions that return to the members that say they have them, existing or not (librdkafka).

    Attributes:
        given: (partition, member).
    """

    kind = "given_back"
    given: tuple[tuple[PartitionId, str], ...]

    def _text(self, partition: PartitionId | None) -> str:
        pairs = self.given if partition is None else tuple(one for one in self.given if one[0] == partition)
        return (
            f"Partitions that nobody was given stay with the members that say they have them. {lines(grouped(pairs))}."
        )

    def _about(self) -> Iterable[PartitionId]:
        return (partition for partition, _ in self.given)

    def _enter(self, ledger: Ledger) -> None:
        for partition, member in self.given:
            require(partition in ledger.facts.claims[member], f"{member!r} never had {partition}")
            ledger.give(member, partition)
