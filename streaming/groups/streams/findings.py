"""Findings about a streams group: who is waited for, tasks without an owner or with two, topics that are missing.

The coordinator gives every task of a topology whose topics are complete, and gives an active task only when nobody has
it or must still give it up (`streams.CurrentAssignmentBuilder`). So a task without an owner is on its way while members
are waited for, at most for their rebalance timeout, and a task active at two members is never a hand-over.

A round asks for topics after it has read its log position. So what only one round shows of topics may be a change that
its log does not have yet, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streaming.groups.context import Context, GroupConfig
from streaming.groups.kind import UNKNOWN_TIMEOUT_MS, FindingAtRound, finding_of, idle_finding, some
from streaming.groups.modern.group import ModernGroup, behind
from streaming.groups.state import GroupState
from streaming.groups.streams.topology import (
    STABLE,
    is_ready,
    needed_topics,
    subtopologies_of,
    task_name,
    tasks_of,
    wrong_counts,
)
from streaming.records import GroupObservation, each_of, holders
from streaming.terminal import counted

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


def idle(_state: GroupState, group: ModernGroup, _observation: GroupObservation) -> list[FindingAtRound]:
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
