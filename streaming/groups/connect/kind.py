"""Groups of Kafka Connect workers: classic groups that assign connectors and tasks in place of partitions.

Their records, churn, cost and members are those of `classic/`; verdicts and findings are their own. What they own are
units (`records.Member`), which have no offsets: such a group has neither lag nor load.

A verdict says whether the leader dealt connectors and tasks as Connect's assignors do:

- **Invariant**: no unit runs on two workers. A worker runs what it ran, without what it is to stop, and what it is to
  start. A unit that one is to stop and another runs is in order; so is one that two report and both are to stop.
- **Eager protocol**: every unit is dealt, so the assignment shows what was configured, and is recomputed from it.
- **Incremental cooperative protocol**: the leader's result also depends on its memory, the configuration and the time,
  which are in no record. So what may have been is tried: which of the units that workers are to stop were deleted,
  which of those that they are to start were lost before, whether a worker is waited for. One that gives the decision
  makes it `identical`. That none does proves nothing.

Findings are units that nobody runs, and workers that lag behind or run nothing. A worker that is gone may come back:
until then, and at most for the scheduled delay that its leader gave the others, what it ran is not given to anybody. A
unit that is taken from a worker is given on at the next rebalance, which follows at once. So a unit without a worker is
reported only when that next rebalance is overdue.

Where the topic of the group's configuration is read, what runs is compared with what is configured, once decision and
configuration have stayed the same for so long that the workers must have seen both.

Source: `EagerAssignor`, `IncrementalCooperativeAssignor` (assignors/connect); KIP-415.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from assignors import AssignorError, from_topics, same
from assignors.brokers import member_orders
from assignors.connect import (
    LeaderDecision,
    LeaderMemory,
    Unit,
    assign_eagerly,
    assign_incrementally,
)
from streaming.groups.classic.cost import CONNECT_EAGER
from streaming.groups.classic.drift import judge_again, judge_waiting, judged_of
from streaming.groups.classic.kind import REBALANCING, classic_membership, rebalance_timeout, stuck_rebalance
from streaming.groups.classic.membership import counts_of, is_connect, standing_members
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.classic.what_if import assigned
from streaming.groups.context import Context, of_decision
from streaming.groups.kind import FindingAtRound, Kind, Ownership, found_before, some, unexplained
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState
from streaming.groups.verdicts import (
    DRIFTED,
    IDENTICAL,
    INVARIANT,
    NOT_APPLICABLE,
    UNEXPLAINED,
    UNVERIFIED,
    Judging,
    Nearest,
    Verdict,
    drifted_between,
)
from streaming.records import (
    CONNECTOR,
    STOPPED,
    TASKS_UNKNOWN,
    GroupObservation,
    MembershipRecord,
    SeenConnectors,
    Worker,
    each_of,
    holders,
    worker_of,
)
from streaming.terminal import counted

_INCREMENTAL: Final = frozenset({"compatible", "sessioned"})

PROTOCOLS: Final = frozenset({CONNECT_EAGER}) | _INCREMENTAL
"""What the workers of a group can agree on."""

_LIBRARY: Final = "connect"
"""The candidate, as rows name it: Kafka Connect's own class."""

# The order of the workers in the leader's map is that of their ids but for those that share a bucket.
_ORDERS: Final = 6

_UNKNOWN_MEMORY: Final = (
    "the leader's memory is not in the log (what it dealt before, for whom it waits and until when), and none that the "
    "record suggests gives this assignment"
)

# Stands for what a departed worker ran. No connector has an empty name.
_LOST: Final[Unit] = ("", 0)


def write_connect_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the waiting decisions of a group that is Connect's now: no round has to show anything for that."""
    waiting = state.classic.waiting
    if not waiting or not is_connect(waiting[-1].record):
        return
    if observation.configured_strategy not in PROTOCOLS:
        # A pattern of the settings that is meant for consumers may match the group, too.
        observation = msgspec.structs.replace(observation, configured=None)
    judge_waiting(state, Judging(_judge, judged_of, _expected_by), observation, context)


