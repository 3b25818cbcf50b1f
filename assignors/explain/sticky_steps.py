"""Steps of strategies that let members keep partitions: claims, what is kept and given up, and what changes hands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors.assignment import PartitionId
from assignors.steps import Step
from assignors.words import count, name, names, one, partition_lines, partition_names


@dataclass(frozen=True, slots=True)
class Generations(Step):
    """The generations in which members say they had their partitions.

    Attributes:
        by_member: Generation of each member that has claims; -1 for none.
    """

    kind = "generations"
    by_member: Mapping[str, int]

    def text(self) -> str:
        parts = []
        for generation in sorted(set(self.by_member.values()), reverse=True):
            who = names([member for member, theirs in self.by_member.items() if theirs == generation])
            parts.append(f"{'no generation' if generation < 0 else f'generation {generation}'}: {who}")
        return f"Members say which partitions they had. {'; '.join(parts)}."


_TWICE = "another member of the same generation claims them too, so they count as nobody's"

_CLAIM_WORDS = {
    "gone": "no member's topic is so called any more",
    "beyond": "the topic does not have them",
    "twice": _TWICE,
    "newer": "{other} claims them in a newer generation ({theirs} after {mine})",
    "old": "it is of generation {mine}, and only claims of the highest one, {theirs}, count",
    "other": "the leader takes another member for their owner, or nobody",
}


@dataclass(frozen=True, slots=True)
class NotBelieved(Step):
    """Claims of a member that do not count.

    Attributes:
        member: The member.
        claimed: The partitions.
        why: One of `_CLAIM_WORDS`.
        other: The member whose claim counts instead, for "newer".
        mine: Generation of the member's claims; -1 for none.
        theirs: The generation that counts.
    """

    kind = "not_believed"
    member: str
    claimed: tuple[PartitionId, ...]
    why: str
    other: str | None = None
    mine: int = -1
    theirs: int = -1

    def text(self) -> str:
        return self._said(self.claimed)

    def text_of(self, partition: PartitionId) -> str:
        return self._said((partition,))

    def _said(self, what: Sequence[PartitionId]) -> str:
        mine = "none" if self.mine < 0 else self.mine
        reason = _CLAIM_WORDS[self.why].format(other=name(self.other or ""), mine=mine, theirs=self.theirs)
        verb = "does not count" if len(what) == 1 else "do not count"
        return f"{name(self.member)} says it has {partition_names(what)}, which {verb}: {reason}."

    def about(self) -> Iterable[PartitionId]:
        return self.claimed


@dataclass(frozen=True, slots=True)
class Kept(Step):
    """What a member keeps of its partitions.

    Attributes:
        member: The member.
        kept: Partitions that it keeps.
        had: How many it had that count.
    """

    kind = "kept"
    member: str
    kept: tuple[PartitionId, ...]
    had: int

    def text(self) -> str:
        amount = f"{len(self.kept):,} of the {self.had:,} it had"
        if len(self.kept) == self.had:
            amount = "what it had" if self.had > 1 else "the one it had"
        return f"{name(self.member)} keeps {amount}: {partition_names(self.kept)}."

    def text_of(self, partition: PartitionId) -> str:
        return f"{name(self.member)} had {one(partition)} and keeps it."

    def about(self) -> Iterable[PartitionId]:
        return self.kept


_LOST_WORDS = {
    "share": "it may have no more than its share",
    "share_of_topic": "it may have no more than its share of the topic",
    "subscription": "it does not subscribe to the topic any more",
    "rack": "they have no replica in its rack",
    "twice": _TWICE,
}


@dataclass(frozen=True, slots=True)
class GivenUp(Step):
    """What a member has to give up.

    Attributes:
        member: The member.
        lost: Partitions.
        why: One of `_LOST_WORDS`.
    """

    kind = "given_up"
    member: str
    lost: tuple[PartitionId, ...]
    why: str

    def text(self) -> str:
        return f"{name(self.member)} gives up {partition_names(self.lost)}: {_LOST_WORDS[self.why]}."

    def text_of(self, partition: PartitionId) -> str:
        return f"{name(self.member)} gives up {one(partition)}: {_LOST_WORDS[self.why]}."

    def about(self) -> Iterable[PartitionId]:
        return self.lost


# Why free partitions go to whom: about all of them, and about one.
WHYS = {
    "share": ("Members below their share take the free partitions in turn", "it was below its share, with {size}"),
    "extra": (
        "What is left goes, one each, to members that may have one more",
        "one more was left over, and it was among those that may have one more",
    ),
    "rack": (
        "Free partitions go to members in a rack of a replica that have room",
        "it is in a rack of a replica and had room, with {size}",
    ),
    "least": (
        "Each free partition goes to the member with the fewest among the topic's subscribers",
        "with {size} it had the fewest among the topic's subscribers that could take more",
    ),
    "least_in_rack": (
        (
            "Each free partition goes to the member with the fewest among those of the topic's subscribers that have "
            "no rack or one of its racks"
        ),
        "with {size} it had the fewest among the subscribers that have no rack or one of the partition's",
    ),
    "fill": (
        "Free partitions go to the members below their share, one filled up before the next",
        "it was below its share, with {size}",
    ),
    "fill_topic": (
        "Free partitions go to the members below their share of the topic, one filled up before the next",
        "it was below its share of the topic",
    ),
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

    def text(self) -> str:
        return f"{WHYS[self.why][0]}. {partition_lines(self.given)}."

    def text_of(self, partition: PartitionId) -> str:
        (_, member), size = next(pair for pair in zip(self.given, self.sizes, strict=True) if pair[0][0] == partition)
        reason = WHYS[self.why][1].format(size=count(size, "partition"))
        return f"{one(partition)} was free and goes to {name(member)}: {reason}."

    def about(self) -> Iterable[PartitionId]:
        return (partition for partition, _ in self.given)


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

    def text(self) -> str:
        said = (
            f"{one(self.moved)} moves from {name(self.source)}, which had {self.source_size:,}, to "
            f"{name(self.target)}, which had {self.target_size:,}"
        )
        if self.why == "previous":
            said += " and owned it in an earlier generation"
        if self.why == "share":
            said += " and would stay below its share"
        if self.unsubscribed:
            said += "; it does not subscribe to the topic, which the leader does not check here"
        if self.instead_of is not None:
            said += (
                f"; in place of {one(self.instead_of)}, so that no two partitions of a topic move in opposite "
                "directions"
            )
        return said + "."

    def about(self) -> Iterable[PartitionId]:
        return (self.moved,)


@dataclass(frozen=True, slots=True)
class Undone(Step):
    """All moves were taken back.

    Attributes:
        moves: How many.
    """

    kind = "undone"
    moves: int

    def text(self) -> str:
        moves = count(self.moves, "move")
        return f"After {moves} the group is no more even than before, so they are all taken back."


@dataclass(frozen=True, slots=True)
class HeldBack(Step):
    """Partitions that nobody gets in this generation, because another member has to give them up first.

    Attributes:
        held: (partition, the member it is meant for, members that say they have it).
    """

    kind = "held_back"
    held: tuple[tuple[PartitionId, str, tuple[str, ...]], ...]

    def text(self) -> str:
        owners = sorted({owner for _, _, of_one in self.held for owner in of_one})
        given = partition_lines((partition, member) for partition, member, _ in self.held)
        return f"Not assigned yet, because {_must_stop(owners)}; the next generation gives them to {given}."

    def text_of(self, partition: PartitionId) -> str:
        _, member, owners = next(held for held in self.held if held[0] == partition)
        return f"{one(partition)} is meant for {name(member)}, but {_must_stop(owners)}: not assigned yet."

    def about(self) -> Iterable[PartitionId]:
        return (partition for partition, _, _ in self.held)


def _must_stop(owners: Sequence[str]) -> str:
    return (
        f"{names(owners)} must stop reading first" if owners else "the leader has just taken it from that very member"
    )
