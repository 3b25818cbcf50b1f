"""A real group that is scaled up and down at random until it has made enough decisions."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from streaming.records import MembershipRecord
from tests.real_groups.real_members import Joins, Member, StartMember

Grow = Callable[[str], None]
"""Adds a partition to a topic, unless it has its maximum."""

_MOST_MEMBERS = 6
_INSTANCES = ("s0", "s1", "s2")

_PATIENCE_S = 10.0
"""Limit for the effect of one change: longer than a session, so that a lost member no longer blocks its group. If there
is none, that is the client's problem; the next change moves the group on."""

_CLOSED_S = 30.0

_STUCK_S = 240.0
"""If a group decides nothing for this long, whatever changes, the soak test is pointless."""


@dataclass
class ChurningGroup:
    """One group; call `run` in a separate thread, and `saw` from the reader of the log.

    Attributes:
        first: Settings of its members; subscriptions are drawn from its topics.
        starts: Functions that start its members; several for a group of several libraries.
        chance: Source of randomness.
        alike: Whether all members have the same subscription.
        grow: Adds a partition to a topic.
        counts: Partitions of its topics now.
        wanted: Number of generations to reach.
        kills: Functions that kill processes with some of its members; with them, all members start together at times.
        static: Whether members can be static.
        generations: The group in the log: the first record of each generation with members.
        stalls: Number of changes without an effect in time.
    """

    first: Joins
    starts: Sequence[StartMember]
    chance: Random
    alike: bool
    grow: Grow
    counts: Mapping[str, int]
    wanted: int
    kills: Sequence[Callable[[], None]] = ()
    static: bool = True
    generations: dict[int, MembershipRecord] = field(default_factory=dict)
    stalls: int = 0
    _records: queue.SimpleQueue[MembershipRecord] = field(default_factory=queue.SimpleQueue)
    _members: list[Member] = field(default_factory=list)
    _leaving: list[Member] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether it has made enough decisions."""
        return len(self.generations) >= self.wanted

    def saw(self, record: MembershipRecord) -> None:
        """Process a record of the group with members."""
        self.generations.setdefault(record.generation, record)
        self._records.put(record)

    def run(self) -> None:
        """Change the group until it is done, then let all members leave."""
        moved = time.monotonic()
        decided = 0
        try:
            while not self.done:
                for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
                    self._change_once()
                self._await()
                if len(self.generations) > decided:
                    moved, decided = time.monotonic(), len(self.generations)
                assert time.monotonic() - moved < _STUCK_S, f"{self.first.group} decides nothing any more"
        finally:
            self._leaving += self._members
            for member in self._members:
                member.leave()
            for member in self._leaving:
                if not member.left.wait(_CLOSED_S):
                    # Clients have hung while they closed.
                    for kill in self.kills:
                        kill()
                assert member.left.wait(_CLOSED_S), f"a member of {self.first.group} does not close"

    def _change_once(self) -> None:
        # A client that ended by itself is no longer a member.
        self._members = [member for member in self._members if not member.left.is_set()]
        static = [member for member in self._members if member.joins.instance]
        changes: list[tuple[int, Callable[[], None]]] = []
        if len(self._members) < _MOST_MEMBERS:
            changes.append((6, self._join))
        if self._members:
            changes += [(6, self._leave_one), (1, self._grow)]
        if self._members and self.kills:
            changes += [(1, self._kill), (1, self._deploy)]
        if static:
            changes.append((4, self._restart_static))
        weights, choices = zip(*changes, strict=True)
        self.chance.choices(choices, weights)[0]()

    def _join(self) -> None:
        taken = {member.joins.instance for member in (*self._members, *self._leaving) if not member.left.is_set()}
        free = [name for name in _INSTANCES if name not in taken]
        is_static = self.static and free and self.chance.random() < 0.35
        instance = self.chance.choice(free) if is_static else None
        self._start(instance, self._subscription())

    def _leave_one(self) -> None:
        # A static member that leaves keeps its partitions until its session has expired: slow, so it is rarer.
        weights = [1 if member.joins.instance else 5 for member in self._members]
        self._leave(self.chance.choices(self._members, weights)[0])

    def _restart_static(self) -> None:
        member = self.chance.choice([member for member in self._members if member.joins.instance])
        self._leave(member)
        member.left.wait(_CLOSED_S)
        as_before = self.chance.random() < 0.6
        self._start(member.joins.instance, member.joins.topics if as_before else self._subscription())

    def _kill(self) -> None:
        self.chance.choice(self.kills)()

    def _deploy(self) -> None:
        """Let all members leave, and as many others start together."""
        members = list(self._members)
        for member in members:
            self._leave(member)
        for member in members:
            member.left.wait(_CLOSED_S)
        for member in members:
            self._start(member.joins.instance, member.joins.topics)

    def _grow(self) -> None:
        self.grow(self.chance.choice(self.first.topics))

    def _subscription(self) -> Sequence[str]:
        topics = self.first.topics
        if self.alike or self.chance.random() < 0.4:
            return topics
        return self.chance.sample(topics, self.chance.randint(1, len(topics)))

    def _start(self, instance: str | None, topics: Sequence[str]) -> None:
        kept = {name: getattr(self.first, name) for name in Joins.__dataclass_fields__}
        joins = Joins(**(kept | {"instance": instance, "topics": tuple(topics)}))
        self._members.append(self.chance.choice(self.starts)(joins))

    def _leave(self, member: Member) -> None:
        self._members.remove(member)
        self._leaving = [gone for gone in self._leaving if not gone.left.is_set()] + [member]
        member.leave()

    def _await(self) -> None:
        """Wait until the log shows a record of the group, or (as often) all of its members at once."""
        if not self._members:
            return
        all_of_them = self.chance.random() < 0.5
        until = time.monotonic() + _PATIENCE_S
        while not self.done:
            try:
                record = self._records.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.stalls += 1
                return
            if not all_of_them or len(record.members) == len(self._members):
                return
