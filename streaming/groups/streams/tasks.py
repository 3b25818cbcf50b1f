"""A streams group's topology and its tasks, and the findings about them: who is waited for, what has no owner or two.

A topology says which tasks there are, which topics they read, and which partition counts its internal topics need. Task
n of a subtopology reads partition n of each of its topics, source topics and repartition topics, as far as it exists;
so a subtopology has as many tasks as the largest of these has partitions. Kafka prints a task as "1_3": task 3 of
subtopology 1. Source of the rules: `streams.topics.InternalTopicManager` and the classes that it calls (Kafka 4.1 to
4.4).

The coordinator gives every task of a topology whose topics are complete, and gives an active task only when nobody has
it or must still give it up (`streams.CurrentAssignmentBuilder`). So a task without an owner is on its way while members
are waited for, at most for their rebalance timeout, and a task active at two members is never a hand-over.

A round asks for topics after it has read its log position. So what only one round shows of topics may be a change that
its log does not have yet, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.groups.context import Context, GroupConfig
from streaming.groups.kind import UNKNOWN_TIMEOUT_MS, FindingAtRound, finding_of, idle_finding, some
from streaming.groups.modern.group import DecidedTasks, ModernDecision, ModernGroup, behind, state_of
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, InternalTopics, StreamsTopology, each_of, holders
from streaming.terminal import counted

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


LONGEST_WARMUP_MS: Final = 3_600_000
"""A warm-up that takes longer is reported. One ends when the task's state is at most `acceptable.recovery.lag` (10,000
records) behind. An hour is six times `probing.rebalance.interval.ms` (10 min), after which Kafka Streams looks again:
shorter would name large states that are restored as they should be, longer would hide one that never catches up."""

# Warm-ups that are followed at a time; a group has two by default (`max.warmup.replicas`).
_MOST_WARMUPS = 100


def find(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context
) -> list[FindingAtRound]:
    """The findings of a round about what members were given."""
    return [
        *_topics(state, group, observation, context.config),
        *_unowned(state, group),
        *_twice(state, group),
        *_beside_active(state, group),
        *_warmups(state, group),
    ]


def idle(_state: GroupState, group: ModernGroup, *_: object) -> list[FindingAtRound]:
    """The finding `idle_members`: members without any task, not even a standby."""
    if group.decided is None or group.decided.epoch != group.epoch or is_ready(group) is False:
        return []
    targets = {name: group.targets[name] for name in group.members if name in group.targets}
    having = {name for name, of in targets.items() for _ in each_of((*of.partitions, *of.standby, *of.warmup))}
    idle = [name for name in targets if name not in having]
    active = sum(1 for of in targets.values() for _ in each_of(of.partitions))
    why = f"there are {counted(active, 'active task')} for {counted(len(targets), 'member')}"
    return idle_finding(idle, len(targets), f"have no task, {why}", group.decided.record_time)


def _topics(
    state: GroupState, group: ModernGroup, observation: GroupObservation, config: GroupConfig
) -> list[FindingAtRound]:
    """The findings `missing_topics` and `wrong_partition_counts`, and `topology_not_ready` where neither says why."""
    parts = subtopologies_of(group.topology).values()
    ready = is_ready(group)
    if ready or (ready is None and observation.state != "NotReady"):
        return []
    now = state.clock.now
    shown = {topic.topic: topic.partitions for topic in observation.topics}
    needed = needed_topics(parts)
    missing = [f"{topic} ({kind})" for topic, kind in needed.items() if topic in shown and shown[topic] is None]
    found = _at_two_rounds(state, "missing_topics", "the topology needs topics that do not exist", missing)
    wrong = wrong_counts(parts, shown.get)
    if not missing and wrong:
        told = [f"{topic} (needs {count}, has {has})" for topic, (count, has) in wrong.items()]
        found = _at_two_rounds(state, "wrong_partition_counts", "internal topics with a wrong partition count", told)
    if not found:
        hidden = [topic for topic in needed if topic not in shown]
        unseen = f"; not visible here: {some(hidden)}" if hidden else ""
        excluded = [topic for topic in hidden if not config.watches_topic(topic)]
        why = f"the coordinator has not found all topics of the topology right, so nobody gets a task{unseen}"
        kept_as = "topology_not_ready"
        since = state.findings.get(kept_as, now)
        # A new group is not ready until its internal topics are created.
        lasts = kept_as in state.findings and (now - since >= config.metadata_grace_ms or not excluded)
        found = [FindingAtRound("topology_not_ready", since, why, kept_as, shown=lasts)]
    return found


def _at_two_rounds(state: GroupState, name: str, what: str, places: list[str]) -> list[FindingAtRound]:
    """A finding that is shown from the second round on that finds it; none without a place."""
    if not places:
        return []
    since = state.findings.get(name, state.clock.now)
    return [FindingAtRound(name, since, f"{what}: {some(places)}", name, shown=name in state.findings)]


def _unowned(state: GroupState, group: ModernGroup) -> list[FindingAtRound]:
    """The finding `unassigned`: tasks that nobody has, and that are not on their way to a member."""
    if group.decided is None or group.decided.epoch != group.epoch or is_ready(group) is False:
        return []
    counts = {topic: known.counts[-1].count for topic, known in state.topics.items()}
    every = {
        (name, number)
        for name, part in subtopologies_of(group.topology).items()
        for number in range(tasks_of(part, counts.get) or 0)
    }
    owned = {task for current in group.currents.values() for task in each_of(current.held)}
    unowned = sorted(every - owned)
    if not unowned:
        return []
    given = {task for target in group.targets.values() for task in each_of(target.partitions)}
    timeout = max(member.rebalance_timeout for member in group.members.values())
    if timeout < 0:
        timeout = UNKNOWN_TIMEOUT_MS  # coordinators do not tell it
    on_their_way = behind(group, STABLE) and state.clock.passed - group.decided.record_time <= timeout
    if on_their_way:
        unowned = [task for task in unowned if task not in given]
    return _at_two_rounds(state, "unassigned", "tasks without an owner", list(map(task_name, unowned)))


def _twice(state: GroupState, group: ModernGroup) -> list[FindingAtRound]:
    """The finding `doubly_owned`: tasks that are active at two members at once, which no hand-over explains."""
    active = holders({name: current.partitions for name, current in group.currents.items() if name in group.members})
    twice = [f"{task_name(task)} at {some(members)}" for task, members in active.items() if len(members) > 1]
    return finding_of("doubly_owned", "tasks active at two members", [(state.clock.now, text) for text in twice])


def _beside_active(state: GroupState, group: ModernGroup) -> list[FindingAtRound]:
    """The finding `standby_beside_active`: a standby task in the process that has the active one protects nothing."""
    process = {name: member.process_id or name for name, member in group.members.items()}
    targets = {name: target for name, target in group.targets.items() if name in process}
    active = holders({name: target.partitions for name, target in targets.items()})
    beside = [
        (state.clock.now, f"{task_name(task)} in process {process[name][:100]}")
        for name, target in targets.items()
        for task in each_of(target.standby)
        if process[name] in {process[owner] for owner in active.get(task, ())}
    ]
    what = "standby tasks in the process that runs the active task"
    return finding_of("standby_beside_active", what, beside)


def _warmups(state: GroupState, group: ModernGroup) -> Iterator[FindingAtRound]:
    """The finding `long_warmup`: a warm-up task that has been with its member for more than `LONGEST_WARMUP_MS`."""
    now = state.clock.now
    late = []
    warmups = [
        (task_name(task), name)
        for name, current in group.currents.items()
        for task in each_of(current.warmup)
        if name in group.members
    ]
    for task, name in warmups[:_MOST_WARMUPS]:
        kept_as = f"warm-up {task} at {name[:100]}"
        since = state.findings.get(kept_as, now)
        if now - since > LONGEST_WARMUP_MS:
            late.append((since, f"{task} at {name[:100]}"))
        yield FindingAtRound("long_warmup", since, task, kept_as, shown=False)
    yield from finding_of("long_warmup", "warm-up tasks that do not catch up", late)
