"""A simple group coordinator: the events of consumer groups, and the records that it writes for them.

The order of the records is that of Kafka's `GroupMetadataManager` (`consumerGroupHeartbeat`,
`consumerGroupFenceMembers`, `replaceMember`). The targets are random: the assignor does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.offsets_log.written import (
    current_assignment,
    group_epoch,
    member_metadata,
    other_key,
    regular_expression,
    target_assignment,
)

GROUP = "g"
TOPIC = bytes(range(16))
PARTITIONS = 4

Written = tuple[bytes, bytes | None]
Owned = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Told:
    """A decision as the coordinator knows it, with the number of the record that closes it."""

    record: int
    epoch: int
    members: tuple[str, ...]
    targets: Owned
    before: Owned
    joined: tuple[str, ...]
    left: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    became_empty: bool = False


@dataclass
class Coordinator:
    """One consumer group."""

    log: list[Written] = field(default_factory=list)
    decisions: list[Told] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    epoch: int = 0
    target_epoch: int = 0
    members: dict[str, str | None] = field(default_factory=dict)
    targets: Owned = field(default_factory=dict)
    currents: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    regexes: set[str] = field(default_factory=set)
    names: int = 0
    _told: tuple[dict[str, str | None], Owned] = field(default_factory=lambda: ({}, {}))

    def write(self, key_type: int, value: bytes | None, part: str | None = None) -> None:
        self.log.append((other_key(key_type, GROUP, part), value))

    def join(self, instance: str | None = None) -> None:
        if instance in self.members.values():
            instance = None
        self.names += 1
        name = f"m{self.names}"
        self.members[name] = instance
        self.write(5, member_metadata(["t"], instance_id=instance), name)
        self._bump()

    def resubscribe(self, name: str, regex: str) -> None:
        self.write(5, member_metadata([], instance_id=self.members[name], regex=regex), name)
        self.regexes.add(regex)
        self.write(16, regular_expression(["t"], 7, 8), regex)
        self._bump()

    def leave(self, names: list[str]) -> None:
        for name in names:
            self._remove(name)
        self._bump()
        if not self.members and self._told[0]:
            self._tell(became_empty=True)

    def replace(self, name: str) -> None:
        instance, target, current = self.members[name], self.targets.get(name), self.currents.get(name)
        self._remove(name)
        self.names += 1
        new = f"m{self.names}"
        self.members[new] = instance
        self.write(5, member_metadata(["t"], instance_id=instance), new)
        self._aim(new, target or ())
        self._own(new, *(current or (0, ())))

    def assign(self, targets: Owned) -> None:
        """Compute the target: only changed targets are written, then the epoch."""
        for name in self.members:
            target = targets.get(name, ())
            if name not in self.targets or self.targets[name] != target:
                self._aim(name, target)
        self.target_epoch = self.epoch
        self.write(6, group_epoch(self.epoch))
        self._tell()

    def reconcile(self, name: str) -> None:
        self._own(name, self.target_epoch, self.targets.get(name, ()))

    def delete(self) -> None:
        for key_type in (8, 7):
            for name in self.members:
                self.write(key_type, None, name)
        self.write(6, None)
        for name in self.members:
            self.write(5, None, name)
        for regex in sorted(self.regexes):
            self.write(16, None, regex)
        self.write(4, None)
        self.write(3, None)
        self.ends.append(len(self.log) - 1)
        log, decisions, ends, names = self.log, self.decisions, self.ends, self.names
        self.__init__(log, decisions, ends, names=names)  # type: ignore[misc]

    def _bump(self) -> None:
        self.epoch += 1
        self.write(3, group_epoch(self.epoch))

    def _remove(self, name: str) -> None:
        for key_type in (8, 7, 5):
            self.write(key_type, None, name)
        self.members.pop(name)
        self.targets.pop(name, None)
        self.currents.pop(name, None)

    def _aim(self, name: str, target: tuple[int, ...]) -> None:
        self.targets[name] = target
        self.write(7, target_assignment({TOPIC: target} if target else {}), name)

    def _own(self, name: str, epoch: int, owned: tuple[int, ...]) -> None:
        self.currents[name] = epoch, owned
        self.write(8, current_assignment(epoch, {TOPIC: owned} if owned else {}), name)

    def _tell(self, *, became_empty: bool = False) -> None:
        was, before = self._told
        instances = {instance: name for name, instance in was.items() if instance and name not in self.members}
        replaced = tuple(
            (instances[instance], name)
            for name, instance in self.members.items()
            if name not in was and instance in instances
        )
        olds, news = {old for old, _ in replaced}, {new for _, new in replaced}
        self.decisions.append(
            Told(
                record=len(self.log) - 1,
                epoch=self.epoch,
                members=tuple(self.members),
                targets=dict(self.targets),
                before=before,
                joined=tuple(name for name in self.members if name not in was and name not in news),
                left=tuple(name for name in was if name not in self.members and name not in olds),
                replaced=replaced,
                became_empty=became_empty,
            )
        )
        self._told = dict(self.members), dict(self.targets)


Assignor = Callable[[Coordinator], Owned]
"""Computes the target of a group from its members and their previous targets."""


@st.composite
def lives(draw: st.DrawFn, assignor: Assignor | None = None) -> Coordinator:
    """A group with a history; it may have been deleted and created again.

    Args:
        draw: Hypothesis's draw function.
        assignor: Computes the targets; random targets when None.
    """
    group = Coordinator()
    for _ in range(draw(st.integers(1, 12))):
        doings = ["join"]
        if group.members:
            doings += ["leave", "resubscribe"]
            assigning = group.epoch > group.target_epoch
            doings += ["assign"] * 6 if assigning else ["reconcile", "replace", "replace", "delete"]
        _do(draw, group, draw(st.sampled_from(doings)), assignor)
    return group


def _do(draw: st.DrawFn, group: Coordinator, doing: str, assignor: Assignor | None) -> None:
    names = list(group.members)
    static = [name for name in names if group.members[name]]
    match doing:
        case "join":
            group.join(draw(st.sampled_from([None, None, "i1", "i2"])))
        case "leave":
            group.leave(draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
        case "resubscribe":
            group.resubscribe(draw(st.sampled_from(names)), draw(st.sampled_from(["a.*", "t"])))
        case "assign" if assignor is not None:
            group.assign(assignor(group))
        case "assign":
            owners = draw(st.lists(st.sampled_from(names), min_size=PARTITIONS, max_size=PARTITIONS))
            group.assign({name: tuple(p for p in range(PARTITIONS) if owners[p] == name) for name in names})
        case "reconcile":
            group.reconcile(draw(st.sampled_from(names)))
        case "replace" if static:
            group.replace(draw(st.sampled_from(static)))
        case "delete":
            group.delete()
