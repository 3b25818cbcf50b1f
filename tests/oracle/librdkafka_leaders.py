"""librdkafka's own assignors: a real consumer becomes the leader of invented groups.

The consumer (confluent-kafka, in its own process) connects to a broker in this module. At each join the broker appoints
it leader of a group with the members and the topics (with racks) of a case, receives its assignment, and makes it join
again for the next case.

Layouts: ApiVersions 0, Metadata 1 (with racks), FindCoordinator 0, JoinGroup 5 (with instance ids), SyncGroup 3.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Condition, Thread

from assignors import Assignment, Subscription, from_pairs
from tests.assignors.random_groups import RACKS
from tests.offsets_log.written import sized, string, subscription
from tests.oracle.java_assignors import Case

_ANSWER_S = 200.0
# One in several hundred joins is never followed by an assignment; on a busy machine others take seconds.
_SILENT_S = 5.0
# After an eager rebalance a consumer waits 0.1 s before it joins again, so several run at once. With only one leader it
# is known which case crashes it, as happens with the sticky assignor.
_LEADERS = {"range": 24, "roundrobin": 24, "cooperative-sticky": 1}

_CLIENT = """
import sys
from confluent_kafka import Consumer
port, strategy, leaders = sys.argv[1:]
settings = {"bootstrap.servers": "127.0.0.1:" + port, "partition.assignment.strategy": strategy, "log_level": 0}
consumers = [Consumer(settings | {"group.id": f"led-{number}"}) for number in range(int(leaders))]
for consumer in consumers:
    consumer.subscribe(["seed"])
while True:
    for consumer in consumers:
        consumer.poll(0.01)
"""

_METADATA, _FIND_COORDINATOR, _JOIN, _HEARTBEAT, _LEAVE, _SYNC, _VERSIONS = 3, 10, 11, 12, 13, 14, 18
# For each API the highest version that we write; for the others what a consumer needs before it joins groups.
_HIGHEST = {
    0: 2,
    1: 3,
    2: 1,
    _METADATA: 1,
    8: 2,
    9: 1,
    _FIND_COORDINATOR: 0,
    _JOIN: 5,
    _HEARTBEAT: 0,
    _LEAVE: 0,
    _SYNC: 3,
}
_HIGHEST[_VERSIONS] = 0
_UNKNOWN_TOPIC, _REBALANCE_IN_PROGRESS, _UNSUPPORTED_VERSION = 3, 27, 35
_BROKER, _RACKLESS = 1, 99
_NODES = {rack: 10 + place for place, rack in enumerate((*RACKS, "x", "y"))}


class Unanswered(Enum):
    """Why a case has no answer."""

    CRASHED = "the leader's process ended"
    SILENT = "the leader never sent an assignment"


def ask_librdkafka(strategy: str, cases: Sequence[Case]) -> list[Assignment | Unanswered]:
    """Assignments of the installed librdkafka, case by case.

    Topics without a count do not exist. Each group must have a member with a topic, and no name may be empty.
    """
    work = _Work(list(cases))
    server = _Server(("127.0.0.1", 0), _Connection)
    server.work = work
    Thread(target=server.serve_forever, daemon=True).start()
    until = time.monotonic() + _ANSWER_S
    try:
        while len(work.answers) < len(cases):
            _lead(strategy, int(server.server_address[1]), work, until)
    finally:
        server.shutdown()
        server.server_close()
    return [work.answers[number] for number in range(len(cases))]


def _lead(strategy: str, port: int, work: _Work, until: float) -> None:
    """Let consumers lead until all cases are answered, or they crash."""
    command = [sys.executable, "-c", _CLIENT, str(port), strategy, str(_LEADERS[strategy])]
    consumer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with work.changed:
            while len(work.answers) < len(work.cases):
                left = f"{len(work.answers)} of {len(work.cases)} are answered, not {work.given}"
                assert time.monotonic() < until, left
                ended = consumer.poll() is not None
                assert not ended or len(work.given) == 1, left
                if ended or time.monotonic() - work.answered > _SILENT_S:
                    why = Unanswered.CRASHED if ended else Unanswered.SILENT
                    work.answers |= dict.fromkeys(work.given.values(), why)
                    work.given.clear()
                    work.answered = time.monotonic()
                    return
                work.changed.wait(0.05)
    finally:
        consumer.kill()
        consumer.wait()


@dataclass
class _Work:
    """The cases, and those in progress by the leader's group."""

    cases: list[Case]
    answers: dict[int, Assignment | Unanswered] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    changed: Condition = field(default_factory=Condition)
    answered: float = field(default_factory=time.monotonic)

    def next(self, group: str) -> int | None:
        with self.changed:
            self.given.pop(group, None)
            taken = {*self.answers, *self.given.values()}
            number = next((n for n in range(len(self.cases)) if n not in taken), None)
            if number is not None:
                self.given[group] = number
            return number

    def answer(self, group: str, assignment: dict[str, list[tuple[str, int]]]) -> None:
        with self.changed:
            number = self.given.pop(group, None)
            if number is not None:
                self.answers[number] = from_pairs(assignment)
                self.answered = time.monotonic()
                self.changed.notify_all()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    work: _Work


