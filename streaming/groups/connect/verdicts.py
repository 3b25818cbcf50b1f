"""Verdicts on Connect groups: did the leader deal connectors and tasks as Connect's assignors do?

- **Invariant**: no unit runs on two workers. A worker runs what it ran, without what it is to stop, and what it is to
  start. A unit that one is to stop and another runs is in order; so is one that two report and both are to stop.
- **Eager protocol**: every unit is dealt, so the assignment shows what was configured, and is recomputed from it.
- **Incremental cooperative protocol**: the leader's result also depends on its memory, the configuration and the time,
  which are in no record. So what may have been is tried: which of the units that workers are to stop were deleted,
  which of those that they are to start were lost before, whether a worker is waited for. One that gives the decision
  makes it `identical`. That none does proves nothing.

Source: `EagerAssignor`, `IncrementalCooperativeAssignor` (assignors/connect); KIP-415.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from assignors import AssignorError, from_topics, same
from assignors.brokers import member_orders
from assignors.connect import (
    CONNECTOR,
    LeaderDecision,
    LeaderMemory,
    Unit,
    assign_eagerly,
    assign_incrementally,
)
from streaming.groups.classic.cost import CONNECT_EAGER
from streaming.groups.classic.drift import judge_waiting
from streaming.groups.classic.membership import columns_of, is_connect
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.classic.what_if import assigned
from streaming.groups.context import Context, of_decision
from streaming.groups.rows import DriftedPartition, WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import (
    DRIFTED,
    IDENTICAL,
    INVARIANT,
    NOT_APPLICABLE,
    UNEXPLAINED,
    UNVERIFIED,
    Expected,
    Judged,
    Nearest,
    Verdict,
    drifted_between,
)
from streaming.records import GroupObservation, MembershipRecord, TopicPartitions, Worker, each_of, holders, worker_of

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
    configured = observation.configured
    if configured is not None and configured.strategy not in PROTOCOLS:
        # A pattern of the settings that is meant for consumers may match the group, too.
        observation = msgspec.structs.replace(observation, configured=None)
    judge_waiting(state, _Connect(context), observation, context)


def judge_again(state: GroupState, observation: GroupObservation, context: Context) -> None:  # noqa: ARG001
    """Let the newest decision, if it is judged, wait once more: the settings say something else of the group now."""
    classic, record = state.classic, state.live_record()
    if record is not None and is_connect(record) and classic.current is not None and not classic.waiting:
        classic.waiting = [classic.current]


@dataclass(frozen=True, slots=True)
class _Connect:
    context: Context

    def judge(self, decision: ClassicDecision, *, later_is_judged: bool) -> Verdict | None:  # noqa: ARG002
        return _judge(decision)

    def judged_of(self, decision: ClassicDecision) -> Judged:
        columns = columns_of(decision.record, decision.incarnation, self.context)
        return Judged(columns, decision.record.protocol)

    def expected_by(self, strategy: str, decision: ClassicDecision, verdict: Verdict) -> Expected | str:  # noqa: ARG002
        return f"with {strategy}, workers would have joined with something else"

    def what_if(self, decision: ClassicDecision, judged: Judged, verdict: Verdict, *, crowded: bool) -> list[WhatIfRow]:  # noqa: ARG002
        return []


def _judge(decision: ClassicDecision) -> Verdict:
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
    expected = from_topics({worker: _by_connector(units) for worker, units in dealt.items()})
    actual = assigned(record)
    if same(expected, actual):
        return Verdict(IDENTICAL, library=_LIBRARY, candidates=1)
    nearest = Nearest(_LIBRARY, drifted_between(expected, actual))
    return Verdict(UNVERIFIED, UNEXPLAINED, candidates=1, nearest=nearest)


def _by_connector(units: list[Unit]) -> TopicPartitions:
    return tuple([(name, (number,)) for name, number in units])


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
