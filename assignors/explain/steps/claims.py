"""What members had before, which of it counts, and what they keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assignors.assignment import PartitionId
from assignors.explain.ledger import Ledger, require
from assignors.explain.steps.step import Step
from assignors.explain.words import count, name, names, partition_names


@dataclass(frozen=True, slots=True)
class Shares(Step):
    """How many partitions each member may have.

    Attributes:
        partitions: Partitions of all topics together.
        members: Number of members.
        unlike: Members that subscribe to less and are counted all the same.
    """

    kind = "shares"
    partitions: int
    members: int
    unlike: tuple[str, ...] = ()

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        low, more = divmod(self.partitions, self.members)
        each = f"{low:,} each" if not more else f"{low:,} each, and {count(more, 'member')} one more"
        said = (
            f"All members subscribe to the same topics: {count(self.partitions, 'partition')} for "
            f"{count(self.members, 'member')} make {each}."
        )
        if self.unlike:
            verb = "subscribes" if len(self.unlike) == 1 else "subscribe"
            said += (
                f" {names(self.unlike)} {verb} to less and {'is' if len(self.unlike) == 1 else 'are'} counted too: the "
                "leader only compares the first subscription that is not empty with the later ones, and their lengths."
            )
        return said

    def _enter(self, ledger: Ledger) -> None:
        require(self.members == len(ledger.facts.topics), "the group has another number of members")
        wanted = {topic for topics in ledger.facts.topics.values() for topic in topics}
        for member, topics in ledger.facts.topics.items():
            require(topics == wanted or member in self.unlike, f"{member!r} subscribes to other topics")
        total = sum(ledger.facts.counts.get(topic, 0) for topic in wanted)
        require(total == self.partitions, "the topics have another number of partitions")
        low, more = divmod(self.partitions, self.members)
        ledger.shares = low, low + (more > 0)


_CLAIM_WORDS = {
    "gone": "no member's topic is so called any more",
    "beyond": "the topic does not have them",
    "twice": "another member of the same generation claims them too, so they count as nobody's",
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

    def _text(self, partition: PartitionId | None) -> str:
        what = self.claimed if partition is None else (partition,)
        reason = _CLAIM_WORDS[self.why].format(
            other=name(self.other or ""), mine=_generation(self.mine), theirs=self.theirs
        )
        verb = "does not count" if len(what) == 1 else "do not count"
        return f"{name(self.member)} says it has {partition_names(what)}, which {verb}: {reason}."

    def _about(self) -> Iterable[PartitionId]:
        return self.claimed

    def _enter(self, ledger: Ledger) -> None:
        facts = ledger.facts
        wanted = {topic for topics in facts.topics.values() for topic in topics}
        generation = ledger.generations
        for partition in self.claimed:
            require(partition in facts.claims[self.member], f"{self.member!r} does not claim {partition}")
            exists = facts.counts.get(partition[0], 0) > 0 and partition[0] in wanted
            claimants = facts.claimants(partition)
            if self.why == "gone":
                require(not exists, f"{partition[0]!r} exists")
            elif self.why == "beyond":
                require(exists and not facts.exists(partition), f"{partition} exists")
            elif self.why == "twice":
                require(len(claimants) > 1, f"{partition} is claimed once")
            elif self.why == "newer":
                require(self.other in claimants, f"{self.other!r} does not claim {partition}")
        if self.why in ("newer", "old"):
            require(generation[self.member] == self.mine < self.theirs, "the generations are others")
        if self.why == "newer":
            require(generation[self.other or ""] == self.theirs, "the generations are others")


def _generation(number: int) -> str:
    return "none" if number < 0 else str(number)


@dataclass(frozen=True, slots=True)
class Generations(Step):
    """The generations in which members say they had their partitions.

    Attributes:
        by_member: Generation of each member that has claims; -1 for none.
    """

    kind = "generations"
    by_member: Mapping[str, int]

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        listed = sorted(set(self.by_member.values()), reverse=True)
        who = {n: [m for m, g in self.by_member.items() if g == n] for n in listed}
        parts = [f"generation {n}: {names(who[n])}" if n >= 0 else f"no generation: {names(who[n])}" for n in listed]
        return f"Members say which partitions they had. {'; '.join(parts)}."

    def _enter(self, ledger: Ledger) -> None:
        require(set(self.by_member) <= set(ledger.facts.topics), "it names a stranger")
        ledger.generations = self.by_member


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

    def _text(self, partition: PartitionId | None) -> str:
        if partition is not None:
            return f"{name(self.member)} had {name(partition[0])} {partition[1]} and keeps it."
        if len(self.kept) == self.had:
            amount = "what it had" if self.had > 1 else "the one it had"
        else:
            amount = f"{len(self.kept):,} of the {self.had:,} it had"
        return f"{name(self.member)} keeps {amount}: {partition_names(self.kept)}."

    def _about(self) -> Iterable[PartitionId]:
        return self.kept

    def _enter(self, ledger: Ledger) -> None:
        for partition in self.kept:
            require(partition in ledger.facts.claims[self.member], f"{self.member!r} never had {partition}")
            ledger.give(self.member, partition)
        require(len(self.kept) <= self.had, "it keeps more than it had")
        if ledger.shares is not None:
            require(ledger.size(self.member) <= ledger.shares[1], f"{self.member!r} keeps more than its share")
        ledger.remember()


_OVER_WORDS = {
    "share": "it may have no more than its share",
    "share_of_topic": "it may have no more than its share of the topic",
    "subscription": "it does not subscribe to the topic any more",
    "rack": "they have no replica in its rack",
    "twice": "another member of the same generation claims them too, so they count as nobody's",
}


@dataclass(frozen=True, slots=True)
class GivenUp(Step):
    """What a member has to give up.

    Attributes:
        member: The member.
        lost: Partitions.
        why: One of `_OVER_WORDS`.
    """

    kind = "given_up"
    member: str
    lost: tuple[PartitionId, ...]
    why: str

    def _text(self, partition: PartitionId | None) -> str:
        what = self.lost if partition is None else (partition,)
        return f"{name(self.member)} gives up {partition_names(what)}: {_OVER_WORDS[self.why]}."

    def _about(self) -> Iterable[PartitionId]:
        return self.lost

    def _enter(self, ledger: Ledger) -> None:
        facts = ledger.facts
        for partition in self.lost:
            require(partition in facts.claims[self.member], f"{self.member!r} never had {partition}")
            require(partition not in ledger.owned[self.member], f"{self.member!r} still has {partition}")
            if self.why == "subscription":
                require(
                    partition[0] not in facts.topics[self.member],
                    f"{self.member!r} subscribes to {partition[0]!r}",
                )
            elif self.why == "rack":
                require(facts.racks.get(self.member), f"{self.member!r} has no rack")
                require(not facts.in_rack(self.member, partition), f"{partition} is in the rack of {self.member!r}")
            elif self.why == "twice":
                require(len(facts.claimants(partition)) > 1, f"{partition} is claimed once")
        if self.why == "share" and ledger.shares is not None:
            require(ledger.size(self.member) >= ledger.shares[0], f"{self.member!r} is below its share")
