"""Topics dealt afresh: in blocks, in blocks by racks, in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assignors.assignment import PartitionId
from assignors.explain.ledger import Ledger, require
from assignors.explain.steps.step import MOST_LINES, Step, lines
from assignors.explain.words import count, grouped, name, names, numbers, shares


@dataclass(frozen=True, slots=True)
class CutIntoBlocks(Step):
    """Topics cut into one block per subscriber.

    Attributes:
        topics: Topics that are cut alike.
        partitions: Partition count of each.
        takers: Subscribers in order; one that lists a topic twice occurs twice.
        blocks: Block of each member that gets any, as (member, first, last).
        left_out: Subscribers that the leader forgets.
    """

    kind = "blocks"
    topics: tuple[str, ...]
    partitions: int
    takers: tuple[str, ...]
    blocks: tuple[tuple[str, int, int], ...]
    left_out: tuple[str, ...] = ()

    def _text(self, partition: PartitionId | None) -> str:
        quota, larger = divmod(self.partitions, len(self.takers))
        if partition is not None:
            owner = next((b for b in self.blocks if b[1] <= partition[1] <= b[2]), None)
            if owner is None:
                return f"{name(partition[0])} {partition[1]} is in no member's block."
            position = self.takers.index(owner[0]) + 1
            return (
                f"{name(partition[0])} has {count(self.partitions, 'partition')} and {self._takers()}: "
                f"{shares(quota, larger)}. {name(owner[0])} is number {position} in the order and gets "
                f"{numbers(range(owner[1], owner[2] + 1))}."
            )
        has = "has" if len(self.topics) == 1 else "each have"
        listed = "; ".join(f"{name(m)}: {numbers(range(a, b + 1))}" for m, a, b in self.blocks[:MOST_LINES])
        left = len(self.blocks) - MOST_LINES
        more = "" if left <= 0 else f"; and {count(left, 'more member')}"
        said = (
            f"{names(self.topics)} {has} {count(self.partitions, 'partition')} and {self._takers()}: "
            f"{shares(quota, larger)}. In order: {listed}{more}."
        )
        twice = [member for member, times in Counter(self.takers).items() if times > 1]
        if twice:
            verbs = ("lists", "counts") if len(twice) == 1 else ("list", "count")
            said += f" {names(twice)} {verbs[0]} the topic more than once and {verbs[1]} as often."
        nothing = [member for member in dict.fromkeys(self.takers) if member not in {b[0] for b in self.blocks}]
        if nothing:
            said += f" {names(nothing)} {'gets' if len(nothing) == 1 else 'get'} nothing of it."
        lost = self._lost()
        if lost:
            said += (
                f" Partitions {numbers(lost)} stay without an owner: in this library a member's later block replaces "
                "its earlier one."
            )
        if self.left_out:
            said += (
                f" {names(self.left_out)} {'is' if len(self.left_out) == 1 else 'are'} left out: this library keeps "
                "only the last unbroken run of static members and of others in the order of the group's record."
            )
        return said

    def _takers(self) -> str:
        once = len(set(self.takers)) == len(self.takers)
        return count(len(self.takers), "subscriber" if once else "share")

    def _lost(self) -> list[int]:
        held = {number for _, first, last in self.blocks for number in range(first, last + 1)}
        return [number for number in range(self.partitions) if number not in held]

    def _about(self) -> Iterable[PartitionId]:
        return ((topic, number) for topic in self.topics for number in range(self.partitions))

    def _enter(self, ledger: Ledger) -> None:
        facts = ledger.facts
        quota, larger = divmod(self.partitions, len(self.takers))
        cut: dict[str, list[range]] = {}
        start = 0
        for position, member in enumerate(self.takers):
            stop = start + quota + (position < larger)
            cut.setdefault(member, []).append(range(start, stop))
            start = stop
        held = {member: range(first, last + 1) for member, first, last in self.blocks}
        for member, blocks in cut.items():
            joined = range(blocks[0].start, blocks[-1].stop)
            require(held.get(member, range(0)) in (joined, blocks[-1]) or not joined, f"{member!r} has another block")
        for topic in self.topics:
            require(facts.counts.get(topic) == self.partitions, f"{topic!r} has another partition count")
            subscribers = set(facts.subscribers(topic))
            require(subscribers == {*self.takers, *self.left_out}, f"{topic!r} has other subscribers")
            for member, block in held.items():
                for number in block:
                    ledger.give(member, (topic, number))
        if ledger.order:
            position_of = {member: position for position, member in enumerate(ledger.order)}
            positions = [position_of[member] for member in self.takers]
            require(positions == sorted(positions), "the takers are not in the order of the members")


@dataclass(frozen=True, slots=True)
class DealtInRacks(Step):
    """Topics of which members first get partitions in their racks, then the rest, within equal shares.

    Attributes:
        topics: Topics dealt alike.
        partitions: Partition count of each.
        takers: Subscribers in order.
        in_racks: (member, partition) given by racks, in order.
        rest: The same without regard to racks.
    """

    kind = "blocks_in_racks"
    topics: tuple[str, ...]
    partitions: int
    takers: tuple[str, ...]
    in_racks: tuple[tuple[str, int], ...]
    rest: tuple[tuple[str, int], ...]

    def _text(self, partition: PartitionId | None) -> str:
        quota, larger = divmod(self.partitions, len(self.takers))
        topic = self.topics[0]
        if partition is not None:
            for pairs, why in (
                (self.in_racks, "it is the first in the order with room that may have it by its rack"),
                (self.rest, "it had room left, whatever its rack"),
            ):
                for member, number in pairs:
                    if number == partition[1]:
                        return f"{name(partition[0])} {partition[1]} goes to {name(member)}: {why}."
            return f"{name(partition[0])} {partition[1]} goes to nobody."
        more = "" if not larger else f", and one more for up to {larger:,} of them"
        said = (
            f"{names(self.topics)} ({count(self.partitions, 'partition')}{' each' if len(self.topics) > 1 else ''}, "
            f"{count(len(self.takers), 'subscriber')}): {quota:,} each{more}. "
        )
        by_rack = grouped(((topic, number), member) for member, number in self.in_racks)
        rest = grouped(((topic, number), member) for member, number in self.rest)
        if by_rack:
            lists = {m: [n for _, n in p] for m, p in by_rack.items()}
            said += f"By racks first: {self._listed(lists)}. "
        if rest:
            lists = {m: [n for _, n in p] for m, p in rest.items()}
            said += f"The rest to those with room, in order, whatever their racks: {self._listed(lists)}."
        return said.strip()

    @staticmethod
    def _listed(lists: Mapping[str, list[int]]) -> str:
        shown = [f"{name(member)}: {numbers(mine)}" for member, mine in list(lists.items())[:MOST_LINES]]
        left = len(lists) - MOST_LINES
        return "; ".join(shown) + ("" if left <= 0 else f"; and {count(left, 'more member')}")

    def _about(self) -> Iterable[PartitionId]:
        return ((topic, number) for topic in self.topics for number in range(self.partitions))

    def _enter(self, ledger: Ledger) -> None:
        facts = ledger.facts
        quota, larger = divmod(self.partitions, len(self.takers))
        given = [*self.in_racks, *self.rest]
        require(sorted(n for _, n in given) == list(range(self.partitions)), "not every partition is dealt once")
        sizes = Counter(member for member, _ in given)
        require(max(sizes.values(), default=0) <= quota + (larger > 0), "a member gets more than its share")
        require(sum(size > quota for size in sizes.values()) <= larger, "too many members get one more")
        for topic in self.topics:
            require(facts.counts.get(topic) == self.partitions, f"{topic!r} has another partition count")
            require(set(facts.subscribers(topic)) == set(self.takers), f"{topic!r} has other subscribers")
            for member, number in self.in_racks:
                fits = not facts.racks.get(member) or facts.in_rack(member, (topic, number))
                require(fits, f"{member!r} has no rack of {topic!r} {number}")
            for member, number in given:
                ledger.give(member, (topic, number))


@dataclass(frozen=True, slots=True)
class DealtInTurn(Step):
    """Partitions of one topic dealt one by one to the members in turn, passing over those that do not subscribe.

    Attributes:
        dealt: (topic, partition, member) in order; of one topic, or of all where they are mixed (sarama).
        mixed: Whether the partitions of all topics are in one order of their own.
    """

    kind = "turns"
    dealt: tuple[tuple[str, int, str], ...]
    mixed: bool = False

    def _text(self, partition: PartitionId | None) -> str:
        if partition is not None:
            at = next(i for i, (t, n, _) in enumerate(self.dealt) if (t, n) == partition)
            member = self.dealt[at][2]
            first = "the turn is at it" if not at else f"the turn comes to it after {name(self.dealt[at - 1][2])}"
            return f"{name(partition[0])} {partition[1]} goes to {name(member)}: {first}."
        lists = grouped(((topic, number), member) for topic, number, member in self.dealt)
        what = "All partitions, sorted as texts" if self.mixed else name(self.dealt[0][0])
        return f"{what}: the turn is at {name(self.dealt[0][2])}. {lines(lists)}."

    def _about(self) -> Iterable[PartitionId]:
        return ((topic, number) for topic, number, _ in self.dealt)

    def _enter(self, ledger: Ledger) -> None:
        order, topics = ledger.order, ledger.facts.topics
        for topic, number, member in self.dealt:
            at = ledger.turn
            while topic not in topics[order[at % len(order)]]:
                at += 1
                require(at < ledger.turn + len(order), f"nobody may have {topic!r}")
            require(order[at % len(order)] == member, f"the turn is not at {member!r}")
            ledger.turn = (at + 1) % len(order)
            ledger.give(member, (topic, number))
        if not self.mixed:
            topic = self.dealt[0][0]
            require([n for _, n, _ in self.dealt] == list(range(ledger.facts.counts[topic])), "not the topic's numbers")
