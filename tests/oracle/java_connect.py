"""The assignors and the protocol classes of Kafka Connect, called in batches (`ConnectAssignorRunner.java`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors.connect import CONNECTOR, Unit
from tests.oracle.java_runner import JavaRunner, hexed, unhexed

RELEASES = {"3.4.1": "connect-3.4.1", "3.7.1": "connect-3.7.1", "4.3.1": "connect"}
"""The set of jars (`conf/jars.toml`) by release."""


Fields = Mapping[str, object]
"""The value of a record of the configuration topic; a mapping in it is taken for an empty one."""


@dataclass(frozen=True)
class DealCase:
    """A rebalance of one leader: `chain` names it, and its memory lives in Java."""

    chain: int
    now: int
    max_delay: int
    led_before: bool
    generation: int
    configured: frozenset[Unit]
    running: Mapping[str, Sequence[Unit]]


@dataclass(frozen=True)
class JavaDealt:
    """What the leader decided."""

    delay: int
    started: dict[str, list[Unit]]
    revoked: dict[str, frozenset[Unit]]


@dataclass(frozen=True)
class WrittenAssignment:
    """An assignment to write."""

    version: int
    error: int
    leader: str
    leader_url: str
    config_offset: int
    units: tuple[Unit, ...]
    revoked: tuple[Unit, ...] = ()
    delay: int = 0


class Connect(JavaRunner):
    """The real classes of one release; a context manager."""

    def __init__(self, release: str) -> None:
        super().__init__("ConnectAssignorRunner.java", RELEASES[release], against=RELEASES["4.3.1"])

    def deal(self, cases: Sequence[DealCase]) -> list[JavaDealt]:
        """Let leaders that use the incremental cooperative protocol decide."""
        return [_dealt(answer) for answer in self.ask([_line(case) for case in cases])]

    def deal_eagerly(self, cases: Sequence[tuple[frozenset[Unit], Sequence[str]]]) -> list[dict[str, list[Unit]]]:
        """Let leaders that use the eager protocol decide: configured units and worker ids."""
        lines = [f"eager\t{_connectors(units)}\t{','.join(map(hexed, workers))}" for units, workers in cases]
        return [{unhexed(name): _units(of) for name, of in _pairs(answer)} for answer in self.ask(lines)]

    def worker_states(self, cases: Sequence[tuple[int, str, int, WrittenAssignment | None]]) -> list[bytes]:
        """Bytes of worker states: version, URL, config offset, last assignment."""
        lines = [
            f"state\t{version}\t{hexed(url)}\t{offset}\t{'-' if last is None else _assignment(last)}"
            for version, url, offset, last in cases
        ]
        return [bytes.fromhex(answer) for answer in self.ask(lines)]

    def configured(self, topics: Sequence[Sequence[tuple[str, Fields | None]]]) -> list[dict[str, tuple[int, str]]]:
        """What workers read from configuration topics: number of tasks and target state by connector.

        Args:
            topics: Of each the records, as key and value.
        """
        lines = [
            "config\t"
            + ",".join(f"{hexed(key)}={'null' if value is None else _fields(value)}" for key, value in records)
            for records in topics
        ]
        return [
            {unhexed(name): (int(tasks), state) for name, tasks, state in (c.split(":") for c in answer.split(","))}
            if answer
            else {}
            for answer in self.ask(lines)
        ]

    def assignments(self, cases: Sequence[WrittenAssignment]) -> list[bytes]:
        """Bytes of assignments."""
        return [bytes.fromhex(answer) for answer in self.ask([f"assignment\t{_assignment(case)}" for case in cases])]


def _line(case: DealCase) -> str:
    workers = ",".join(f"{hexed(worker)}={_written(units)}" for worker, units in case.running.items())
    fields = ("deal", case.chain, case.now, case.max_delay, int(case.led_before), case.generation)
    return "\t".join((*map(str, fields), _connectors(case.configured), workers))


def _connectors(configured: Iterable[Unit]) -> str:
    counts: dict[str, int] = {}
    for name, number in configured:
        counts[name] = max(counts.get(name, 0), number + 1)
    return ",".join(f"{hexed(name)}:{count}" for name, count in counts.items())


def _assignment(case: WrittenAssignment) -> str:
    texts = (hexed(case.leader), hexed(case.leader_url), str(case.config_offset))
    fields = (str(case.version), str(case.error), *texts, _written(case.units), _written(case.revoked))
    return ";".join((*fields, str(case.delay)))


def _fields(value: Fields) -> str:
    return "+".join(f"{name}:{'' if isinstance(of, Mapping) else of}" for name, of in value.items())


def _written(units: Iterable[Unit]) -> str:
    return "+".join(f"{hexed(name)}/{number}" for name, number in units)


def _units(text: str) -> list[Unit]:
    units = [unit.rpartition("/") for unit in text.split("+")] if text else []
    return [(unhexed(name), int(number)) for name, _, number in units]


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, of) for name, _, of in (one.partition("=") for one in text.split(","))]


def _dealt(answer: str) -> JavaDealt:
    delay, _, workers = answer.partition("\t")
    started, revoked = {}, {}
    for name, of in _pairs(workers):
        begun, _, stopped = of.partition("|")
        started[unhexed(name)], revoked[unhexed(name)] = _units(begun), frozenset(_units(stopped))
    assert all(number >= CONNECTOR for units in started.values() for _, number in units)
    return JavaDealt(int(delay), started, revoked)
