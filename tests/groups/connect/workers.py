"""A cluster of Connect workers as the log shows it: records in the bytes of Connect's protocol, written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assignors.connect import CONNECTOR, Unit
from streaming.offsets_log import decode_membership
from streaming.records import GroupObservation, MembershipRecord
from tests.groups.build import LOG_PARTITION, SECOND, START, make_observation
from tests.offsets_log.connect_bytes import worker_assignment, worker_state
from tests.offsets_log.written import group_value, member

TIMEOUT = 60
"""Rebalance timeout of the workers, s."""

_VERSIONS = {"default": 0, "compatible": 1, "sessioned": 2}


@dataclass(frozen=True)
class WorkerRecord:
    """What a record has of one worker: what it reports, and what it gets.

    Attributes:
        ran: Units that it runs when it joins.
        start: Units that it is to start; in the eager protocol all that it is to run.
        stop: Units that it is to stop.
        read: Config offset that it has read.
        before: Config offset of its last assignment.
    """

    ran: Sequence[Unit] = ()
    start: Sequence[Unit] = ()
    stop: Iterable[Unit] = ()
    read: int = 9
    before: int = 9


def connector(name: str, *tasks: int) -> list[Unit]:
    """A connector with some of its tasks."""
    return [(name, CONNECTOR), *((name, task) for task in tasks)]


def decision(
    record: int,
    workers: Mapping[str, WorkerRecord],
    *,
    generation: int = 1,
    protocol: str = "sessioned",
    delay: int = 0,
    error: int = 0,
    offset: int = 9,
    time: int | None = None,
) -> MembershipRecord:
    """A decision of the workers' leader, decoded from its bytes; the first worker leads. Its time is as in `build`."""
    version, leader = _VERSIONS[protocol], next(iter(workers), "")
    at = START + record * SECOND if time is None else time

    def assignment(of: int, units: Iterable[Unit], stop: Iterable[Unit], wait: int, failed: int = 0) -> bytes:
        of_connector, revoked = by_connector(units), by_connector(stop)
        return worker_assignment(
            version, leader, url(leader), of, of_connector, revoked=revoked, delay=wait, error=failed
        )

    members = [
        member(
            3,
            member_id=name,
            client_id=f"connect-{name}",
            rebalance_timeout=TIMEOUT * SECOND,
            subscription=worker_state(
                version, url(name), told.read, assignment(told.before, told.ran, (), 0) if told.ran else None
            ),
            assignment=assignment(offset, told.start, told.stop, delay, error),
        )
        for name, told in workers.items()
    ]
    value = group_value(
        3,
        members,
        protocol_type="connect",
        protocol=protocol if members else None,
        leader=leader or None,
        generation=generation,
        timestamp=at - 20,
    )
    found = decode_membership(record, at, value, LOG_PARTITION)
    assert isinstance(found, MembershipRecord)
    return found


def url(worker: str) -> str:
    """A worker's URL."""
    return f"http://{worker}:8083/"


def by_connector(units: Iterable[Unit]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for name, number in units:
        found.setdefault(name, []).append(number)
    return list(found.items())


def seen(position: int, **changes: object) -> GroupObservation:
    """A round that shows the group, and no topics."""
    return make_observation(position, protocol_type="connect", **changes)


@dataclass
class Cluster:
    """Workers that do as they are told.

    Attributes:
        running: What each worker runs.
        decisions: Records so far.
    """

    running: dict[str, list[Unit]] = field(default_factory=dict)
    decisions: list[MembershipRecord] = field(default_factory=list)

    def decide(
        self, start: Mapping[str, Sequence[Unit]], stop: Mapping[str, frozenset[Unit]], delay: int = 0
    ) -> MembershipRecord:
        """The record of a leader's decision, after which the workers follow it."""
        told = {
            name: WorkerRecord(units, start.get(name, ()), stop.get(name, ())) for name, units in self.running.items()
        }
        number = len(self.decisions) + 1
        made = decision(2 * number, told, generation=number, delay=delay)
        self.decisions.append(made)
        for name, of in told.items():
            stopped = set(of.stop)
            self.running[name] = [unit for unit in of.ran if unit not in stopped] + list(of.start)
        return made
