"""Groups of Kafka Connect workers: classic groups that assign connectors and tasks in place of partitions.

Their records, churn, cost and members are those of `classic/`; verdicts and findings are their own. What they own are
units (`records.Member`), which have no offsets: such a group has neither lag nor load.

Findings are units that nobody runs, and workers that lag behind or run nothing. A worker that is gone may come back:
until then, and at most for the scheduled delay that its leader gave the others, what it ran is not given to anybody. A
unit that is taken from a worker is given on at the next rebalance, which follows at once. So a unit without a worker is
reported only when that next rebalance is overdue.

Where the topic of the group's configuration is read, what runs is compared with what is configured, once decision and
configuration have stayed the same for so long that the workers must have seen both.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from streaming.groups.classic.kind import classic_membership, is_rebalancing, rebalance_timeout, stuck_rebalance
from streaming.groups.classic.membership import counts_of, is_connect, standing_members
from streaming.groups.connect.verdicts import judge_again, what_failed, write_connect_verdicts
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Kind, Ownership, found_before, some, unexplained
from streaming.groups.state import GroupState
from streaming.records import (
    CONNECTOR,
    STOPPED,
    TASKS_UNKNOWN,
    GroupObservation,
    MembershipRecord,
    SeenConnectors,
    Worker,
    each_of,
    worker_of,
)
from streaming.terminal import counted


def connect_findings(state: GroupState, observation: GroupObservation, context: Context) -> list[FindingAtRound]:  # noqa: ARG001
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
    if elapsed - began <= delay + rebalance_timeout(record) or is_rebalancing(observation):
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
    findings=connect_findings,
    end=write_connect_verdicts,  # `classic/` closes the members
)
"""Groups of Kafka Connect workers as the core judges them."""
