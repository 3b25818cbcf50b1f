"""Verdicts on streams groups (KIP-1071): is the target what the broker's sticky task assignor gives?

The log has the assignor's inputs: members with their processes, previous tasks, the topology, and since Kafka 4.2 the
number of standby replicas; rounds have the partition counts, from which the number of tasks follows. It lacks the
broker's release, so every era is tried that may have written these records. Since 4.4 the assignor goes by what members
own, and by the offsets of the state on their disks, which they report to the coordinator and no record has.

A target that nothing fits is `unverified`: members may have reported such offsets, or the broker may run an assignor of
its own. It is `drifted` only if it violates an invariant: a task active at two members, a task that the topology does
not have, or a member with the active and a standby task of one task. While the coordinator finds topics missing, or
with wrong partition counts, it calls no assignor, and nobody gets a task.

Source of the rules: `GroupMetadataManager`, `streams.TargetAssignmentBuilder` (Kafka 4.1 to 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assignors import (
    Assignment,
    AssignorError,
    Group,
    LeaderWouldFail,
    Subscription,
    TooMuchWork,
    from_topics,
    imbalance,
    imbalance_optimal,
    optimal_moves,
)
from assignors.brokers import member_orders
from assignors.streams import STREAMS_ERAS, StreamsGroup, StreamsMember, Subtopology, assign_tasks
from streaming.groups.consumer.recompute import before_target
from streaming.groups.context import Context, of_decision
from streaming.groups.modern.group import DecidedTasks, ModernDecision, counts_in
from streaming.groups.modern.rules import Names
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState, counts_from
from streaming.groups.streams.topology import SubtopologyTopics, each_task, subtopologies_of
from streaming.groups.verdict_inputs import StreamsInputs
from streaming.groups.verdicts import DRIFTED, IDENTICAL, INVARIANT, NOT_APPLICABLE, UNVERIFIED, Verdict

_NOT_RECORDED, _BY_TARGETS, _BY_OWNED = STREAMS_ERAS

# Members that share a hash bucket, in every order: as for consumer groups.
_MOST_ORDERS = 16

_REPLICAS = "num.standby.replicas"


def judge(state: GroupState, decision: ModernDecision, context: Context) -> Verdict:
    """Judge one decision of a streams group at the round after it."""
    broken = tuple(_broken(decision))
    if broken:
        return Verdict(DRIFTED, "it violates the invariants of every assignor", basis=INVARIANT, drifted=broken)
    if decision.tasks is not None and decision.tasks.is_ready is False and not counts_in(decision.targets.values()):
        return Verdict(NOT_APPLICABLE, "topics of the topology were missing or wrong, so no assignor gave tasks")
    asked = _asked_of(state, decision, context)
    if isinstance(asked, str):
        return Verdict(UNVERIFIED, asked)
    return _recompute(decision, *asked)


def _broken(decision: ModernDecision) -> Iterator[DriftedPartition]:
    """Tasks that no assignor gives in this way."""
    if not decision.exact or decision.tasks is None:
        return
    active: dict[tuple[str, int], list[str]] = {}
    for member_id, target in decision.targets.items():
        for task in each_task(target):
            active.setdefault(task, []).append(member_id)
    for (part, number), members in sorted(active.items()):
        if len(members) > 1:
            yield DriftedPartition(part, number, "doubly_assigned", None, tuple(members))
    every = {task: members for task, members in active.items() if len(members) == 1}
    for targets in (decision.tasks.standby, decision.tasks.warmup):
        for member_id, target in targets.items():
            for task in each_task(target):
                if member_id in active.get(task, ()):
                    yield DriftedPartition(*task, "standby_beside_active", None, (member_id,))
                every.setdefault(task, [member_id])
    known = subtopologies_of(decision.topology)
    for (part, number), members in sorted(every.items()):
        if known and part not in known:
            yield DriftedPartition(part, number, "not_in_topology", None, tuple(members))


_Asked = tuple[DecidedTasks, tuple[Subtopology, ...]]


def _asked_of(state: GroupState, decision: ModernDecision, context: Context) -> _Asked | str:
    """What is known of the assignor's input for the target of a decision, or why not enough is."""
    tasks, parts = decision.tasks, subtopologies_of(decision.topology)
    if tasks is None or tasks.before is None or decision.before is None or not decision.exact:
        return "the previous target is not known: earlier records of the group may be missing"
    if decision.undescribed:
        return f"the log lacks records of member {decision.undescribed[0][:100]!r}"
    if decision.group_epoch != decision.epoch:
        return "members or the topology have changed since the epoch of the target"
    if tasks.is_ready is False:
        return "topics of the topology were missing or wrong, and members have tasks"
    if not parts:
        return "the log lacks the record of the topology"
    if not tasks.settings and any(part.stateful is not False for part in parts.values()):
        return "Kafka 4.1 does not record how many standby replicas the group has"
    shown = counts_in(decision.targets.values())
    found = []
    for name, part in parts.items():
        told = _tasks_told(state, name, part, shown.get(name, 0), decision, context)
        if isinstance(told, str):
            return told
        found.append(Subtopology(name, told, bool(part.stateful)))
    return tasks, tuple(found)


