"""RocketMQ's real classes and ours: same lists, same queues in the same order, or the same exception.

1,000 cases per strategy; the environment variable CASES sets another number: 20,000 in `make test-all`, a million in
`make fuzz`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from assignors.rocketmq import (
    AllocateStrategy,
    CallWouldFail,
    MessageQueue,
    Options,
    Queues,
    sorted_clients,
    sorted_queues,
)
from tests.examples import by_day
from tests.oracle.java_runner import JavaRunner, Thrown, hexed, joined, thrown_in, unhexed

RELEASE = "5.5.0"


@dataclass(frozen=True)
class RocketMqCase:
    """Calls of one strategy by several clients, each with the same lists."""

    strategy: str
    queues: Queues
    clients: tuple[str, ...]
    callers: tuple[str, ...]
    options: Options = field(default_factory=Options)
    presort: bool = True


Answer = Queues | Thrown | None


class RocketMq(JavaRunner):
    """The real classes; a context manager."""

    def __init__(self) -> None:
        super().__init__("RocketMqRunner.java", f"rocketmq-{RELEASE}")

    def allocate(self, cases: Sequence[RocketMqCase]) -> list[list[Answer]]:
        """The results for each case's callers."""
        return [
            [thrown_in(answer) or _read(answer) for answer in line.split("|")] if case.callers else []
            for case, line in zip(cases, self.ask([_line(case) for case in cases]), strict=True)
        ]


def _line(case: RocketMqCase) -> str:
    options = case.options
    return "\t".join(
        (
            case.strategy,
            str(int(case.presort)),
            str(options.virtual_node_cnt),
            "-" if options.message_queue_list is None else _listed(options.message_queue_list),
            "-" if options.consumeridcs is None else joined(";", sorted(options.consumeridcs)),
            hexed(options.room_separator),
            _listed(case.queues),
            joined(";", case.clients),
            joined(";", case.callers),
        )
    )


def _listed(queues: Queues) -> str:
    return ";".join(f"{hexed(queue.topic)}:{hexed(queue.broker)}:{queue.queue}" for queue in queues)


def _read(answer: str) -> Queues | None:
    if answer == "-":
        return None
    parts = [queue.split(":") for queue in answer.split(";")] if answer else []
    return tuple(MessageQueue(unhexed(topic), unhexed(broker), int(number)) for topic, broker, number in parts)


CASES = int(os.environ.get("CASES", "1000"))
pytestmark = [pytest.mark.java, pytest.mark.timeout(0 if CASES > 20_000 else 300)]

_BATCH = 50_000

PLAIN = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
NEARBY = tuple(f"MACHINE_ROOM_NEARBY-{name}" for name in (*PLAIN, "MACHINE_ROOM_NEARBY-AVG"))

# Names whose UTF-16 order differs from their code point order, digits sorted as text, separators in odd places.
_NAMES = (
    "b", "b1", "b10", "b2", "b9", "broker-a", "broker-b", "r1@b", "r2@b", "r1@c", "r3@b", "@b", "r1@", "r1@b@",
    "r1@b@c", "@@b", "r1@@", "@", "", " @x",
    "A-b", "B-b", "C-b", "-b", " -b", "日本@b", "\U0001f600", "\uffee", "\ue000-x",
)  # fmt: skip
_CLIENTS = (
    "10.0.0.9@1@x", "10.0.0.10@1@x", "10.0.0.100@1@x", "10.0.0.100@1", "A-c1", "A-c2", "B-c1", "C-c1", "D-c1", "-c",
    "r1@1", "r2@1", "r9", "b", "\U0001f600", "\uffee", "日本-c", " -c", "ä", "",
)  # fmt: skip


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMq]:
    """The real classes; one JVM for all strategies."""
    with RocketMq() as classes:
        yield classes