def _judge(decision: ClassicDecision, _later_is_judged: bool) -> Verdict:
    record = decision.record
    if not record.members:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if not is_connect(record):
        return Verdict(NOT_APPLICABLE, "the group has become one of Connect workers since")
    workers: dict[str, Worker] = {}
    for member in record.members:
        worker = worker_of(member)
        if worker is None:
            why = member.undecodable or "an earlier release did not decode it"
            return Verdict(UNVERIFIED, f"member {member.member_id[:100]!r}: {why}")
        workers[member.member_id] = worker
    failed = next((worker for worker in workers.values() if worker.error), None)
    if failed is not None:
        return Verdict(UNVERIFIED, f"the leader assigned nothing: {what_failed(failed)}")
    twice = _run_twice(record)
    if twice:
        return Verdict(DRIFTED, "connectors or tasks run on two workers", basis=INVARIANT, drifted=twice)
    if record.protocol == CONNECT_EAGER:
        return _against_eager(record)
    if record.protocol in _INCREMENTAL:
        return _against_incremental(record, workers, decision.before)
    return Verdict(UNVERIFIED, f"protocol {(record.protocol or '')[:100]!r} is not known")


def _expected_by(_decision: ClassicDecision, _verdict: Verdict, strategy: str) -> str:
    return f"with {strategy}, workers would have joined with something else"


def what_failed(worker: Worker) -> str:
    """What the error of an assignment means (`ConnectProtocol.Assignment`)."""
    if worker.error == 1:
        return f"it had not read the configuration up to offset {worker.assigned_offset}, which some worker had"
    return f"error {worker.error}"


def _run_twice(record: MembershipRecord) -> tuple[DriftedPartition, ...]:
    """Units that run on several workers, as drifted ones."""
    workers = holders({member.member_id: member.assigned for member in record.members})
    return tuple(
        [
            DriftedPartition(name, number, "doubly_assigned", None, tuple(of))
            for (name, number), of in sorted(workers.items())
            if len(of) > 1
        ]
    )


def _against_eager(record: MembershipRecord) -> Verdict:
    configured = [unit for member in record.members for unit in each_of(member.assigned)]
    dealt = assign_eagerly(configured, [member.member_id for member in record.members])
    expected = from_topics({worker: [(name, (number,)) for name, number in units] for worker, units in dealt.items()})
    actual = assigned(record)
    if same(expected, actual):
        return Verdict(IDENTICAL, library=_LIBRARY, candidates=1)
    nearest = Nearest(_LIBRARY, drifted_between(expected, actual))
    return Verdict(UNVERIFIED, UNEXPLAINED, candidates=1, nearest=nearest)


def _against_incremental(record: MembershipRecord, workers: Mapping[str, Worker], before: Owned | None) -> Verdict:
    running = {member.member_id: list(each_of(member.owned)) for member in record.members}
    started = {worker: frozenset(each_of(of.started)) for worker, of in workers.items()}
    revoked = {worker: frozenset(each_of(of.revoked)) for worker, of in workers.items()}
    delay = max(worker.delay for worker in workers.values())
    tried = 0
    try:
        with of_decision():
            for order in member_orders(running, _ORDERS):
                in_order = {worker: running[worker] for worker in order}
                for found in _possible(in_order, started, revoked, delay, before):
                    tried += 1
                    given = {worker: frozenset(units) for worker, units in found.started.items()}
                    if given == started and found.revoked == revoked and bool(found.delay) == bool(delay):
                        return Verdict(IDENTICAL, library=_LIBRARY, candidates=tried)
    except AssignorError as error:
        return Verdict(UNVERIFIED, str(error)[:200], candidates=tried)
    return Verdict(UNVERIFIED, _UNKNOWN_MEMORY, candidates=tried)


