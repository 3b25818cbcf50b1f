"""What a streams group's records say of its tasks.

A topology says which tasks there are, which topics they read, and which partition counts its internal topics need.

Task n of a subtopology reads partition n of each of its topics, source topics and repartition topics, as far as it
exists; so a subtopology has as many tasks as the largest of these has partitions. Kafka prints a task as "1_3": task 3
of subtopology 1. Source of the rules: `streams.topics.InternalTopicManager` and the classes that it calls (Kafka 4.1
to 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.groups.modern.group import DecidedTasks, ModernDecision, ModernGroup, state_of
from streaming.records import InternalTopics, StreamsTopology

TaskId = tuple[str, int]
"""Subtopology and partition."""

STABLE: Final = 1
"""`streams.MemberState.STABLE`: the member has exactly its target, if it has reached the target's epoch."""


@dataclass(frozen=True, slots=True)
class SubtopologyTopics:
    """One subtopology with its topics.

    Attributes:
        sources: Source topics.
        regexes: Regular expressions of source topics; their topics are not known.
        repartitions: Repartition topics that it reads, each with its partition count; 0 where the coordinator decides,
            None where the count was not kept.
        internal: Its internal topics; None where they were not kept.
    """

    sources: tuple[str, ...]
    regexes: tuple[str, ...]
    repartitions: Mapping[str, int | None]
    internal: InternalTopics | None

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that its tasks read, as far as they are known by name."""
        return (*self.sources, *self.repartitions)

    @property
    def stateful(self) -> bool | None:
        """Whether it has changelogs, so that it may have standby tasks; None where that was not kept."""
        return bool(self.internal.changelogs) if self.internal is not None else None


def subtopologies_of(topology: StreamsTopology | None) -> dict[str, SubtopologyTopics]:
    """The subtopologies by id, in record order; none without a topology."""
    found = {}
    for place, (name, sources, regexes, repartitions) in enumerate(topology.subtopologies if topology else ()):
        internal = topology.internal[place] if topology is not None and place < len(topology.internal) else None
        counts = internal.repartition_counts if internal is not None else (None,) * len(repartitions)
        by_topic = dict(zip(repartitions, counts, strict=False))
        found[name] = SubtopologyTopics(sources, regexes, by_topic, internal)
    return found


def is_ready(group: ModernGroup) -> bool | None:
    """Whether the coordinator has found the topics of the topology complete; None where nobody knows.

    Kafka 4.1 does not record it. Later ones write the assignor's settings with each epoch, which tells them apart.
    """
    if group.topology is None:
        return None
    if group.validated_topology == group.topology.epoch:
        return True
    return False if group.settings else None


def streams_state(group: ModernGroup) -> str:
    """As `state_of`, or "NotReady", which the log shows since Kafka 4.2."""
    if is_ready(group) is False:
        return "NotReady"
    return state_of(group, STABLE)


def with_tasks(decision: ModernDecision, group: ModernGroup) -> ModernDecision:
    """The decision with the tasks of a group's members now, and the source topics of its topology as what they read.

    Nobody knows these topics without a record of the topology, or where it has a regular expression.
    """
    targets = {name: group.targets[name] for name in group.members if name in group.targets}
    before = group.before
    standby = {name: target.standby for name, target in group.targets.items() if name not in before.targets}
    standby |= {name: before.standby.get(name) or () for name, tasks in before.targets.items() if tasks is not None}
    tasks = DecidedTasks(
        standby={name: target.standby for name, target in targets.items()},
        warmup={name: target.warmup for name, target in targets.items()},
        before=standby if before.members is not None else None,
        owned={name: (of.partitions, of.standby) for name, of in group.currents.items()},
        settings=group.settings,
        is_ready=is_ready(group),
    )
    parts = subtopologies_of(group.topology).values()
    is_known = bool(parts) and not any(part.regexes for part in parts)
    return msgspec.structs.replace(
        decision,
        subscriptions=dict.fromkeys(group.members, 0 if is_known else None),
        topic_lists=(tuple(sorted({topic for part in parts for topic in part.sources})),) if is_known else (),
        tasks=tasks,
    )


def needed_topics(parts: Collection[SubtopologyTopics]) -> dict[str, str]:
    """Every topic that the topology needs, with what it is: "source", "repartition" or "changelog"."""
    needed: dict[str, str] = {}
    for part in parts:
        needed |= dict.fromkeys(part.sources, "source") | dict.fromkeys(part.repartitions, "repartition")
        for topic, _ in part.internal.changelogs if part.internal is not None else ():
            needed.setdefault(topic, "changelog")  # a source topic may be a store's changelog at once
    return needed


def tasks_of(part: SubtopologyTopics, count: Callable[[str], int | None]) -> int | None:
    """How many tasks a subtopology has; None if the partition count of a topic is not known."""
    counts = [count(topic) for topic in part.read]
    if part.regexes or not counts or None in counts:
        return None
    return max(number for number in counts if number is not None)


def task_name(task: TaskId) -> str:
    """A task as Kafka prints it."""
    return f"{task[0][:200]}_{task[1]}"


def wrong_counts(
    parts: Collection[SubtopologyTopics], count: Callable[[str], int | None]
) -> dict[str, tuple[int, int]]:
    """Internal topics with another partition count than the topology needs: that, and the one that they have.

    Only counts that follow from topics which exist are compared, so what is found is wrong; more may be. Nothing is
    derived where topics must be read in step (copartition groups), whose counts depend on one another.

    Args:
        parts: The subtopologies.
        count: Partition count of a topic; None if it does not exist, or is not known.
    """
    found = {}
    for topic, needed in _needed_counts(parts, count).items():
        has = count(topic)
        if has is not None and has != needed:
            found[topic] = needed, has
    return found


def _needed_counts(parts: Collection[SubtopologyTopics], count: Callable[[str], int | None]) -> dict[str, int]:
    """Partition counts that internal topics need, as far as they follow from topics which exist."""
    in_step = {topic for part in parts for topic in _copartitioned(part)}
    needed: dict[str, int] = {}
    for part in parts:
        for topic, fixed in part.repartitions.items():
            if fixed:
                needed[topic] = fixed
            elif topic not in in_step and (most := _upstream(parts, topic, count)):
                needed[topic] = most
        tasks = tasks_of(part, count)
        for topic, fixed in part.internal.changelogs if part.internal is not None else ():
            if topic not in part.read and tasks is not None:
                needed[topic] = fixed or tasks
    return needed


def _upstream(parts: Collection[SubtopologyTopics], topic: str, count: Callable[[str], int | None]) -> int | None:
    """The most partitions that a subtopology which writes a repartition topic reads; None if not all are known."""
    writers = [part for part in parts if part.internal is not None and topic in part.internal.sinks]
    counts = [tasks_of(part, count) for part in writers]
    if not counts or None in counts:
        return None
    return max(number for number in counts if number is not None)


def _copartitioned(part: SubtopologyTopics) -> Iterator[str]:
    repartitions = tuple(part.repartitions)
    for _, places in part.internal.copartitioned if part.internal is not None else ():
        yield from (repartitions[place] for place in places if 0 <= place < len(repartitions))