@pytest.mark.parametrize("name", by_day([*PLAIN, "MACHINE_ROOM_NEARBY"], ["AVG", "MACHINE_ROOM_NEARBY"]))
def test_every_client_gets_what_the_real_class_gives(rocketmq: RocketMq, name: str) -> None:
    strategies = NEARBY if name == "MACHINE_ROOM_NEARBY" else (name,)
    random = Random(f"rocketmq {strategies} {CASES}")
    left = CASES
    told: dict[str, int] = {"queues": 0, "nothing": 0, "null": 0, "thrown": 0}
    while left:
        cases = [_case(random, random.choice(strategies)) for _ in range(min(left, _BATCH))]
        left -= len(cases)
        for case, answers in zip(cases, rocketmq.allocate(cases), strict=True):
            assert _ours(case) == answers, case
            for answer in answers:
                told[_kind(answer)] += 1
    assert told["queues"] > CASES / 4
    if strategies == ("CONFIG",):
        assert told["null"]
        assert not told["thrown"]
    else:
        assert told["nothing"]
        assert told["thrown"]


def _ours(case: RocketMqCase) -> list[Answer]:
    queues = sorted_queues(case.queues) if case.presort else case.queues
    clients = sorted_clients(case.clients) if case.presort else case.clients
    of_client = AllocateStrategy(case.strategy, case.options).prepare(queues, clients)
    answers: list[Answer] = []
    for caller in case.callers:
        try:
            answers.append(of_client(caller))
        except CallWouldFail as thrown:
            told = "" if thrown.exception == "NullPointerException" else thrown.reason
            answers.append(Thrown(thrown.exception, told))
    return answers


def _kind(answer: Answer) -> str:
    if isinstance(answer, Thrown):
        return "thrown"
    return "null" if answer is None else "queues" if answer else "nothing"


def _case(random: Random, strategy: str) -> RocketMqCase:
    rooms_matter = "ROOM" in strategy
    # Names without a room make NEARBY throw for all clients: most cases should not have them.
    odd = random.random() < 0.15
    separator = random.choice(("-", "-", "@", "c"))
    names = _NAMES if odd or not rooms_matter else [n for n in _NAMES if n.partition(separator)[0]]
    ids = _CLIENTS if odd else [c for c in _CLIENTS if c.partition(separator)[0]]
    queues = _queues(random, names)
    clients = random.choices(ids, k=random.choice((1, 1, 2, 3, 4, 7))) if random.random() < 0.97 else []
    if not random.randrange(20):
        clients = [f"10.1.0.{random.randrange(300)}@{random.randrange(9)}" for _ in range(random.randrange(12, 30))]
    callers = list(dict.fromkeys(clients))[:3]
    if random.random() < 0.2:
        callers.append(random.choice((*_CLIENTS, "nobody")))
    rooms = random.sample(("r1", "r2", "", " ", "日本", "b"), random.randint(0, 4))
    options = Options(
        virtual_node_cnt=random.choice((0, 1, 2, 3, 10)),
        message_queue_list=None if random.random() < 0.2 else _queues(random, names)[: random.randrange(6)],
        consumeridcs=None if random.random() < 0.1 else frozenset(rooms),
        room_separator=separator,
    )
    return RocketMqCase(strategy, queues, tuple(clients), tuple(callers), options, presort=random.random() < 0.5)


def _queues(random: Random, names: list[str] | tuple[str, ...]) -> Queues:
    """Unsorted queues of one topic or two, sometimes with duplicates, sometimes none."""
    if random.random() < 0.03:
        return ()
    topics = random.choice((("TopicA",), ("TopicA",), ("%RETRY%grp", "\U0001f600", "\uffee")))
    # POP's queue id -1 and the highest id together overflow compareTo, but no broker has both.
    ids = (0, 1, 2, 3, 4, 9, 10, 100, random.choice((-1, 2**31 - 1)))
    found = [
        MessageQueue(random.choice(topics), broker, number)
        for broker in random.sample(names, random.randint(1, 4))
        for number in random.sample(ids, random.randint(1, 6))
    ]
    if random.random() < 0.2:
        found += random.sample(found, random.randint(1, len(found)))
    random.shuffle(found)
    return tuple(found)
