"""The books of an explanation: every step is entered and checked; at the end they must show the assignment.

A step says what the computation did. Here the steps are replayed over the group's own facts (subscriptions, claims,
racks, partition counts), which come from the input and not from the computation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from assignors import Assignment, same
from assignors.assignment import PartitionId
from assignors.explain.clients import Facts
from assignors.explain.rocketmq import Fails, Pool
from assignors.explain.sticky_steps import (
    Generations,
    Given,
    GivenUp,
    HeldBack,
    Kept,
    Moved,
    NotBelieved,
    Undone,
)
from assignors.order import utf16
from assignors.rocketmq.strategies import ring_hash
from assignors.steps import CutIntoBlocks, DealtInRacks, DealtInTurn, GivenBack, Ordered, Result, Shares, Step
from assignors.words import grouped


class WrongStepError(Exception):
    """A step contradicts the group, an earlier step or the assignment."""


def require(holds: object, what: str) -> None:
    if not holds:
        raise WrongStepError(what)


def audit(steps: Iterable[Step], facts: Facts, assignment: Assignment) -> None:
    """Replay steps and require that they lead to the assignment, by topic names."""
    ledger = Ledger(facts)
    for step in steps:
        _ENTER[type(step)](ledger, step)
    ledger.within_shares()
    mine: dict[str, dict[str, list[int]]] = {member: {} for member in ledger.owned}
    for member, owned in ledger.owned.items():
        for topic, number in owned:
            mine[member].setdefault(topic, []).append(number)
    require(same({member: dict(topics) for member, topics in mine.items()}, assignment), "they do not add up")


class Ledger:
    """Who has what after the steps so far."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.owned: dict[str, dict[PartitionId, None]] = {member: {} for member in facts.topics}
        self.order: Sequence[str] = ()
        self.turn = 0  # position of the next member in that order, for partitions dealt in turn
        self.shares: tuple[int, int] | None = None
        self.generations: Mapping[str, int] = {}
        self.before_moves: dict[str, dict[PartitionId, None]] = {}

    def size(self, member: str) -> int:
        return len(self.owned[member])

    def give(self, member: str, partition: PartitionId) -> None:
        require(partition not in self.owned[member], f"{member!r} gets {partition} twice")
        self.owned[member][partition] = None

    def take(self, member: str, partition: PartitionId) -> None:
        require(partition in self.owned[member], f"{member!r} does not have {partition}")
        del self.owned[member][partition]

    def remember(self) -> None:
        self.before_moves = {member: dict(owned) for member, owned in self.owned.items()}

    def within_shares(self) -> None:
        if self.shares is not None:
            require(all(self.shares[0] <= len(of) <= self.shares[1] for of in self.owned.values()), "not its share")

    def require_claimed(self, member: str, partitions: Iterable[PartitionId]) -> None:
        require(self.facts.claims[member].issuperset(partitions), f"{member!r} never had one of {partitions}")


def _static_first(encode: Callable[[str], bytes | str]) -> Callable[[str, str | None], Any]:
    return lambda member, instance: (0, encode(instance)) if instance is not None else (1, encode(member))


_KEYS: Mapping[str, Callable[[str, str | None], Any]] = {
    "java": _static_first(utf16),
    "java_member_id": lambda member, _: utf16(member),
    "franz-go": _static_first(str),
    "kafka-python": _static_first(str),
    "member_id": lambda member, _: member,
}


def _ordered(ledger: Ledger, step: Ordered) -> None:
    instances = ledger.facts.instances
    require(sorted([*step.members, *step.left_out]) == sorted(ledger.facts.topics), "not each member once")
    if step.rule == "record":
        require(step.members == tuple(ledger.facts.topics), "not in the order of the record")
    elif step.rule == "librdkafka":
        for one, following in pairwise(step.members):
            mine, theirs = instances.get(one), instances.get(following)
            ascending = one < following if mine is None or theirs is None else mine < theirs
            require(ascending, "not in librdkafka's order")
    else:
        keys = [_KEYS[step.rule](member, instances.get(member)) for member in step.members]
        require(keys == sorted(keys), f"not in the order {step.rule}")
    ledger.order = step.members


