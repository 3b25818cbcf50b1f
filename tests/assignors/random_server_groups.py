"""Random groups of the consumer protocol, and their changes from one epoch to the next."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from random import Random

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, Target

_NAMES = (
    "a", "a-1", "a-10", "a-2", "b", "t", "t0", "t1", "t10", "t2", "t3", "t4", "t5", "t6", "t7", "ä", "日本",
    "\uffee", "\U0001f600", "topic with spaces", "semi;colon:,=", "", "-", "\t", "x" * 60,
)  # fmt: skip


def random_uuid(random: Random) -> str:
    """A random id; sometimes with few bits, so that hash codes collide."""
    data = random.randbytes(16) if random.random() < 0.8 else bytes([0] * 15 + [random.randrange(256)])
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def random_server_group(random: Random) -> ServerGroup:
    """A group without a history, or a contested one: half of those start from invented targets."""
    names = random.sample(_NAMES, random.choice((1, 1, 2, 3, 5, 8, 14)))
    topics: dict[str, ServerTopic] = {}
    while len(topics) < len(names):
        topic = ServerTopic(random_uuid(random), random.choice((0, 1, 1, 2, 3, 4, 7, 10, 12, 25, 40)))
        if all(topic.topic_id != other.topic_id for other in topics.values()):
            topics[names[len(topics)]] = topic
    alike = random.random() < 0.5
    wanted = _wanted(random, names)
    members = tuple(
        ServerMember(member_id, wanted if alike else _wanted(random, names), group_instance_id=instance, rack=rack)
        for member_id, instance, rack in _ids(random, random.choice((1, 2, 2, 3, 4, 5, 8, 13, 30)))
    )
    group = ServerGroup(members, topics)
    return _made_up(random, group) if random.random() < 0.15 else group


def next_epoch(random: Random, group: ServerGroup, targets: dict[str, Target]) -> ServerGroup:
    """The group with its new targets and one change: members, topics, subscriptions or partition counts."""
    members = [replace(member, target=targets.get(member.member_id, ())) for member in group.members]
    topics = dict(group.topics)
    names = [*topics, "not there"]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choice(("joins", "joins", "leaves", "leaves", "returns", "grows", "renewed", "subscribes", "new"))
        if kind == "joins":
            taken = {member.member_id for member in members}
            joins = [one for one in _ids(random, 3) if one[0] not in taken][: random.randint(1, 3)]
            wanted = random.choice(members).topics if members and random.random() < 0.7 else _wanted(random, names)
            instances = {member.group_instance_id for member in members}
            members += [
                ServerMember(
                    member_id, wanted, group_instance_id=None if instance in instances else instance, rack=rack
                )
                for member_id, instance, rack in joins
            ]
        elif kind == "leaves" and len(members) > 1:
            members.pop(random.randrange(len(members)))
        elif kind == "returns":
            # A static member with a new id gets the position and the target of its predecessor.
            position = random.randrange(len(members))
            members[position] = replace(members[position], member_id=f"again-{random.randrange(10**6)}")
        elif kind == "grows":
            name = random.choice(list(topics))
            topics[name] = replace(topics[name], partitions=topics[name].partitions + random.randint(1, 9))
        elif kind == "renewed":
            name = random.choice(list(topics))
            topics[name] = ServerTopic(
                random_uuid(random) if random.random() < 0.9 else topics[name].topic_id, random.randrange(9)
            )
        elif kind == "subscribes":
            if random.random() < 0.5:
                wanted = _wanted(random, names)
                members = [replace(member, topics=wanted) for member in members]
            else:
                position = random.randrange(len(members))
                members[position] = replace(members[position], topics=_wanted(random, names))
        elif kind == "new":
            topics.setdefault(random.choice(_NAMES), ServerTopic(random_uuid(random), random.randrange(12)))
    if len({topic.topic_id for topic in topics.values()}) < len(topics):
        topics = dict(group.topics)
    random.shuffle(members)
    return ServerGroup(tuple(members), topics)


def as_share_group(random: Random, group: ServerGroup) -> ServerGroup:
    """The group with topics of which a share group has initialized all, some or no partitions."""

    def initialized(count: int) -> tuple[int, ...] | None:
        if random.random() < 0.7:
            return None
        return tuple(number for number in range(count) if random.random() < 0.8)

    topics = {
        name: ServerTopic(topic.topic_id, topic.partitions, initialized(topic.partitions))
        for name, topic in group.topics.items()
    }
    return ServerGroup(group.members, topics)


def _made_up(random: Random, group: ServerGroup) -> ServerGroup:
    """The group with invented targets: partitions with two owners, beyond the count, of unknown topics."""
    ids = [topic.topic_id for topic in group.topics.values()]
    strange = random.random() < 0.5
    members = []
    for member in group.members:
        target = []
        for topic_id in random.sample(ids, random.randint(0, len(ids))):
            most = max(1, group.counts[topic_id] + (3 if strange else 0))
            partitions = random.choices(range(most), k=random.randint(0, min(most, 6)))
            if not strange:
                partitions = [partition for partition in partitions if partition < group.counts[topic_id]]
            target.append((topic_id, tuple(partitions)))
        if random.random() < 0.2:
            target.append((random_uuid(random), (0, 1)))
        members.append(replace(member, target=tuple({topic_id: (topic_id, p) for topic_id, p in target}.values())))
    return ServerGroup(tuple(members), group.topics)


def _ids(random: Random, count: int) -> list[tuple[str, str | None, str | None]]:
    ids = dict.fromkeys(f"{random.choice(_NAMES)}{random.randrange(40)}" for _ in range(2 * count))
    ids |= dict.fromkeys(f"consumer-{random.randrange(10**9)}" for _ in range(count))
    if len(ids) < count:  # Hypothesis draws the same number again and again
        ids |= dict.fromkeys(f"member-{number}" for number in range(count))
    instances = random.sample([f"{name}{number}" for name in _NAMES[:12] for number in range(9)], count)
    return [
        (member_id, instance if random.random() < 0.3 else None, random.choice((None, "r1", "r2")))
        for member_id, instance in zip(random.sample(list(ids), count), instances, strict=True)
    ]


def _wanted(random: Random, names: list[str]) -> tuple[str, ...]:
    share = random.choice((0.3, 0.7, 0.9, 1.0, 1.0))
    wanted = [name for name in names if random.random() < share]
    random.shuffle(wanted)
    return tuple(wanted)
