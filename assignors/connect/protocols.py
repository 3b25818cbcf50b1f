"""How the leader of Connect's workers deals connectors and tasks: by the eager protocol, and by the cooperative one.

They are given connectors, and the tasks of connectors. The eager assignor deals all connectors, then all tasks, in turn
to the workers by member id. Source: `EagerAssignor` of connect-runtime 4.3.1; the same since 0.10 (there in
`WorkerCoordinator`).

The incremental cooperative protocol's assignor (KIP-415): running units stay, as long as the load is even.

A leader remembers what it dealt before. What its memory lacks and nobody runs is new; what it has and nobody runs was
lost with a worker, and waits for a scheduled delay in case the worker comes back. Where a worker runs too much, the
surplus is taken from it, and dealt at the next rebalance, which follows at once.

Source: `IncrementalCooperativeAssignor` of connect-runtime 4.3.1, with the backoff of KAFKA-12495 (3.3.2, 3.4.0) and
`scheduled.rebalance.max.delay.ms = 0` as of KAFKA-15693 (3.7.0). Earlier releases take surplus units by another rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from math import log
from typing import Final

from assignors.context import spend
from assignors.hash_map import in_hash_order
from assignors.order import sorted_utf16, utf16

CONNECTOR: Final = -1
"""Number of the unit that is a connector itself (`ConnectProtocol.CONNECTOR_TASK`); tasks count from 0."""

Unit = tuple[str, int]
"""A connector's name with the number of a task, or with `CONNECTOR`."""


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Each unit once, by name as Java compares strings, then by number (`ConnectorTaskId.compareTo`)."""
    return sorted(set(units), key=lambda unit: (utf16(unit[0]), unit[1]))


def connectors_in(units: Iterable[Unit]) -> list[Unit]:
    """The connectors among these units."""
    return [unit for unit in units if unit[1] == CONNECTOR]


def tasks_in(units: Iterable[Unit]) -> list[Unit]:
    """The tasks among these units."""
    return [unit for unit in units if unit[1] != CONNECTOR]


def assign_eagerly(configured: Iterable[Unit], workers: Iterable[str]) -> dict[str, list[Unit]]:
    """What each worker gets.

    Args:
        configured: All connectors and tasks.
        workers: Member ids, at least one.
    """
    ordered, names = in_order(configured), sorted_utf16(workers)
    given: dict[str, list[Unit]] = {name: [] for name in names}
    for unit, name in zip((*connectors_in(ordered), *tasks_in(ordered)), cycle(names), strict=False):
        given[name].append(unit)
    return given


# `ExponentialBackoff(1, 40, maxDelay, 0)`.
_BACKOFF_FACTOR = 40

_Select = Callable[[Iterable[Unit]], list[Unit]]


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """What a leader keeps from one rebalance to the next; as it is here after the worker has started.

    Attributes:
        dealt: Units that it dealt, with those that were lost; none if it did not lead the generation before.
        revoked: Units that it took from workers.
        revoked_surplus: It took surplus units.
        backoffs: Rebalances in a row in which it would have taken surplus units once more.
        workers: Ids of the workers.
        candidates: Workers without a unit while units were lost, which get them first.
        scheduled: Time at which lost units are dealt, ms; 0 if none is scheduled.
        delay: Time until then at the rebalance before, ms.
    """

    dealt: frozenset[Unit] = frozenset()
    revoked: frozenset[Unit] = frozenset()
    revoked_surplus: bool = False
    backoffs: int = 0
    workers: frozenset[str] = frozenset()
    candidates: tuple[str, ...] = ()
    scheduled: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True)
class LeaderDecision:
    """A leader's decision.

    Attributes:
        started: Units that each worker is to start, its connectors first.
        revoked: Units that each worker is to stop.
        delay: Time after which the workers are to join again, ms; 0 for none.
        memory: What the leader remembers of it.
    """

    started: dict[str, list[Unit]]
    revoked: dict[str, frozenset[Unit]]
    delay: int
    memory: LeaderMemory


@dataclass(slots=True)
class _Rebalance:
    """A rebalance under way. Changed in place.

    Attributes:
        memory: The leader's memory, as it changes.
        running: What each worker is to run afterwards, in the order in which the leader walks its workers.
        now: Time, ms.
        max_delay: `scheduled.rebalance.max.delay.ms` of the leader.
        waits_always: A release before 3.7, which looks for departed workers also where the longest delay is 0.
        again: Lost units to deal as if they were new.
        revoked: Units taken from each worker.
    """

    memory: LeaderMemory
    running: dict[str, list[Unit]]
    now: int
    max_delay: int
    waits_always: bool
    again: list[Unit] = field(default_factory=list)
    revoked: dict[str, set[Unit]] = field(default_factory=dict)

    def revoke(self, of_worker: Mapping[str, Iterable[Unit]]) -> None:
        for worker, units in of_worker.items():
            gone = set(units)
            self.revoked.setdefault(worker, set()).update(gone)
            self.running[worker] = [unit for unit in self.running[worker] if unit not in gone]

    def reset_delay(self) -> None:
        self.memory = replace(self.memory, candidates=(), scheduled=0, delay=0)

    def handle_lost(self, lost: Sequence[Unit]) -> None:
        """`handleLostAssignments`."""
        memory = self.memory
        if not lost and not memory.revoked_surplus:
            self.reset_delay()
        elif (memory.scheduled <= 0 and memory.workers <= self.running.keys()) or (
            self.max_delay == 0 and not self.waits_always
        ):
            self.again.extend(lost)
        elif 0 < memory.scheduled <= self.now:
            candidates = [worker for worker in memory.candidates if worker in self.running]
            if candidates:
                for select in (connectors_in, tasks_in):
                    for unit, worker in zip(select(lost), cycle(candidates), strict=False):
                        if unit not in self.running[worker]:
                            self.running[worker].append(unit)
            else:
                self.again.extend(lost)
            self.reset_delay()
            self.memory = replace(self.memory, revoked_surplus=False)
        else:
            idle = in_hash_order(worker for worker, units in self.running.items() if not units)
            delay = self.max_delay
            if self.now < memory.scheduled:
                delay = min(memory.scheduled - self.now, self.max_delay)
            candidates = list(dict.fromkeys((*memory.candidates, *idle)))
            self.memory = replace(memory, candidates=tuple(candidates), delay=delay, scheduled=self.now + delay)

    def balance(self, configured: Sequence[Unit]) -> None:
        """Take surplus units, or put that off where the rebalance before took some, too."""
        memory = self.memory
        surplus = _surplus(configured, self.running)
        if memory.revoked_surplus and surplus:
            backoffs = memory.backoffs + 1
            delay = _backoff(backoffs, self.max_delay)
            scheduled = self.now + delay if delay else memory.scheduled
            self.memory = replace(memory, backoffs=backoffs, delay=delay, scheduled=scheduled)
            if delay == 0:
                self.revoke(surplus)
        elif surplus:
            self.revoke(surplus)
            self.memory = replace(memory, revoked_surplus=True)
        elif memory.revoked_surplus:
            self.memory = replace(memory, revoked_surplus=False, backoffs=0)

    def deal(self, units: Sequence[Unit], select: _Select) -> None:
        """`assignConnectors`, `assignTasks`: in turn to the workers that have the fewest."""
        ordered = sorted(self.running, key=lambda worker: (len(select(self.running[worker])), utf16(worker)))
        sizes = {worker: len(select(self.running[worker])) for worker in ordered}
        left = iter(select(units))
        unit = next(left, None)
        while unit is not None:
            fewest = sizes[ordered[0]]
            for worker in [worker for worker in ordered if sizes[worker] == fewest]:
                self.running[worker].append(unit)
                sizes[worker] += 1
                unit = next(left, None)
                if unit is None:
                    break


def assign_incrementally(
    configured: Iterable[Unit],
    running: Mapping[str, Sequence[Unit]],
    memory: LeaderMemory,
    *,
    now: int = 0,
    max_delay: int = 300_000,
    waits_always: bool = False,
) -> LeaderDecision:
    """A leader's decision.

    Args:
        configured: All connectors and tasks.
        running: What each worker runs, in the order of its own report, by member id in the order of the JoinGroup
            response; at least one worker.
        memory: What the leader remembers.
        now: Time at the leader, ms.
        max_delay: Its `scheduled.rebalance.max.delay.ms`.
        waits_always: It is of a release before 3.7.

    Raises:
        CannotTell: The order of its workers is not known.
        TooMuchWork: The work would exceed a limit (`assignors.context`).
    """
    wanted = in_order(configured)
    spend(len(wanted) + len(running) + sum(map(len, running.values())))
    active = {unit for units in running.values() for unit in units}
    dealt = memory.dealt
    if memory.revoked & active:
        dealt = frozenset(active)
    asked = frozenset(wanted)
    deleted = dealt - asked
    lost = in_order(dealt - active - deleted)
    created = [unit for unit in wanted if unit not in dealt and unit not in active]
    counts = Counter(unit for units in running.values() for unit in dict.fromkeys(units))
    twice = {unit for unit, count in counts.items() if count > 1}
    workers = in_hash_order(running)
    rebalance = _Rebalance(
        memory, {worker: list(dict.fromkeys(running[worker])) for worker in workers}, now, max_delay, waits_always
    )
    before = {worker: [unit for unit in units if unit not in deleted] for worker, units in rebalance.running.items()}
    rebalance.revoke({worker: [u for u in running[worker] if u in deleted or u in twice] for worker in workers})
    rebalance.handle_lost(lost)
    if rebalance.memory.delay == 0:
        rebalance.balance(wanted)
    else:
        rebalance.memory = replace(rebalance.memory, revoked_surplus=False)
    toward = [*created, *rebalance.again]
    rebalance.deal(toward, connectors_in)
    rebalance.deal(toward, tasks_in)
    revoked = frozenset(unit for units in rebalance.revoked.values() for unit in units)
    after = {unit for units in rebalance.running.values() for unit in units}
    return LeaderDecision(
        started={worker: _without(rebalance.running[worker], before[worker]) for worker in workers},
        revoked={worker: frozenset(rebalance.revoked.get(worker, ())) for worker in workers},
        delay=rebalance.memory.delay,
        memory=replace(
            rebalance.memory,
            dealt=frozenset(after - revoked) | frozenset(lost),
            revoked=revoked,
            workers=frozenset(workers),
        ),
    )


def _without(units: Iterable[Unit], others: Iterable[Unit]) -> list[Unit]:
    known = set(others)
    left = [unit for unit in units if unit not in known]
    return connectors_in(left) + tasks_in(left)


def _surplus(configured: Sequence[Unit], running: Mapping[str, Sequence[Unit]]) -> dict[str, list[Unit]]:
    """`performLoadBalancingRevocations`: what workers run beyond an even share, connectors and tasks each by itself."""
    if not configured or not any(running.values()):
        return {}
    found: dict[str, list[Unit]] = {}
    for select in (connectors_in, tasks_in):
        least, extra = divmod(len(select(configured)), len(running))
        of_worker = {worker: select(units) for worker, units in running.items()}
        sizes = Counter(map(len, of_worker.values()))
        if sizes[least + 1] == extra and sizes[least] + sizes[least + 1] == len(running):
            continue
        for worker, units in of_worker.items():
            if len(units) <= least:
                continue
            most = least
            if extra:
                extra -= 1
                most += 1
            if len(units) > most:
                found.setdefault(worker, []).extend(units[: len(units) - most])
    return found


def _backoff(attempts: int, longest: int) -> int:
    """`ExponentialBackoff.backoff` without jitter, ms."""
    if longest == 0:
        return 0
    most = log(longest) / log(_BACKOFF_FACTOR) if longest > 1 else 0.0
    return min(longest, int(_BACKOFF_FACTOR ** min(attempts, most)))