def _subscribers(facts: Facts, topic: str) -> list[str]:
    return [member for member, topics in facts.topics.items() if topic in topics]


def _blocks(ledger: Ledger, step: CutIntoBlocks) -> None:
    quota, larger = divmod(step.partitions, len(step.takers))
    cut: dict[str, list[range]] = {}
    start = 0
    for position, member in enumerate(step.takers):
        stop = start + quota + (position < larger)
        cut.setdefault(member, []).append(range(start, stop))
        start = stop
    held = {member: range(first, last + 1) for member, first, last in step.blocks}
    for member, blocks in cut.items():
        joined = range(blocks[0].start, blocks[-1].stop)
        require(held.get(member, range(0)) in (joined, blocks[-1]) or not joined, f"{member!r} has another block")
    for topic in step.topics:
        require(ledger.facts.counts.get(topic) == step.partitions, f"{topic!r} has another partition count")
        require(set(_subscribers(ledger.facts, topic)) == {*step.takers, *step.left_out}, "other subscribers")
        for member, block in held.items():
            for number in block:
                ledger.give(member, (topic, number))
    if ledger.order:
        positions = [ledger.order.index(member) for member in step.takers]
        require(positions == sorted(positions), "the takers are not in the order of the members")


def _in_racks(ledger: Ledger, step: DealtInRacks) -> None:
    facts = ledger.facts
    quota, larger = divmod(step.partitions, len(step.takers))
    given = [*step.in_racks, *step.rest]
    require(sorted(n for _, n in given) == list(range(step.partitions)), "not every partition is dealt once")
    sizes = Counter(member for member, _ in given)
    require(max(sizes.values(), default=0) <= quota + (larger > 0), "a member gets more than its share")
    require(sum(size > quota for size in sizes.values()) <= larger, "too many members get one more")
    for topic in step.topics:
        require(facts.counts.get(topic) == step.partitions, f"{topic!r} has another partition count")
        require(set(_subscribers(facts, topic)) == set(step.takers), f"{topic!r} has other subscribers")
        for member, number in step.in_racks:
            require(not facts.racks.get(member) or facts.in_rack(member, (topic, number)), "not in its rack")
        for member, number in given:
            ledger.give(member, (topic, number))


def _in_turn(ledger: Ledger, step: DealtInTurn) -> None:
    order, topics = ledger.order, ledger.facts.topics
    for topic, number, member in step.dealt:
        at = ledger.turn
        while topic not in topics[order[at % len(order)]]:
            at += 1
            require(at < ledger.turn + len(order), f"nobody may have {topic!r}")
        require(order[at % len(order)] == member, f"the turn is not at {member!r}")
        ledger.turn = (at + 1) % len(order)
        ledger.give(member, (topic, number))
    if not step.mixed:
        numbers = [number for _, number, _ in step.dealt]
        require(numbers == list(range(ledger.facts.counts[step.dealt[0][0]])), "not the topic's numbers")


def _shares(ledger: Ledger, step: Shares) -> None:
    require(step.members == len(ledger.facts.topics), "the group has another number of members")
    wanted = {topic for topics in ledger.facts.topics.values() for topic in topics}
    for member, topics in ledger.facts.topics.items():
        require(topics == wanted or member in step.unlike, f"{member!r} subscribes to other topics")
    total = sum(ledger.facts.counts.get(topic, 0) for topic in wanted)
    require(total == step.partitions, "the topics have another number of partitions")
    low, more = divmod(step.partitions, step.members)
    ledger.shares = low, low + (more > 0)


def _generations(ledger: Ledger, step: Generations) -> None:
    require(set(step.by_member) <= set(ledger.facts.topics), "it names a stranger")
    ledger.generations = step.by_member


def _claimants(facts: Facts, partition: PartitionId) -> list[str]:
    return [member for member, claimed in facts.claims.items() if partition in claimed]