def _tasks_told(
    state: GroupState, name: str, part: SubtopologyTopics, shown: int, decision: ModernDecision, context: Context
) -> int | str:
    """How many tasks a subtopology has, if rounds confirm what its target shows; else why that is not known."""
    if part.regexes:
        return f"subtopology {name[:100]} reads topics by a regular expression, which the log does not resolve"
    if part.stateful is None:
        return "the topology was read by a release that did not keep its stores"
    seen = {0}
    for topic in part.read:
        known = state.topics.get(topic)
        if known is None:
            if not context.config.watches_topic(topic):
                return f"topic {topic[:100]!r} is excluded by the filters: its partition count is not known"
            return f"no round has shown topic {topic[:100]!r}: its partition count is not known"
        counts = counts_from(known, decision.record_time - context.config.metadata_grace_ms)
        seen = {max(one, other) for one in seen for other in counts}
    if shown not in seen:
        listed = ", ".join(map(str, sorted(seen)))
        return f"its target shows {shown} tasks of subtopology {name[:100]}, rounds have seen {listed} partitions"
    return shown


def _recompute(decision: ModernDecision, tasks: DecidedTasks, parts: tuple[Subtopology, ...]) -> Verdict:
    active, standby = from_topics(decision.targets), from_topics(tasks.standby)
    tried: set[str] = set()
    cannot: str | None = None
    inputs: StreamsInputs | None = None
    with of_decision():
        for release in _eras(tasks):
            try:
                groups = list(_orders(decision, tasks, parts, release))
            except AssignorError as error:
                cannot = cannot or str(error)[:200]
                continue
            for group in groups:
                try:
                    fits = assign_tasks(group, release).fits(active, standby)
                except LeaderWouldFail:
                    continue
                except TooMuchWork as error:
                    count = sum(part.tasks for part in parts)
                    size = f"{len(decision.members):,} members and {count:,} tasks"
                    cannot = cannot or f"too large to recompute: with {size} {error.reason}"
                    continue
                except AssignorError as error:
                    cannot = cannot or str(error)[:200]
                    continue
                given = StreamsInputs(group, release)
                inputs = inputs or given
                tried.add(release)
                if fits:
                    return Verdict(IDENTICAL, library=f"broker:{release}", candidates=len(tried), inputs=given)
    reason = cannot or (
        f"it fits none of {len(tried)} candidates; since Kafka 4.4 the assignor also goes by offsets that members "
        "report to the coordinator and no record has"
    )
    return Verdict(UNVERIFIED, reason, candidates=len(tried), inputs=inputs)


def _eras(tasks: DecidedTasks) -> tuple[str, ...]:
    """The eras whose brokers may have written the decision."""
    if tasks.settings:
        return _BY_TARGETS, _BY_OWNED
    return (_NOT_RECORDED,)


def _orders(
    decision: ModernDecision, tasks: DecidedTasks, parts: tuple[Subtopology, ...], release: str
) -> Iterator[StreamsGroup]:
    """The assignor's input, with members that share a hash bucket in every order, as far as is cheap."""
    had, spare = decision.before or {}, tasks.before or {}
    if release == _BY_OWNED:
        had = {name: active for name, (active, _) in tasks.owned.items()}
        spare = {name: standby for name, (_, standby) in tasks.owned.items()}
    old = {new: before for before, new in decision.replaced}
    members = {}
    for member in decision.members:
        was = old.get(member.member_id, member.member_id)
        members[member.member_id] = StreamsMember(
            member.member_id, member.process_id or "", had.get(was, ()), spare.get(was, ())
        )
    replicas = tasks.settings.get(_REPLICAS, "0")
    group = StreamsGroup(tuple(members.values()), parts, int(replicas) if replicas.isdecimal() else 0)
    yield group
    for order in member_orders(members, _MOST_ORDERS):
        turned = tuple([members[name] for name in order])
        if turned != group.members:
            yield replace(group, members=turned)


def balance(decision: ModernDecision, _names: Names) -> tuple[float | None, float | None]:
    """Imbalance of the members' active tasks, and the lowest possible; each None if unknown, or nobody has any."""
    if not decision.exact or decision.undescribed:
        return None, None
    uneven = imbalance([sum(len(numbers) for _, numbers in target) for target in decision.targets.values()])
    group = _as_group(decision) if uneven is not None else None
    return uneven, imbalance_optimal(group) if group is not None else None


def least_moves(decision: ModernDecision, _names: Names) -> int | None:
    """The fewest active tasks that had to move for an even assignment; None if unknown."""
    before: Assignment | None = before_target(decision)
    group = _as_group(decision) if before is not None else None
    if before is None or group is None:
        return None
    return optimal_moves(before, group)


def _as_group(decision: ModernDecision) -> Group | None:
    """The group for the measures: any member can have any task; None if members are missing or have changed."""
    if decision.became_empty or not decision.exact or decision.undescribed or decision.group_epoch != decision.epoch:
        return None
    counts = counts_in(decision.targets.values())
    try:
        return Group(tuple([Subscription(member.member_id, tuple(counts)) for member in decision.members]), counts)
    except AssignorError:
        return None
