"""Subscription and assignment of a Kafka Connect worker, which protocol type "connect" puts into a member.

    Worker state (the subscription)                    Assignment
      version          int16                             version         int16
      url              string                            error           int16
      configOffset     int64                             leader          string
      allocation       bytes?     1+, an assignment      leaderUrl       string
                                                         configOffset    int64
                                                         assignment      array? of {connector, tasks}
                                                         revoked         array? of {connector, tasks}   1+
                                                         delay           int32, ms                      1+
    Units of a connector
      connector        string
      tasks            array of int32: -1 is the connector itself

Version 0 is the eager protocol ("default"), 1 the incremental cooperative one ("compatible", KIP-415), 2 the same with
session keys ("sessioned", KIP-507). From 1 on an assignment names what a worker is to start and what it is to stop: it
runs on what it ran before, which `allocation` told. Fields at the end may be missing and have their defaults then.
Higher versions are read as 2, and bytes after the last field are skipped, as Java does.

Source: `ConnectProtocol`, `IncrementalCooperativeConnectProtocol`, `ExtendedAssignment` of connect-runtime 4.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.offsets_log.codec.record_types import Rejected
from streaming.offsets_log.codec.wire import Allowance, MalformedError, Reader
from streaming.records import CONNECTOR, TopicPartitions, each_of


@dataclass(frozen=True, slots=True)
class WorkerAssignment:
    """An assignment as the leader made it, or as a worker reports its last one.

    Attributes:
        version: As written, even beyond 2.
        error: 0 without an error; 1 where the leader has not read the configuration that a worker knows.
        leader: Member id of the leader.
        leader_url: URL of the leader's REST API.
        config_offset: Offset in the configuration topic up to which the configuration was used.
        units: Connectors and tasks: all that the worker is to run in version 0, what it is to start from 1 on, and all
            that it runs in an allocation.
        revoked: Those that it is to stop; empty in version 0.
        delay: Time after which the workers are to join again, because somebody left, ms; 0 for none.
    """

    version: int
    error: int
    leader: str
    leader_url: str
    config_offset: int
    units: TopicPartitions
    revoked: TopicPartitions = ()
    delay: int = 0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker as it joined.

    Attributes:
        version: As written, even beyond 2.
        url: URL of its REST API.
        config_offset: Offset in the configuration topic up to which it had read.
        allocation: Its last assignment with everything that it runs; None in version 0, and for a worker that has none.
    """

    version: int
    url: str
    config_offset: int
    allocation: WorkerAssignment | None


def decode_worker_state(data: bytes, allowance: Allowance | None = None) -> WorkerState | Rejected:
    """Decode a worker's subscription. Never raises."""
    reader = Reader(data, allowance=allowance)
    try:
        version = reader.version()
        url, config_offset = reader.string("url"), reader.int64("configOffset")
        inner = reader.nullable_bytes("allocation") if version and reader.remaining else None
        allocation = None if inner is None else _assignment(Reader(inner, allowance=reader.allowance))
    except MalformedError as error:
        return Rejected(f"worker state: {error}")
    return WorkerState(version, url, config_offset, allocation)


def decode_worker_assignment(data: bytes, allowance: Allowance | None = None) -> WorkerAssignment | Rejected:
    """Decode a worker's assignment. Never raises."""
    try:
        return _assignment(Reader(data, allowance=allowance))
    except MalformedError as error:
        return Rejected(f"assignment: {error}")


def unique_units(units: TopicPartitions, without: TopicPartitions = ()) -> TopicPartitions:
    """Each connector once with each of its units once, in the order of their first places.

    Args:
        units: Units by connector, in any order.
        without: Units that are left out.
    """
    stopped = set(each_of(without))
    by_connector: dict[str, dict[int, None]] = {}
    for connector, tasks in units:
        left = dict.fromkeys(task for task in tasks if (connector, task) not in stopped)
        if left:
            by_connector.setdefault(connector, {}).update(left)
    return tuple([(connector, tuple(tasks)) for connector, tasks in by_connector.items()])


def _assignment(reader: Reader) -> WorkerAssignment:
    version = reader.version()
    error = reader.int16("error")
    leader, leader_url = reader.string("leader"), reader.string("leaderUrl")
    config_offset = reader.int64("configOffset")
    if version == 0:
        return WorkerAssignment(version, error, leader, leader_url, config_offset, _units(reader, "assignment"))
    units = _units(reader, "assignment") if reader.remaining else ()
    revoked = _units(reader, "revoked") if reader.remaining else ()
    delay = reader.int32("delay") if reader.remaining else 0
    return WorkerAssignment(version, error, leader, leader_url, config_offset, units, revoked, max(0, delay))


def _units(reader: Reader, field: str) -> TopicPartitions:
    return reader.numbers_by_name(field, "connector", "tasks", lowest=CONNECTOR, nullable=True)
