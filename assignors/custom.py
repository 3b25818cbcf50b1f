"""Users' own strategies: found by an entry point or a dotted path, with their errors caught.

A strategy is a class with a constructor without arguments and a method `assign(group, partition_racks)`, or a function
of the same two arguments; both return partitions by topic by member id. It may set `deterministic = False`: then a
result that differs from the group's assignment proves nothing. docs/assignors.md has a worked example.

Such a strategy cannot stop its caller: one that cannot be imported, raises, or does not return an assignment that the
group could have leads to `CannotTell` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from operator import index
from types import MappingProxyType
from typing import Any

from assignors.assignment import Assignment, Partitions
from assignors.exceptions import BadStrategy, CannotTell
from assignors.measures.invariants import DOUBLY_ASSIGNED, violations
from assignors.model import Group, PartitionRacks
from assignors.registry import known_strategies
from assignors.strategy import CUSTOM, Era, Strategy, refusing

ENTRY_POINTS = "evenkeel.assignors"
"""Group of the entry points: the name is the strategy's, the object is a class or a function."""

_LONGEST_REASON = 300

# A user's code may raise anything and call `sys.exit()`. Our own signal handlers raise nothing (`streaming.lifecycle`).
_FAILURES = (Exception, SystemExit)


@dataclass(frozen=True)
class CustomStrategy:
    """Location of a strategy; nothing is imported before it is first needed.

    Attributes:
        name: Protocol name in the group's record, the result of the assignor's `name()` in the client.
        assignor: "package.module:object" or "package.module.object".
        deterministic: Whether equal inputs give equal results; None takes the object's attribute, or True without one.

    Raises:
        BadStrategy: The name is one of Evenkeel's own, or the path is invalid.
    """

    name: str
    assignor: str
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        if self.name in known_strategies():
            message = f"Custom strategy {self.name!r} has the name of a built-in strategy: rename it."
            raise BadStrategy(message)
        module, _, attribute = self._path
        if not self.name or not module or not attribute:
            message = f"Custom strategy {self.name!r} is at {self.assignor!r}: give a name, and package.module:object."
            raise BadStrategy(message)

    def strategy(self) -> Strategy:
        """The imported strategy; if the import fails, a strategy that raises CannotTell."""
        return _loaded(self)

    @property
    def _path(self) -> tuple[str, str, str]:
        if ":" in self.assignor:
            return self.assignor.partition(":")
        return self.assignor.rpartition(".")

    def _find(self) -> Any:
        module, _, attribute = self._path
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found


@dataclass(frozen=True)
class CustomStrategies:
    """All custom strategies of one configuration; a value that can be sent to another process.

    Attributes:
        listed: Locations of the strategies; their names are unique.
    """

    listed: tuple[CustomStrategy, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, CustomStrategy]:
        return {custom.name: custom for custom in self.listed}

    def named(self, name: str) -> Strategy | None:
        """The strategy with this protocol name; None if there is none."""
        found = self._by_name.get(name)
        if found is None:
            return None
        return found.strategy()

    def by_name(self) -> dict[str, Strategy]:
        """All strategies by name."""
        return {custom.name: custom.strategy() for custom in self.listed}


def installed_strategies() -> tuple[CustomStrategy, ...]:
    """Entry points of installed packages; those with one of our names, or without a valid name, are ignored."""
    found: dict[str, CustomStrategy] = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            found.setdefault(point.name, CustomStrategy(point.name, point.value))
        except BadStrategy:
            continue
    return tuple(found.values())


def custom_strategies(configured: Iterable[CustomStrategy] = ()) -> CustomStrategies:
    """Configured strategies, and those of installed packages whose names are not configured."""
    by_name = {custom.name: custom for custom in installed_strategies()}
    return CustomStrategies(tuple((by_name | {custom.name: custom for custom in configured}).values()))


@lru_cache(maxsize=256)
def _loaded(custom: CustomStrategy) -> Strategy:
    recompute, deterministic = None, True
    try:
        found = custom._find()  # noqa: SLF001 - of this module
        made = found() if isinstance(found, type) else found
        assign = getattr(made, "assign", made)
        said = getattr(made, "deterministic", True) if custom.deterministic is None else custom.deterministic
        deterministic = bool(said)
    except _FAILURES as error:
        reason = f"cannot be loaded: {_in_a_line(error)}"
    else:
        reason = f"is a {type(made).__name__}, neither a class nor a function"
        recompute = _guarded(custom.name, assign) if callable(assign) else None
    recompute = recompute or refusing(f"custom strategy {custom.name!r} {reason}"[:_LONGEST_REASON])
    return Strategy(custom.name, (Era(CUSTOM, recompute, since=(0,)),), "", deterministic=deterministic)


def _guarded(name: str, assign: Callable[..., Any]) -> Callable[[Group, PartitionRacks | None], Assignment]:
    def recompute(group: Group, racks: PartitionRacks | None) -> Assignment:
        # A read-only view, so that a strategy cannot change what others are compared with.
        shown = replace(group, partitions_per_topic=MappingProxyType(dict(group.partitions_per_topic)))
        try:
            return _checked(assign(shown, racks), group)
        except _FAILURES as error:
            reason = f"custom strategy {name!r} raised {_in_a_line(error)}"
        raise CannotTell(reason[:_LONGEST_REASON])

    return recompute


def _checked(returned: object, group: Group) -> Assignment:
    """A strategy's return value as an assignment of existing partitions, each once, that contains every member.

    No group can have any other assignment: comparing with one would report drift where the strategy is at fault.
    """
    if not isinstance(returned, Mapping):
        message = f"it returned a {type(returned).__name__}, not partitions by topic by member"
        raise TypeError(message)
    result: dict[str, dict[str, Partitions]] = {member.member_id: {} for member in group.members}
    counts: dict[str, int] = {}
    for member_id, topics in returned.items():
        if member_id not in result:
            message = f"it assigned to {str(member_id)[:100]!r}, who is not in the group"
            raise ValueError(message)
        for topic, partitions in topics.items() if isinstance(topics, Mapping) else topics:
            counts[topic] = group.partitions_per_topic.get(topic, 0)
            numbers = (*result[member_id].get(topic, ()), *map(index, partitions))
            if numbers:
                result[member_id][topic] = numbers
    for wrong in violations(result, {}, counts):
        how = "twice" if wrong.kind == DOUBLY_ASSIGNED else f"which has {counts[wrong.topic]} partitions"
        message = f"it assigned partition {wrong.partition} of topic {str(wrong.topic)[:100]!r}, {how}"
        raise ValueError(message)
    return result


def _in_a_line(error: BaseException) -> str:
    """The exception's name and the first line of its text, in characters that UTF-8 can hold."""
    first = f"{type(error).__name__}: {error}".strip(": \n").split("\n", maxsplit=1)[0]
    return first.encode(errors="backslashreplace").decode()