class _Connection(StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(ConnectionError):  # a consumer was killed
            self._serve()

    def _serve(self) -> None:
        while len(size := self.rfile.read(4)) == 4:
            read = _Reader(self.rfile.read(struct.unpack(">i", size)[0]))
            api, version, correlation = read.take(">hhi")
            if version > _HIGHEST.get(api, -1):
                body = struct.pack(">h", _UNSUPPORTED_VERSION) + _versions() if api == _VERSIONS else None
            else:
                read.text()
                body = self._answer(api, read)
            if body is None:
                return
            self.wfile.write(struct.pack(">ii", len(body) + 4, correlation) + body)

    def _answer(self, api: int, read: _Reader) -> bytes | None:
        if api == _VERSIONS:
            return struct.pack(">h", 0) + _versions()
        if api == _METADATA:
            return self._metadata([read.text() or "" for _ in range(max(0, read.take(">i")[0]))])
        if api == _FIND_COORDINATOR:
            return struct.pack(">hi", 0, _BROKER) + string("127.0.0.1") + struct.pack(">i", self._port)
        if api == _JOIN:
            return self._join(read.text() or "")
        if api == _SYNC:
            return self._sync(read)
        return struct.pack(">h", 0) if api in (_HEARTBEAT, _LEAVE) else None

    @property
    def _port(self) -> int:
        return int(self.server.server_address[1])

    def _metadata(self, asked: Iterable[str]) -> bytes:
        brokers = [(_BROKER, self._port, None), (_RACKLESS, 1, None)]
        brokers += [(node, 1, rack) for rack, node in _NODES.items()]
        listed = [
            struct.pack(">i", node) + string("127.0.0.1") + struct.pack(">i", port) + string(rack)
            for node, port, rack in brokers
        ]
        topics = [_topic(name, *self._found(name)) for name in asked]
        return _array(listed) + struct.pack(">i", _BROKER) + _array(topics)

    def _found(self, name: str) -> tuple[int, list[list[int]]]:
        """Error and replicas per partition of a topic; its name has the number of the case as prefix."""
        number, _, topic = name.partition("~")
        if name == "seed":
            return 0, [[_RACKLESS]]
        case = self.server.work.cases[int(number)]
        count = case.group.partitions_per_topic.get(topic, 0)
        racks = (case.racks or {}).get(topic, [()] * count)
        return 0 if count else _UNKNOWN_TOPIC, [[_NODES[rack] for rack in of] or [_RACKLESS] for of in racks]

    def _join(self, group: str) -> bytes | None:
        number = self.server.work.next(group)
        if number is None:
            return None
        case = self.server.work.cases[number]
        members = [
            string(m.member_id) + string(m.group_instance_id) + sized(_subscription(m, f"{number}~"))
            for m in case.group.members
        ]
        head = struct.pack(">ihi", 0, 0, 1) + string(case.strategy) + string("the leader") + string("the leader")
        return head + _array(members)

    def _sync(self, read: _Reader) -> bytes:
        group = read.text() or ""
        read.take(">i")
        read.text(), read.text()
        assignment: dict[str, list[tuple[str, int]]] = {}
        for _ in range(read.take(">i")[0]):
            member = read.text() or ""
            of_member = _Reader(read.bytes())
            of_member.take(">h")
            pairs = assignment.setdefault(member, [])
            for _ in range(of_member.take(">i")[0]):
                topic = (of_member.text() or "").partition("~")[2]
                pairs += [(topic, of_member.take(">i")[0]) for _ in range(of_member.take(">i")[0])]
        self.server.work.answer(group, assignment)
        return struct.pack(">ih", 0, _REBALANCE_IN_PROGRESS) + sized(b"")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._data, self._place)
        self._place += struct.calcsize(layout)
        return found

    def text(self) -> str | None:
        (size,) = self.take(">h")
        return None if size < 0 else self._raw(size).decode()

    def bytes(self) -> bytes:
        return self._raw(self.take(">i")[0])

    def _raw(self, size: int) -> bytes:
        self._place += size
        return self._data[self._place - size : self._place]


def _versions() -> bytes:
    return _array([struct.pack(">hhh", api, 0, highest) for api, highest in sorted(_HIGHEST.items())])


def _topic(name: str, error: int, replicas: list[list[int]]) -> bytes:
    partitions = [
        struct.pack(">hii", 0, number, of[0]) + _array([struct.pack(">i", n) for n in of]) * 2
        for number, of in enumerate(replicas)
    ]
    return struct.pack(">h", error) + string(name) + b"\0" + _array(partitions)


def _subscription(member: Subscription, before: str) -> bytes:
    return subscription(
        3,
        [before + topic for topic in member.topics],
        user_data=b"",
        owned=[(before + topic, numbers) for topic, numbers in member.owned],
        generation=-1 if member.generation is None else member.generation,
        rack=member.rack,
    )


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)
