"""Random streams groups, and their changes from one epoch to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from assignors import Partitions
from assignors.streams import StreamsGroup, StreamsMember, Subtopology, TaskAssignment, Tasks

# "Aa" and "BB" have the same hash code, as "AaAa" and "BBBB".
_NAMES = ("0", "1", "10", "2", "3", "Aa", "BB", "AaAa", "BBBB", "ä", "\uffee", "\U0001f600", "", "a b", "x" * 40)


def random_streams_group(random: Random) -> StreamsGroup:
    """A group without a history, or with an invented one."""
    parts = [
        Subtopology(name, random.choice((0, 1, 2, 3, 4, 7, 12, 25)), random.random() < 0.6)
        for name in random.sample(_NAMES, random.choice((1, 1, 2, 2, 3, 5, 8)))
    ]
    processes = _ids(random, random.choice((1, 2, 2, 3, 4, 5, 8, 14)))
    members = [
        StreamsMember(member_id, random.choice(processes))
        for member_id in _ids(random, random.choice((1, 2, 2, 3, 4, 6, 9, 15, 30)))
    ]
    group = StreamsGroup(tuple(members), tuple(parts), random.choice((0, 0, 1, 1, 2, 3)))
    return _made_up(random, group) if random.random() < 0.2 else group


def next_epoch(random: Random, group: StreamsGroup, given: TaskAssignment) -> StreamsGroup:
    """The group with its new targets and one to three changes: members, processes, tasks, replicas, offsets."""
    members = [
        replace(
            member,
            active=_target(given.active.get(member.member_id, {})),
            standby=_target(given.standby.get(member.member_id, {})),
        )
        for member in group.members
    ]
    parts, replicas = list(group.subtopologies), group.standby_replicas
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choice(("joins", "joins", "leaves", "leaves", "ends", "restarts", "grows", "replicas", "offsets"))
        if kind == "joins":
            taken = {member.member_id for member in members}
            processes = [*{member.process_id: None for member in members}, *_ids(random, 2)]
            members += [
                StreamsMember(member_id, random.choice(processes))
                for member_id in _ids(random, random.randint(1, 3))
                if member_id not in taken
            ]
        elif kind == "leaves" and len(members) > 1:
            members.pop(random.randrange(len(members)))
        elif kind == "ends" and members:
            gone = random.choice(members).process_id
            members = [member for member in members if member.process_id != gone] or members
        elif kind == "restarts" and members:
            at = random.randrange(len(members))
            back = f"again-{random.randrange(10**6)}"
            told = tuple((n, p, random.randrange(3) * 100) for n, ps in members[at].active for p in ps)
            members[at] = StreamsMember(back, members[at].process_id, offsets=told)
        elif kind == "grows":
            at = random.randrange(len(parts))
            parts[at] = replace(parts[at], tasks=parts[at].tasks + random.randint(1, 6))
        elif kind == "replicas":
            replicas = random.choice((0, 1, 2))
        elif kind == "offsets":
            members = [replace(member, offsets=_offsets(random, parts)) for member in members]
    random.shuffle(members)
    return StreamsGroup(tuple(members), tuple(parts), replicas)


def _target(tasks: Mapping[str, Partitions]) -> Tasks:
    return tuple([(name, tuple(partitions)) for name, partitions in tasks.items()])


def _made_up(random: Random, group: StreamsGroup) -> StreamsGroup:
    """The group with invented tasks: of several owners, active and standby at once, of unknown subtopologies."""
    members = tuple(
        replace(
            member,
            active=_some(random, group),
            standby=_some(random, group),
            offsets=_offsets(random, list(group.subtopologies)) if random.random() < 0.5 else (),
        )
        for member in group.members
    )
    return replace(group, members=members)


def _some(random: Random, group: StreamsGroup) -> Tasks:
    named = [(part.subtopology_id, part.tasks) for part in group.subtopologies] + [("gone", 3)]
    return tuple(
        (name, tuple(sorted(set(random.choices(range(tasks + 2), k=random.randint(1, 5))))))
        for name, tasks in random.sample(named, random.randint(0, len(named)))
    )


def _offsets(random: Random, parts: list[Subtopology]) -> tuple[tuple[str, int, int], ...]:
    told = {
        (part.subtopology_id, random.randrange(part.tasks)): random.choice((0, 0, 5, 100, 2**40, -1))
        for part in random.choices(parts, k=6)
        if part.tasks
    }
    return tuple((name, partition, offset) for (name, partition), offset in told.items())


def _ids(random: Random, count: int) -> list[str]:
    ids = dict.fromkeys(f"{random.choice(_NAMES)}{random.randrange(40)}" for _ in range(count))
    ids |= dict.fromkeys(f"member-{random.randrange(10**9)}" for _ in range(count))
    return random.sample(list(ids), count)