def _possible(
    running: Mapping[str, list[Unit]],
    started: Mapping[str, frozenset[Unit]],
    revoked: Mapping[str, frozenset[Unit]],
    delay: int,
    before: Owned | None,
) -> Iterator[LeaderDecision]:
    """What the leader's assignor gives with each configuration and memory that the decision suggests."""
    counts = Counter(unit for units in running.values() for unit in units)
    idle = tuple(worker for worker, units in running.items() if not units)
    active, new = frozenset(counts), frozenset[Unit]().union(*started.values())
    stopped = frozenset(u for units in revoked.values() for u in units if counts[u] == 1)
    had = {u for topics in (before or {}).values() for name, of in topics.items() for u in [(name, n) for n in of]}
    lost = (new & had) - active
    names = {name for name, _ in (active - stopped) | new}
    whole = frozenset(unit for unit in stopped if unit[0] not in names or (unit[0], CONNECTOR) in stopped)
    for deleted in dict.fromkeys((frozenset[Unit](), stopped, whole)):
        configured = (active - deleted) | new
        if delay:
            memory = LeaderMemory(dealt=active | deleted | {_LOST}, workers=frozenset({""}))
            yield assign_incrementally(configured | {_LOST}, running, memory, max_delay=delay)
            continue
        memory = LeaderMemory(dealt=active | deleted, workers=frozenset(running))
        yield assign_incrementally(configured, running, memory)
        if lost:
            memory = replace(memory, dealt=memory.dealt | lost)
            yield assign_incrementally(configured, running, memory)
            yield assign_incrementally(configured, running, replace(memory, scheduled=1, candidates=idle), now=1)


def _findings(
    state: GroupState,
    observation: GroupObservation,
    context: Context,  # noqa: ARG001
    owners: Ownership,  # noqa: ARG001
) -> list[FindingAtRound]:
    """The findings about the workers of a Connect group, and about what they were given."""
    record = state.live_record()
    if record is None:
        return []
    workers = {member.member_id: worker_of(member) for member in record.members}
    known = {member: worker for member, worker in workers.items() if worker is not None}
    found: list[FindingAtRound] = []
    if known and len(known) == len(workers):
        found += _of_workers(state, record, known)
        found += _against_configuration(state, record, known, observation)
    if observation.held_since is not None:
        # There may be a newer decision that nobody can read yet.
        found = found_before(found, state.findings)
    return [*stuck_rebalance(state, record, observation), *found, *unexplained(state.classic.verdict, state.clock.now)]


def _of_workers(state: GroupState, record: MembershipRecord, workers: Mapping[str, Worker]) -> Iterator[FindingAtRound]:
    current = state.classic.current
    decided = current.decided_by if current is not None and current.decided_by >= 0 else record.record_time
    age, timeout = state.clock.passed - decided, rebalance_timeout(record)
    failed = next((worker for worker in workers.values() if worker.error), None)
    if failed is not None:
        detail = f"the leader of generation {record.generation} assigned nothing: {what_failed(failed)}"
        yield FindingAtRound("assignment_error", decided, detail)
    behind = [
        f"{worker.url} at {worker.config_offset}, its assignment at {worker.last_offset}"
        for worker in workers.values()
        if worker.config_offset < worker.last_offset
    ]
    # It catches up, or leaves the group after `worker.sync.timeout.ms`: either takes it less than this.
    if behind and age <= timeout:
        detail = f"joined without the configuration of the assignment before (config offsets): {some(behind)}"
        yield FindingAtRound("worker_behind", decided, detail)
    yield from _without_worker(state, workers, decided, age, timeout)
    counts = counts_of(record) or []
    idle = [workers[m.member_id].url for m, count in zip(record.members, counts, strict=True) if not count]
    if idle and any(counts) and state.classic.transfer is None and age > timeout:
        detail = (
            f"{len(idle)} of {len(counts)} workers run nothing of {counted(sum(counts), 'unit')} (connectors and their "
            f"tasks): {some(idle)}"
        )
        yield FindingAtRound("idle_members", decided, detail)


