"""Findings about Connect groups: units that nobody runs, and workers that lag behind or run nothing.

A worker that is gone may come back: until then, and at most for the scheduled delay that its leader gave the others,
what it ran is not given to anybody. A unit that is taken from a worker is given on at the next rebalance, which follows
at once. So a unit without a worker is reported only when that next rebalance is overdue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streaming.groups.classic.kind import rebalance_timeout, stuck_rebalance
from streaming.groups.classic.membership import counts_of
from streaming.groups.connect.verdicts import what_failed
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, found_before, some, unexplained
from streaming.groups.state import GroupState
from streaming.records import CONNECTOR, GroupObservation, MembershipRecord, Worker, worker_of
from streaming.terminal import counted


def connect_findings(state: GroupState, observation: GroupObservation, context: Context) -> list[FindingAtRound]:  # noqa: ARG001
    """The findings about the workers of a Connect group, and about what they were given."""
    record = state.live_record()
    if record is None:
        return []
    workers = {member.member_id: worker_of(member) for member in record.members}
    known = {member: worker for member, worker in workers.items() if worker is not None}
    found = list(_of_workers(state, record, known)) if known and len(known) == len(workers) else []
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


def _named_units(units: Iterable[tuple[str, int]]) -> str:
    """The first few of these connectors and tasks, and how many more there are."""
    ordered = sorted(units)
    return some(
        [
            f"connector {name[:200]}" if number == CONNECTOR else f"task {name[:200]}-{number}"
            for name, number in ordered
        ]
    )
