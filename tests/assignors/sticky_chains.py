"""Chains of rebalances: each decision's output is the next one's input, and things go wrong in between.

Members join, leave and change their topics; partitions and topics are added and removed; members stay behind in an old
generation, claim another's partitions, or send user data of another version, of another library, or garbage.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from assignors import Assignment, Group, PartitionRacks, Subscription, to_pairs
from assignors.clients.sticky.claims import write_sticky
from tests.assignors.random_groups import RACKS, names, random_ids
from tests.oracle.java_assignors import Case

Decide = Callable[[Case], Assignment | None]
"""The leader's decision; None when it fails (the chain then ends)."""

_Pairs = list[tuple[str, int]]


@dataclass
class _Member:
    member_id: str
    topics: tuple[str, ...]
    instance: str | None
    rack: str | None
    new_client: bool
    held: _Pairs = field(default_factory=list)
    generation: int | None = None


def chain(
    random: Random,
    strategy: str,
    decide: Decide,
    *,
    steps: int = 10,
    racks: bool = False,
    tidy: bool = False,
    large: bool = False,
    kafka_python: bool = False,
) -> Iterator[Case]:
    """Yield the decisions of one group.

    Args:
        random: Source of randomness.
        strategy: "sticky" or "cooperative-sticky".
        decide: The leader.
        steps: Most decisions.
        racks: Whether members and replicas have racks.
        large: Dozens of members and topics instead of a few.
        kafka_python: Whether members write like kafka-python: no generation, and the version before the user data.
        tidy: Whether nothing goes wrong: every member claims its assignment, in the previous generation.
    """
    topics = [f"topic{n}" for n in range(20)] if large else names(random, random.choice((1, 1, 2, 3, 5, 8)))
    counts = {topic: random.choice((0, 1, 1, 2, 3, 4, 7, 10, 12, 25)) for topic in topics}
    alike = random.random() < 0.5
    wanted = _wanted(random, topics, tidy=tidy)
    ids = random_ids(random, 80)
    # Groups with old clients, new clients, or both.
    new_clients = random.choice((0.0, 1.0, 1.0, 0.5))
    members: list[_Member] = []

    def join() -> None:
        members.append(
            _Member(
                ids.pop(),
                wanted if alike else _wanted(random, topics, tidy=tidy),
                random.choice((None, None, f"i{len(ids)}")),
                random.choice((None, *RACKS)) if racks else None,
                random.random() < new_clients,
            )
        )

    for _ in range(random.randint(9, 50) if large else random.choice((1, 2, 3, 5, 8))):
        join()
    generation = random.randrange(5)
    for _ in range(steps):
        said = (_subscription(random, strategy, member, tidy=tidy) for member in members)
        group = Group(tuple(map(_of_kafka_python, said) if kafka_python else said), dict(counts))
        case = Case(strategy, group, _replicas(random, group) if racks else None)
        yield case
        result = decide(case)
        if result is None:
            return
        generation += 1
        pairs = to_pairs(result)
        for member in members:
            if tidy or random.random() < 0.9:
                member.held, member.generation = pairs[member.member_id], generation
                if not tidy and random.random() < 0.3:
                    random.shuffle(member.held)
        if not tidy:
            _something_goes_wrong(random, members, counts)
        for _ in range(random.choice((0, 3, 8)) if large else random.choice((0, 1, 1, 2))):
            if ids and (len(members) < 2 or random.random() < 0.5):
                join()
            elif len(members) > 1:
                members.pop(random.randrange(len(members)))
        if random.random() < 0.3 and counts:
            topic = random.choice(list(counts))
            counts[topic] += random.choice((1, 2, 5))
        if random.random() < 0.2:
            changed = random.choice(members)
            changed.topics = _wanted(random, topics, tidy=tidy)
        if alike and random.random() < 0.2:
            wanted = _wanted(random, topics, tidy=tidy)
            for member in members:
                member.topics = wanted
        random.shuffle(members)


def _something_goes_wrong(random: Random, members: list[_Member], counts: dict[str, int]) -> None:
    if random.random() < 0.15:
        thief, victim = random.choice(members), random.choice(members)
        thief.held = [*thief.held, *random.sample(victim.held, min(len(victim.held), random.choice((1, 2, 3))))]
    if random.random() < 0.1:
        random.choice(members).generation = random.choice((None, -1, 0, 1, 3, 100))
    if random.random() < 0.1 and counts:
        topic = random.choice(list(counts))
        if random.random() < 0.5:
            counts[topic] = max(0, counts[topic] - random.choice((1, 2, 5)))
        else:
            del counts[topic]
    if random.random() < 0.05:
        invented = (random.choice([*counts, "elsewhere"]), random.choice((0, 1, 30, -1)))
        held = random.choice(members).held
        held.insert(random.randrange(len(held) + 1), invented)


def _wanted(random: Random, topics: list[str], *, tidy: bool) -> tuple[str, ...]:
    wanted = [topic for topic in topics if random.random() < 0.7]
    if not tidy:
        if random.random() < 0.1:
            wanted.append("missing")
        if wanted and random.random() < 0.1:
            wanted.insert(random.randrange(len(wanted) + 1), random.choice(wanted))
        if random.random() < 0.3:
            random.shuffle(wanted)
    return tuple(wanted)


def _subscription(random: Random, strategy: str, member: _Member, *, tidy: bool) -> Subscription:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in member.held:
        by_topic.setdefault(topic, []).append(partition)
    held = tuple((topic, tuple(partitions)) for topic, partitions in by_topic.items())
    cooperative = strategy == "cooperative-sticky"
    if cooperative:
        user_data = None if member.generation is None else struct.pack(">i", member.generation)
    else:
        user_data = None if member.generation is None else write_sticky(held, member.generation)
    generation = member.generation if member.new_client else None
    if not tidy and random.random() < 0.12:
        user_data = random.choice(
            (
                None,
                b"",
                b"\x00\x00",
                random.randbytes(random.randrange(40)),
                write_sticky(held, None),
                write_sticky(held, member.generation) + random.randbytes(random.choice((1, 4, 8))),
                write_sticky(held, 7)[:-6],
            )
        )
        generation = random.choice((generation, None))
    return Subscription(
        member.member_id,
        member.topics,
        owned=held if cooperative else (),
        generation=None if generation is None or generation < 0 else generation,
        group_instance_id=member.instance,
        rack=member.rack,
        user_data=user_data,
    )


def _of_kafka_python(member: Subscription) -> Subscription:
    data = member.user_data
    return replace(member, user_data=b"\x00\x01" + data if data else b"")


def _replicas(random: Random, group: Group) -> PartitionRacks:
    kind = random.choice(("all", "foreign", "some", "some", "some"))
    return {
        topic: [
            {"all": RACKS, "foreign": ("x", "y")}.get(kind) or random.sample(RACKS, random.randint(0, 3))
            for _ in range(count)
        ]
        for topic, count in group.partitions_per_topic.items()
    }