def _not_believed(ledger: Ledger, step: NotBelieved) -> None:
    facts, generations = ledger.facts, ledger.generations
    wanted = {topic for topics in facts.topics.values() for topic in topics}
    ledger.require_claimed(step.member, step.claimed)
    for partition in step.claimed:
        exists = facts.counts.get(partition[0], 0) > 0 and partition[0] in wanted
        claimants = _claimants(facts, partition)
        holds = {
            "gone": not exists,
            "beyond": exists and not facts.exists(partition),
            "twice": len(claimants) > 1,
            "newer": step.other in claimants,
        }
        require(holds.get(step.why, True), f"{partition} is not {step.why}")
    if step.why in ("newer", "old"):
        require(generations[step.member] == step.mine < step.theirs, "the generations are others")
    if step.why == "newer":
        require(generations[step.other or ""] == step.theirs, "the generations are others")


def _kept(ledger: Ledger, step: Kept) -> None:
    ledger.require_claimed(step.member, step.kept)
    for partition in step.kept:
        ledger.give(step.member, partition)
    require(len(step.kept) <= step.had, "it keeps more than it had")
    if ledger.shares is not None:
        require(ledger.size(step.member) <= ledger.shares[1], f"{step.member!r} keeps more than its share")
    ledger.remember()


def _given_up(ledger: Ledger, step: GivenUp) -> None:
    facts, member = ledger.facts, step.member
    ledger.require_claimed(member, step.lost)
    for partition in step.lost:
        require(partition not in ledger.owned[member], f"{member!r} still has {partition}")
        holds = {
            "subscription": partition[0] not in facts.topics[member],
            "rack": facts.racks.get(member) and not facts.in_rack(member, partition),
            "twice": len(_claimants(facts, partition)) > 1,
        }
        require(holds.get(step.why, True), f"{partition} is not given up for {step.why}")
    if step.why == "share" and ledger.shares is not None:
        require(ledger.size(member) >= ledger.shares[0], f"{member!r} is below its share")


def _given(ledger: Ledger, step: Given) -> None:
    facts, why = ledger.facts, step.why
    for (partition, member), size in zip(step.given, step.sizes, strict=True):
        require(ledger.size(member) == size, f"{member!r} has {ledger.size(member)} partitions, not {size}")
        counted = ledger.shares is not None and why != "fill"
        require(counted or partition[0] in facts.topics[member], f"{member!r} does not subscribe to {partition[0]!r}")
        if ledger.shares is not None:
            low, high = ledger.shares
            limit = {"share": low, "extra": high, "rack": high, "fill": high}[why]
            require(size < limit, f"{member!r} has its share already")
            require(why != "extra" or size == low, f"{member!r} is below its share")
        if why in ("rack", "least_in_rack"):
            free = why == "least_in_rack" and facts.racks.get(member) is None
            require(free or facts.in_rack(member, partition), f"{partition} has no replica in the rack of {member!r}")
        if why.startswith("least"):
            for other in _subscribers(facts, partition[0]):
                could_have = sum(facts.counts.get(topic, 0) for topic in facts.topics[other])
                may = why == "least" or facts.racks.get(other) is None or facts.in_rack(other, partition)
                fewer = ledger.size(other) < min(size, could_have)
                require(not may or not fewer, f"{other!r} has fewer than {size}")
        ledger.give(member, partition)
    if why == "share" and ledger.shares is not None:
        _require_turns(step, ledger.shares[0])
    ledger.remember()


def _require_turns(step: Given, low: int) -> None:
    """Require that the takers come in turn, each until it has its share."""
    sizes: dict[str, int] = {}
    for (_, member), size in zip(step.given, step.sizes, strict=True):
        sizes.setdefault(member, size)
    circle = list(sizes)
    at = 0
    for _, member in step.given:
        require(circle[at] == member, f"it is not the turn of {member!r}")
        sizes[member] += 1
        if sizes[member] == low:
            circle.remove(member)
        else:
            at += 1
        at %= max(len(circle), 1)