def _without_worker(
    state: GroupState, workers: Mapping[str, Worker], decided: int, age: int, timeout: int
) -> Iterator[FindingAtRound]:
    """Units that nobody runs now, although the decision before had them."""
    transfer = state.classic.transfer
    if transfer is None:
        return
    delay = max(worker.delay for worker in workers.values())
    units = _named_units(transfer.owners)
    if age <= delay + timeout:
        until = (
            f"for at most {delay // 1_000:,} s, in case the worker that ran it comes back" if delay else "to be dealt"
        )
        yield FindingAtRound("partitions_pending_handover", decided, f"run by nobody, waiting {until}: {units}")
        return
    waited = f"the scheduled delay of {delay // 1_000:,} s has passed" if delay else "it was taken from its worker"
    yield FindingAtRound("unassigned", decided, f"run by nobody, and no rebalance follows, though {waited}: {units}")


def _against_configuration(
    state: GroupState, record: MembershipRecord, workers: Mapping[str, Worker], observation: GroupObservation
) -> Iterator[FindingAtRound]:
    """Units that are configured and run by nobody, even if they never ran, and units that run and are not configured.

    Units that were taken from a worker, and a leader that could assign nothing, are findings of their own.
    """
    seen = observation.connectors
    if seen is None or state.classic.transfer is not None or any(worker.error for worker in workers.values()):
        return
    what = zlib.crc32(msgspec.msgpack.encode(seen.connectors))
    watched, elapsed = f"configuration {what} watched since {record.record}", observation.elapsed_time
    began = min(state.findings.get(watched, elapsed), elapsed)
    yield FindingAtRound("unassigned", began, "", watched, shown=False)
    delay = max(worker.delay for worker in workers.values())
    if elapsed - began <= delay + rebalance_timeout(record) or observation.state in REBALANCING:
        return
    since = state.clock.now - (elapsed - began)
    runs = {unit for member in record.members for unit in each_of(member.assigned)}
    counts = {connector.name: connector.tasks for connector in seen.connectors}
    strange = [
        (name, number)
        for name, number in runs
        if name not in counts or (counts[name] != TASKS_UNKNOWN and number >= counts[name])
    ]
    topic = seen.topic[:200]
    if strange:
        detail = f"run, though topic {topic} does not configure them: {_named_units(strange)}"
        if len(strange) == len(runs):
            detail = f"nothing that runs is configured in topic {topic}, is it this group's? {_named_units(strange)}"
        yield FindingAtRound("no_such_partition", since, detail)
    missing = _configured_units(seen) - runs
    if missing and (not strange or len(strange) < len(runs)):
        detail = f"configured in topic {topic}, and run by nobody: {_named_units(missing)}"
        yield FindingAtRound("unassigned", since, detail)


def _configured_units(seen: SeenConnectors) -> set[tuple[str, int]]:
    """Every unit that a leader assigns, as far as it is known: also of a paused connector, but no task of a stopped."""
    return {
        (connector.name, number)
        for connector in seen.connectors
        for number in range(CONNECTOR, 0 if connector.state == STOPPED else max(0, connector.tasks))
    }


def _named_units(units: Iterable[tuple[str, int]]) -> str:
    """The first few of these connectors and tasks, and how many more there are."""
    ordered = sorted(units)
    return some(
        [
            f"connector {name[:200]}" if number == CONNECTOR else f"task {name[:200]}-{number}"
            for name, number in ordered
        ]
    )


def _lives(state: GroupState) -> bool:
    record = state.live_record()
    return record is not None and is_connect(record)


CONNECT_GROUPS: Final = Kind(
    lives=_lives,
    write_verdicts=write_connect_verdicts,
    judge_again=judge_again,
    # Nobody: a connector is no topic, even if it has the name of one.
    owners=lambda _state: Ownership(),
    standing_members=standing_members,
    membership=classic_membership,
    findings=_findings,
    end=write_connect_verdicts,  # `classic/` closes the members
)
"""Groups of Kafka Connect workers as the core judges them."""
