"""Random groups: few to many members, odd names, static members, duplicate topics, topics that do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from assignors import Group, PartitionRacks, Subscription

# Prefixes of one another, digits sorted as text, and characters whose UTF-16 order differs from their code point order
# (a mathematical letter beyond U+FFFF sorts before U+E000 and U+FF21 in Java, after them elsewhere).
_NAMES = (
    "a", "a-", "a-1", "a-10", "a-2", "a.b", "b", "B", "z", "zz", "t", "t0", "t-0", "t1", "t10", "t2",
    "ä", "日本", "\uffee", "\ue000", "\uff21", "\U0001d400", "\U0001f600x", "\U0001f600", "\ud7ff",
    "topic with spaces", "quote'\"", "semi;colon:,=", "", "-", "\t", "consumer-1-00000000", "x" * 60,
)  # fmt: skip
RACKS = ("r1", "r2", "r3")
# A member without a rack may send an empty text; no broker is in "far".
_OF_MEMBERS = ("r1", "r1", "r2", "r2", "r3", "far", None, "")


def names(random: Random, count: int) -> list[str]:
    """Distinct names, usable for topics and members."""
    return random.sample(_NAMES, count)


def random_group(
    random: Random, *, static: bool = True, topics_twice: bool = True, different: bool = True, racks: bool = False
) -> Group:
    """A random group; the switches turn off features that a test does not need."""
    topics = names(random, random.choice((1, 1, 2, 3, 5, 8)))
    counts = {topic: random.choice((0, 1, 1, 2, 3, 4, 7, 10, 12, 25)) for topic in topics}
    if racks and random.random() < 0.5:
        # Topics of equal size are dealt together.
        counts = dict.fromkeys(counts, random.choice((1, 4, 7, 25))) | {topics[0]: random.choice((3, 7))}
    listed = [*topics, "missing"] if random.random() < 0.2 else topics
    size = random.choice((1, 2, 2, 3, 4, 5, 8, 13))
    ids, instances = random_ids(random, size), random_ids(random, size)
    all_alike = not different or random.random() < 0.4
    share = random.choice((0.2, 1.0))
    wanted = _wanted(random, listed, topics_twice=topics_twice)
    members = []
    for member_id, instance in zip(ids, instances, strict=True):
        if not all_alike:
            wanted = _wanted(random, listed, topics_twice=topics_twice)
        members.append(
            Subscription(
                member_id,
                wanted,
                group_instance_id=instance if static and random.random() < 0.4 else None,
                rack=random.choice(_OF_MEMBERS) if racks and random.random() < share else None,
            )
        )
    for topic in topics:
        if random.random() < 0.05:
            del counts[topic]
    return Group(tuple(members), counts)


def random_racks(random: Random, group: Group) -> PartitionRacks:
    """Replica racks of a group's topics: everywhere, nowhere, or some; placed as by Kafka, or at random."""
    of_group = random.choice(("all", "foreign", "some", "some", "one", "placed", "mixed"))
    replicas = random.choice((1, 2, 2, 3))
    start = random.randrange(3)

    def of(kind: str, partition: int) -> Sequence[str]:
        if kind == "placed":
            return [RACKS[(start + partition + step) % 3] for step in range(replicas)]
        if kind == "one":
            return (random.choice(RACKS),)
        return {"all": RACKS, "foreign": ("x", "y")}.get(kind) or random.sample(RACKS, random.randint(0, 3))

    racks = {}
    for topic, count in group.partitions_per_topic.items():
        kind = random.choice(("all", "some", "one", "placed")) if of_group == "mixed" else of_group
        racks[topic] = [of(kind, partition) for partition in range(count)]
    return racks


def random_ids(random: Random, count: int) -> list[str]:
    """Distinct ids, many of them a name followed by a number."""
    ids = [f"{random.choice(_NAMES)}{random.randrange(30)}" for _ in range(3 * count)]
    random.shuffle(ids)
    return list(dict.fromkeys([*ids, *(f"m{number}" for number in range(count))]))[:count]


def _wanted(random: Random, topics: list[str], *, topics_twice: bool) -> tuple[str, ...]:
    wanted = [topic for topic in topics if random.random() < 0.6]
    random.shuffle(wanted)
    if topics_twice and wanted and random.random() < 0.2:
        wanted.insert(random.randrange(len(wanted) + 1), random.choice(wanted))
    return tuple(wanted)