def _moved(ledger: Ledger, step: Moved) -> None:
    sizes = ledger.size(step.source), ledger.size(step.target)
    require(sizes == (step.source_size, step.target_size), "the members had other numbers")
    subscribes = step.moved[0] in ledger.facts.topics[step.target]
    require(subscribes != step.unsubscribed, f"{step.target!r} does or does not subscribe")
    require(subscribes or step.why != "balance" or step.instead_of, f"{step.target!r} does not subscribe")
    if step.why == "balance" and step.instead_of is None:
        require(step.source_size > step.target_size + 1, "the move does not even anything out")
    if step.why == "previous":
        ledger.require_claimed(step.target, [step.instead_of or step.moved])
    ledger.take(step.source, step.moved)
    ledger.give(step.target, step.moved)


def _undone(ledger: Ledger, _step: Undone) -> None:
    require(ledger.before_moves, "there is nothing to take back")
    ledger.owned = {member: dict(owned) for member, owned in ledger.before_moves.items()}


def _held_back(ledger: Ledger, step: HeldBack) -> None:
    ledger.within_shares()
    ledger.shares = None
    for partition, member, owners in step.held:
        require(member not in owners, f"{member!r} waits for itself")
        for owner in owners:
            ledger.require_claimed(owner, [partition])
        ledger.take(member, partition)


def _given_back(ledger: Ledger, step: GivenBack) -> None:
    for partition, member in step.given:
        ledger.require_claimed(member, [partition])
        ledger.give(member, partition)


def _result(ledger: Ledger, step: Result) -> None:
    require({m: ledger.size(m) for m in ledger.owned} == dict(step.sizes), "members have other numbers")
    require(sum(step.sizes.values()) == step.assigned, "the sum is another")


def _pool(ledger: Ledger, step: Pool) -> None:
    """RocketMQ's rules a second time, as simply as possible."""
    queues, clients = step.queues, step.clients
    if step.in_order:
        keys = [utf16(client) for client in clients]
        require(keys == sorted(keys), "the clients are not in order")
    quota, larger = divmod(len(queues), len(clients))
    expected: dict[str, list[PartitionId]] = {client: [] for client in clients}
    ring = {ring_hash(f"{client}-{node}"): client for client in clients for node in range(10)}
    positions = sorted(ring)
    start = 0
    for index, client in enumerate(clients):
        stop = start + quota + (index < larger)
        own = queues[quota * index : quota * (index + 1)]
        tail = queues[quota * len(clients) :][index : index + 1]
        expected[client] = list(
            {
                "AVG": queues[start:stop],
                "AVG_BY_CIRCLE": queues[index :: len(clients)],
                "CONFIG": queues,
                "MACHINE_ROOM": (*own, *tail),
                "CONSISTENT_HASH": (),
            }[step.rule]
        )
        start = stop
    for queue, text in zip(queues, step.texts, strict=True) if step.rule == "CONSISTENT_HASH" else ():
        expected[ring[positions[bisect_left(positions, ring_hash(text)) % len(positions)]]].append(queue)
    require({c: q for c, q in expected.items() if q} == grouped(step.given), f"{step.rule} gives something else")
    for queue, client in step.given:
        ledger.give(client, queue)


def _fails(ledger: Ledger, step: Fails) -> None:
    require(set(step.clients) <= set(ledger.owned), "it names a stranger")


_ENTER: Mapping[type[Step], Callable[[Ledger, Any], None]] = {
    Ordered: _ordered,
    CutIntoBlocks: _blocks,
    DealtInRacks: _in_racks,
    DealtInTurn: _in_turn,
    Shares: _shares,
    Generations: _generations,
    NotBelieved: _not_believed,
    Kept: _kept,
    GivenUp: _given_up,
    Given: _given,
    Moved: _moved,
    Undone: _undone,
    HeldBack: _held_back,
    GivenBack: _given_back,
    Result: _result,
    Pool: _pool,
    Fails: _fails,
}
