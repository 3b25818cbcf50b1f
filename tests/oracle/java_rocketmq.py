"""RocketMQ's own allocation strategies, called in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from assignors.rocketmq import MessageQueue, Options, Queues
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
            "-" if options.message_queue_list is None else _queues(options.message_queue_list),
            "-" if options.consumeridcs is None else joined(";", sorted(options.consumeridcs)),
            hexed(options.room_separator),
            _queues(case.queues),
            joined(";", case.clients),
            joined(";", case.callers),
        )
    )


def _queues(queues: Queues) -> str:
    return ";".join(f"{hexed(queue.topic)}:{hexed(queue.broker)}:{queue.queue}" for queue in queues)


def _read(answer: str) -> Queues | None:
    if answer == "-":
        return None
    parts = [queue.split(":") for queue in answer.split(";")] if answer else []
    return tuple(MessageQueue(unhexed(topic), unhexed(broker), int(number)) for topic, broker, number in parts)
